"""Invalid names of steps, stores, branches and topics."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from headrace import StreamsBuilder, Topology, TopologyError
from tests.topology.cases.steps import (
    WINDOW,
    Forward,
    ForwardValue,
    both,
    same,
    store,
    stream,
    table,
    to_value,
    yes,
)


@pytest.mark.parametrize("name", ["", "with space", "a/b", "ü", "x" * 250, ".", "..", 5, b"x"], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda b, name: b.stream("in", name=name),
        lambda b, name: b.table("in", name=name),
        lambda b, name: b.table("in", store=name),
        lambda b, name: b.global_table("in", name=name),
        lambda b, name: b.stream(name),
        lambda b, name: b.stream(["ok", name]),
        lambda b, name: b.table(name),
        lambda b, name: b.global_table(name),
        lambda b, name: stream(b, "in").filter(yes, name=name),
        lambda b, name: stream(b, "in").to(name),
        lambda b, name: stream(b, "in").to("out", name=name),
        lambda b, name: stream(b, "in").split({"a": yes}, name=name),
        lambda b, name: stream(b, "in").split({name: yes}),
        lambda b, name: stream(b, "in").split({"a": yes}, default=name),
        lambda b, name: stream(b, "in").repartition(name=name),
        lambda b, name: stream(b, "in").to_table(name=name),
        lambda b, name: stream(b, "in").group_by_key(name=name),
        lambda b, name: stream(b, "in").group_by(to_value, name=name),
        lambda b, name: stream(b, "in").group_by_key().count(store=name),
        lambda b, name: stream(b, "in").process(Forward, name=name),
        lambda b, name: stream(b, "in").process_values(ForwardValue, name=name),
        lambda b, name: stream(b, "in").process(Forward, name),
        lambda b, name: stream(b, "a").join(stream(b, "b"), both, window=WINDOW, name=name),
        lambda b, name: stream(b, "a").join(table(b, "b"), both, name=name),
        lambda b, name: table(b, "a").join(table(b, "b"), both, name=name),
        lambda b, name: table(b, "a").join(table(b, "b"), both, foreign_key=same, name=name),
        lambda b, name: table(b, "a").group_by(to_value, name=name),
    ],
)
def test_bad_name(call: Callable[[StreamsBuilder, Any], Any], name: Any) -> None:
    with pytest.raises(TopologyError, match="expected .*, got .*" + re.escape(repr(name))):
        call(StreamsBuilder(), name)


@pytest.mark.parametrize("name", ["", " ", "two\nlines", None, 5], ids=repr)
def test_bad_name_in_the_processor_api(name: Any) -> None:
    topology = Topology().add_source("source", "in")
    with pytest.raises(TopologyError, match=f"^source: expected a name, got {re.escape(repr(name))}"):
        topology.add_source(name, "other")
    with pytest.raises(TopologyError, match=f"^processor: expected a name, got {re.escape(repr(name))}"):
        topology.add_processor(name, Forward, "source")
    with pytest.raises(TopologyError, match=f"^sink: expected a name, got {re.escape(repr(name))}"):
        topology.add_sink(name, "out", "source")


def test_bad_store_name() -> None:
    with pytest.raises(TopologyError, match=r"a store needs a name .*, got 'my store'"):
        Topology().add_state_store(store("my store"))
