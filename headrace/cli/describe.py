"""`headrace describe`: print or draw a topology."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.loading import load_topology
from headrace.cli.options import Traceback


class Format(StrEnum):
    """The form in which a topology is printed."""

    text = "text"
    mermaid = "mermaid"
    json = "json"
    svg = "svg"


def describe(
    app: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:APP",
            help="A module and the name of a Topology, a StreamsBuilder, a Streams or a function that returns one.",
        ),
    ],
    how: Annotated[Format, typer.Option("--format", "-f", help="The form to print. svg needs Graphviz.")] = Format.text,
    traceback: Traceback = False,
) -> None:
    """Print a topology: its sources, steps, stores and sinks.

    The working directory is searched for the module first.
    """
    description = load_topology(app).describe()
    match how:
        case Format.text:
            text = str(description)
        case Format.mermaid:
            text = description.to_mermaid()
        case Format.json:
            text = description.to_json()
        case Format.svg:
            text = description.to_svg()
    print(text.rstrip("\n"))
