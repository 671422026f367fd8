"""`headrace describe`: what a topology is made of."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from headrace.cli.loading import load_topology
from headrace.cli.options import Traceback


class Format(StrEnum):
    """How a topology is shown."""

    text = "text"
    mermaid = "mermaid"
    json = "json"
    svg = "svg"


def describe(
    app: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:APP",
            help="A Topology, a StreamsBuilder, a Streams, or a function that returns one, in a module.",
        ),
    ],
    how: Annotated[
        Format, typer.Option("--format", "-f", help="svg needs Graphviz; the others need nothing.")
    ] = Format.text,
    traceback: Traceback = False,
) -> None:
    """Print a topology: its sources, steps, stores and sinks.

    Modules are looked for in the working directory first.
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
