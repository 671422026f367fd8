"""`TopologyDescription`: what it holds and how it prints."""

import dataclasses
import re
from typing import Any

import pytest

from headrace import StreamsBuilder, Topology, TopologyDescription
from tests.topology.cases.steps import Forward, same, store, stream, topic_of_record


class Route:
    def __call__(self, key: Any, value: Any, context: Any) -> str:
        return str(value)


def test_printed_as_kafka_streams_does() -> None:
    topology = Topology().add_source("lines", "in").add_processor("count", Forward, "lines")
    topology.add_state_store(store("counts"), "count").add_sink("write", "out", "count")
    assert str(topology.describe()).splitlines() == [
        "Topologies:",
        "   Sub-topology: 0",
        "    Source: lines (topics: [in])",
        "      --> count",
        "    Processor: count (stores: [counts])",
        "      --> write",
        "      <-- lines",
        "    Sink: write (topic: out)",
        "      <-- count",
        "",
    ]


def test_global_store_is_a_sub_topology_without_tasks() -> None:
    builder = StreamsBuilder()
    builder.global_table("countries", store="countries", name="rows")
    assert str(builder.build().describe()).splitlines() == [
        "Topologies:",
        "   Sub-topology: 0 for global store (will not generate tasks)",
        "    Source: rows-source (topics: [countries])",
        "      --> rows",
        "    Processor: rows (stores: [countries])",
        "      --> none",
        "      <-- rows-source",
    ]


def test_nodes_are_there_as_values() -> None:
    topology = Topology().add_source("lines", "in").add_sink("write", "out", "lines")
    (sub,) = topology.describe().sub_topologies
    source, sink = sub.nodes
    assert (sub.id, sub.is_global) == (0, False)
    assert (source.kind, source.name, sink.kind, sink.name) == ("source", "lines", "sink", "write")
    with pytest.raises(dataclasses.FrozenInstanceError):
        sub.id = 1  # type: ignore[misc]


def test_equal_topologies_have_equal_descriptions() -> None:
    def describe(topic: str) -> TopologyDescription:
        builder = StreamsBuilder()
        stream(builder, topic).map_values(same).to("out")
        return builder.build().describe()

    assert describe("in") == describe("in")
    assert describe("in") != describe("other")
    assert len({describe("in"), describe("in")}) == 1


def test_description_does_not_change_with_the_topology() -> None:
    topology = Topology().add_source("lines", "in")
    before = topology.describe()
    topology.add_sink("write", "out", "lines")
    assert "write" not in str(before)
    assert "write" in str(topology.describe())


def test_pattern_is_printed_as_it_is() -> None:
    topology = Topology().add_source("all", re.compile(r"in-\d+"))
    assert r"Source: all (topics: in-\d+)" in str(topology.describe())


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        (topic_of_record, "tests.topology.cases.steps.topic_of_record"),
        (lambda key, value, context: value, "tests.topology.test_description.<lambda>"),
        (Route(), "tests.topology.test_description.Route"),
    ],
)
def test_function_that_names_the_topic_is_named_without_an_address(topic: Any, name: str) -> None:
    topology = Topology().add_source("source", "in").add_sink("sink", topic, "source")
    assert f"Sink: sink (extractor class: {name})\n" in str(topology.describe())
