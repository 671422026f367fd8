"""The same descriptions as Kafka Streams: java_descriptions.jsonl is what java/Descriptions.java prints."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import StreamsBuilder, Topology
from tests.topology.cases import aggregations, processors, stream_joins, streams, tables
from tests.topology.cases.steps import Forward, store

LINES = [
    json.loads(line) for line in Path(__file__).with_name("java_descriptions.jsonl").read_text("utf-8").splitlines()
]
DSL_CASES: dict[str, Callable[[StreamsBuilder], Any]] = {
    **streams.CASES,
    **aggregations.CASES,
    **stream_joins.CASES,
    **tables.CASES,
    **processors.CASES,
}
TOPOLOGY_CASES = processors.TOPOLOGY_CASES


def build(line: dict[str, Any]) -> Topology:
    topology = Topology()
    if "steps" in line:
        for step in line["steps"]:
            add_step(topology, *step)
    elif line["name"] in TOPOLOGY_CASES:
        TOPOLOGY_CASES[line["name"]](topology)
    else:
        builder = StreamsBuilder()
        DSL_CASES[line["name"]](builder)
        topology = builder.build()
    return topology


def add_step(topology: Topology, kind: str, name: str, *arguments: Any) -> None:
    match kind:
        case "source":
            topology.add_source(name, *arguments[0])
        case "processor":
            topology.add_processor(name, Forward, *arguments[0])
        case "sink":
            topology.add_sink(name, arguments[0], *arguments[1])
        case "store":
            topology.add_state_store(store(name), *arguments[0])


def without_extractors(description: str) -> str:
    """Drop what names the topics of a sink: in Java it is an object with its address, here the name of a function."""
    return re.sub(r"extractor class: [^)]*", "extractor class: ...", description)


@pytest.mark.parametrize("line", LINES, ids=[line["name"] for line in LINES])
def test_description_is_the_java_one(line: dict[str, Any]) -> None:
    assert without_extractors(str(build(line).describe())) == line["description"]


def test_every_case_is_compared() -> None:
    names = {line["name"] for line in LINES if "steps" not in line}
    assert names == DSL_CASES.keys() | TOPOLOGY_CASES.keys()
