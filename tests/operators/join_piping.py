"""Transcripts of joins: the inputs of a topology, record by record, and its outputs after each.

    left  k=A@3 ->
    right k=a@4 -> k=A+a@4

A record is `key=value@timestamp`, with `None` for null; results go to the topic `out`. A transcript for several kinds
of join has a column for each kind; a line without columns is the same for all:

                   join | left_join
    left  k=A@3 ->      | k=A+None@3
    right k=a@4 -> k=A+a@4
"""

import re
from typing import Any

import pytest

from headrace import Topology
from tests.operators import piping

KINDS = ("join", "left_join", "outer_join")

every_kind = pytest.mark.parametrize("kind", KINDS)
inner_and_left = pytest.mark.parametrize("kind", KINDS[:2])

_COLUMNS = re.compile(r"\s\|(?=\s|$)")


def plus(left: Any, right: Any) -> str:
    return f"{left}+{right}"


def after_bar(value: str) -> str | None:
    """Find the foreign key in a value such as `A|f1`; `A|` has none."""
    return value.split("|")[1] or None


def check(
    topology: Topology,
    transcript: str,
    *,
    column: str | None = None,
    cached: bool = False,
    stores: dict[str, dict[str, Any]] | None = None,
    **config: Any,
) -> None:
    """Pipe the records of a transcript and compare the results of each, then what the stores hold in the end."""
    if column is not None:
        transcript = _transcript_of(column, transcript)
    piping.check(topology, transcript, cached=cached, stores=stores, **config)


def _transcript_of(column: str, transcript: str) -> str:
    header, *lines = [line for line in transcript.splitlines() if line.strip()]
    number = [name.strip() for name in header.split("|")].index(column)
    return "\n".join(_line_of(number, line) for line in lines)


def _line_of(number: int, line: str) -> str:
    given, _, results = line.partition("->")
    columns = _COLUMNS.split(results)
    return f"{given}-> {columns[0 if len(columns) == 1 else number]}"
