"""What a topology tells about its nodes and topics.

Refusals are in `test_bad_names.py`, `test_bad_stores.py` and `test_bad_topologies.py`.
"""

import re

import pytest

from headrace import StreamsBuilder, Topology
from tests.topology.cases.steps import Forward, store, topic_of_record


@pytest.fixture
def topology() -> Topology:
    """Two sub-topologies with an internal topic between them, and a third with a pattern."""
    builder = StreamsBuilder()
    counts = builder.stream("in", name="in").group_by(lambda key, value: value, name="by-value").count(store="counts")
    counts.to_stream(name="updates").to("out", name="out")
    copies = builder.stream(re.compile("more-.*"), name="more")
    copies.to("out", name="copy")
    copies.to(topic_of_record, name="by-record")
    return builder.build()


def test_nodes_by_kind(topology: Topology) -> None:
    assert [node.name for node in topology.sources()] == ["in", "by-value-repartition-source", "more"]
    assert [node.name for node in topology.sinks()] == ["by-value-repartition-sink", "out", "copy", "by-record"]
    steps = ["by-value", "by-value-repartition-filter", "KSTREAM-AGGREGATE-0000000002", "updates"]
    assert sorted(node.name for node in topology.processors()) == sorted(steps)
    assert topology.nodes_of() == list(topology.nodes.values())


def test_nodes_of_a_sub_topology(topology: Topology) -> None:
    first, second, third = topology.sub_topologies()

    assert [[node.name for node in topology.sources(sub)] for sub in (first, second, third)] == [
        ["in"],
        ["by-value-repartition-source"],
        ["more"],
    ]
    assert [node.name for node in topology.sinks(third)] == ["copy", "by-record"]
    assert topology.processors(third) == []
    assert tuple(node.name for node in topology.nodes_of(second)) == second.nodes


def test_topics_by_name(topology: Topology) -> None:
    assert topology.written_topics() == ["by-value-repartition", "out"]
    assert topology.written_topics(topology.sub_topologies()[2]) == ["out"]
    assert topology.named_topics() == ["in", "out"]


def test_internal_topics_have_the_application_in_their_name(topology: Topology) -> None:
    assert topology.topic_name("by-value-repartition", "shop") == "shop-by-value-repartition"
    assert topology.topic_name("out", "shop") == "out"
    assert topology.internal_names("shop") == {"shop-by-value-repartition"}


def test_steps_that_share_a_store_are_one_sub_topology() -> None:
    topology = Topology().add_source("a", "a").add_source("b", "b").add_source("c", "c")
    topology.add_processor("one", Forward, "a").add_processor("two", Forward, "b").add_sink("out", "out", "c")
    assert [sub.nodes for sub in topology.sub_topologies()] == [("a", "one"), ("b", "two"), ("c", "out")]

    topology.add_state_store(store("shared"), "one", "two")

    together, alone = topology.sub_topologies()
    assert (together.id, together.nodes, together.stores) == (0, ("a", "b", "one", "two"), ("shared",))
    assert (alone.id, alone.nodes, alone.stores) == (1, ("c", "out"), ())


def test_a_global_table_is_a_sub_topology_without_tasks() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    builder.global_table("prices", store="prices")

    assert [(sub.is_global, sub.stores) for sub in builder.build().sub_topologies()] == [
        (False, ()),
        (True, ("prices",)),
    ]
