"""Stores that exist twice, do not exist or are not connected: the error names the step and says what to do."""

from typing import Any

import pytest

from headrace import Processor, Stores, StreamsBuilder, Topology
from headrace.serdes import Long, String
from headrace.testing import TopologyTestDriver
from tests.topology.cases.steps import Forward, ForwardValue, store, stream
from tests.topology.refusals import refused


def test_duplicate_store_with_other_settings() -> None:
    topology = Topology().add_state_store(Stores.key_value("kept", String, String))
    with refused("there is already a store 'kept' with other settings", "Give each store its own name"):
        topology.add_state_store(Stores.key_value("kept", String, Long))
    with refused("there is already a store 'kept' with other settings"):
        topology.add_state_store(Stores.session("kept", String, String, retention=1000))


def test_equal_store_again_only_connects() -> None:
    topology = Topology().add_source("source", "in")
    topology.add_processor("one", Forward, "source").add_processor("two", Forward, "source")
    topology.add_state_store(store("kept"), "one").add_state_store(store("kept"), "two")
    assert str(topology.describe()).count("(stores: [kept])") == 2


def test_two_tables_with_one_store() -> None:
    builder = StreamsBuilder()
    stream(builder, "a").group_by_key().count(store="counts", name="first")
    stream(builder, "b").group_by_key().count(store="counts", name="second")
    with refused("step 'second'", "already a store 'counts', used by 'first'", "its own name"):
        builder.build()


def test_table_with_the_store_of_a_processor() -> None:
    builder = StreamsBuilder().add_state_store(store("kept"))
    builder.table("in", store="kept", name="rows")
    with refused("step 'rows'", "already a store 'kept', used by no step", "its own name"):
        builder.build()


def test_global_table_with_the_store_of_a_table() -> None:
    builder = StreamsBuilder()
    builder.table("a", store="rows", name="local")
    builder.global_table("b", store="rows", name="everywhere")
    with refused("step 'everywhere'", "already a store 'rows', used by 'local'"):
        builder.build()


def test_store_of_an_unknown_processor() -> None:
    topology = Topology().add_source("source", "in").add_processor("p", Forward, "source")
    with refused("store 'kept'", "no processor 'q' to connect it to", "known processors: p"):
        topology.add_state_store(store("kept"), "q")


def test_store_of_a_source() -> None:
    topology = Topology().add_source("source", "in")
    with refused("store 'kept'", "no processor 'source'", "known processors: none"):
        topology.add_state_store(store("kept"), "source")


@pytest.mark.parametrize(("method", "supplier"), [("process", Forward), ("process_values", ForwardValue)])
def test_process_with_an_unknown_store(method: str, supplier: Any) -> None:
    builder = StreamsBuilder().add_state_store(store("known"))
    getattr(stream(builder, "in"), method)(supplier, "kown", name="mine")
    with refused("step 'mine'", "no store 'kown'", "Add it first with add_state_store", "known stores: known"):
        builder.build()


class AsksFor(Processor[Any, Any]):
    def init(self, context: Any) -> None:
        context.state_store("kept")


def test_processor_asks_for_a_store_it_is_not_connected_to() -> None:
    topology = Topology().add_source("source", "in").add_processor("p", AsksFor, "source")
    topology.add_processor("other", Forward, "source").add_state_store(store("kept"), "other")
    with refused("step 'p' is not connected to store 'kept'", "add_state_store(builder, 'p')"):
        TopologyTestDriver(topology)


def test_process_asks_for_a_store_it_does_not_name() -> None:
    builder = StreamsBuilder().add_state_store(store("kept"))
    stream(builder, "in").process(AsksFor, name="p")
    with refused("step 'p' is not connected to store 'kept'", "process(supplier, 'kept')"):
        TopologyTestDriver(builder.build())
