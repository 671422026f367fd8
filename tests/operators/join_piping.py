"""Transcripts: what a topology is fed, record by record, and what it puts out after each.

    left  k=A@3 ->
    right k=a@4 -> k=A+a@4

A record is `key=value@timestamp`, with `None` for null; results go to the topic `out`.
"""

import re
from difflib import ndiff
from typing import Any

import pytest

from headrace import Topology, serdes
from headrace.records import Record
from headrace.testing import TopologyTestDriver

_RECORD = re.compile(r"(?P<key>[^=]*)=(?P<value>.*)@(?P<timestamp>\d+)")


def plus(left: Any, right: Any) -> str:
    return f"{left}+{right}"


def after_bar(value: str) -> str | None:
    """Find the foreign key in a value such as `A|f1`; `A|` has none."""
    return value.split("|")[1] or None


def check(
    topology: Topology,
    transcript: str,
    *,
    cached: bool = False,
    stores: dict[str, dict[str, Any]] | None = None,
    **config: Any,
) -> None:
    """Pipe the records of a transcript and compare the results of each, then what the stores hold in the end."""
    settings = {"application_id": "test", "default_value_serde": serdes.String} | config
    if not cached:
        settings["statestore_cache_max_bytes"] = 0
    expected = [_step(line) for line in transcript.splitlines() if line.strip()]
    with TopologyTestDriver(topology, settings) as driver:
        out = driver.create_output_topic("out")
        seen = []
        for given, _ in expected:
            topic, record = given.split()
            driver.create_input_topic(topic).pipe_input(_record(record))
            seen.append((given, [_text(result) for result in out.read_records()]))
        if seen != expected:
            pytest.fail("\n".join(["", *ndiff(_lines(expected), _lines(seen))]), pytrace=False)
        for name, content in (stores or {}).items():
            assert dict(driver.state_store(name).all()) == content


def _step(line: str) -> tuple[str, list[str]]:
    given, arrow, results = line.partition("->")
    assert arrow, f"a line reads `topic key=value@timestamp -> results`, got {line!r}"
    return " ".join(given.split()), results.split()


def _lines(steps: list[tuple[str, list[str]]]) -> list[str]:
    return [f"{given} -> {' '.join(results)}" for given, results in steps]


def _record(text: str) -> Record[Any, Any]:
    match = _RECORD.fullmatch(text)
    assert match, f"a record reads `key=value@timestamp`, got {text!r}"
    key, value, timestamp = match.groups()
    return Record(None if key == "None" else key, None if value == "None" else value, int(timestamp))


def _text(record: Record[Any, Any]) -> str:
    return f"{record.key}={record.value}@{record.timestamp}"
