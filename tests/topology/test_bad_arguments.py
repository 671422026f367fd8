"""Wrong arguments of every call that builds: a TopologyError at once, which names the call and the argument."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from headrace import StreamsBuilder, Topology, TopologyError
from tests.topology.cases.steps import (
    SESSIONS,
    SLIDING,
    TUMBLING,
    WINDOW,
    Forward,
    ForwardValue,
    both,
    empty,
    fold,
    same,
    store,
    to_value,
    yes,
)

Call = Callable[[Any], Any]


def records(b: Any) -> Any:
    return b.stream("records")


def rows(b: Any) -> Any:
    return b.table("rows")


def grouped(b: Any) -> Any:
    return records(b).group_by_key()


def grouped_rows(b: Any) -> Any:
    return rows(b).group_by(to_value)


FUNCTIONS: dict[str, tuple[str, Call]] = {
    "filter": ("filter", lambda b: records(b).filter(5)),
    "filter not": ("filter_not", lambda b: records(b).filter_not(5)),
    "map": ("map", lambda b: records(b).map(5)),
    "flat map": ("flat_map", lambda b: records(b).flat_map(5)),
    "select key": ("select_key", lambda b: records(b).select_key(5)),
    "map values": ("map_values", lambda b: records(b).map_values(5)),
    "flat map values": ("flat_map_values", lambda b: records(b).flat_map_values(5)),
    "peek": ("peek", lambda b: records(b).peek(5)),
    "for each": ("for_each", lambda b: records(b).for_each(5)),
    "split": ("split, branch 'a'", lambda b: records(b).split({"a": 5})),
    "group by": ("group_by", lambda b: records(b).group_by(5)),
    "sink partitioner": ("to, partitioner", lambda b: records(b).to("out", partitioner=5)),
    "partitioner": ("repartition, partitioner", lambda b: records(b).repartition(partitioner=5)),
    "reduce": ("reduce", lambda b: grouped(b).reduce(5)),
    "initializer": ("aggregate, initializer", lambda b: grouped(b).aggregate(5, fold)),
    "aggregator": ("aggregate, aggregator", lambda b: grouped(b).aggregate(empty, 5)),
    "windowed reduce": ("reduce", lambda b: grouped(b).windowed_by(TUMBLING).reduce(5)),
    "windowed initializer": ("initializer", lambda b: grouped(b).windowed_by(TUMBLING).aggregate(5, fold)),
    "windowed aggregator": ("aggregator", lambda b: grouped(b).windowed_by(SLIDING).aggregate(empty, 5)),
    "session reduce": ("reduce", lambda b: grouped(b).windowed_by(SESSIONS).reduce(5)),
    "session initializer": ("initializer", lambda b: grouped(b).windowed_by(SESSIONS).aggregate(5, fold, fold)),
    "session aggregator": ("aggregator", lambda b: grouped(b).windowed_by(SESSIONS).aggregate(empty, 5, fold)),
    "session merger": ("merger", lambda b: grouped(b).windowed_by(SESSIONS).aggregate(empty, fold, 5)),
    "cogroup": ("cogroup, aggregator", lambda b: grouped(b).cogroup(5)),
    "second cogroup": (
        "cogroup, aggregator",
        lambda b: grouped(b).cogroup(fold).cogroup(b.stream("x").group_by_key(), 5),
    ),
    "cogroup initializer": ("aggregate, initializer", lambda b: grouped(b).cogroup(fold).aggregate(5)),
    "cogroup merger": ("aggregate, merger", lambda b: grouped(b).cogroup(fold).aggregate(empty, merger=5)),
    "table filter": ("filter", lambda b: rows(b).filter(5)),
    "table filter not": ("filter_not", lambda b: rows(b).filter_not(5)),
    "table map values": ("map_values", lambda b: rows(b).map_values(5)),
    "to stream": ("to_stream, key", lambda b: rows(b).to_stream(5)),
    "table group by": ("group_by", lambda b: rows(b).group_by(5)),
    "table adder": ("reduce, adder", lambda b: grouped_rows(b).reduce(5, both)),
    "table subtractor": ("reduce, subtractor", lambda b: grouped_rows(b).reduce(both, 5)),
    "table initializer": ("aggregate, initializer", lambda b: grouped_rows(b).aggregate(5, fold, fold)),
    "table aggregate adder": ("aggregate, adder", lambda b: grouped_rows(b).aggregate(empty, 5, fold)),
    "table aggregate subtractor": ("aggregate, subtractor", lambda b: grouped_rows(b).aggregate(empty, fold, 5)),
}

JOINS: dict[str, tuple[str, Call]] = {
    "joiner": ("join: expected joiner", lambda b: records(b).join(b.stream("x"), 5, window=WINDOW)),
    "left joiner": ("left_join: expected joiner", lambda b: records(b).left_join(rows(b), 5)),
    "outer joiner": ("outer_join: expected joiner", lambda b: records(b).outer_join(b.stream("x"), 5, window=WINDOW)),
    "window": ("join of two streams needs window", lambda b: records(b).join(b.stream("x"), both, window=5)),
    "other": ("join: expected a KStream, KTable or GlobalKTable", lambda b: records(b).join(5, both)),
    "grouped": ("expected a KStream, KTable or GlobalKTable", lambda b: records(b).join(grouped_rows(b), both)),
    "lookup": ("expected key= to be a function", lambda b: records(b).join(b.global_table("x"), both, key=5)),
    "table joiner": ("join: expected joiner", lambda b: rows(b).join(b.table("x"), 5)),
    "table other": ("join of a table: expected a KTable", lambda b: rows(b).join(5, both)),
    "table stream": ("left_join of a table: expected a KTable", lambda b: rows(b).left_join(records(b), both)),
    "foreign key": ("expected foreign_key to be a function", lambda b: rows(b).join(b.table("x"), both, foreign_key=5)),
    "merge": ("merge: expected a KStream", lambda b: records(b).merge(5)),
    "merge table": ("merge: expected a KStream, got KTable", lambda b: records(b).merge(rows(b))),
    "cogroup other": ("cogroup: expected a GroupedStream", lambda b: grouped(b).cogroup(fold).cogroup(5, fold)),
}

OTHERS: dict[str, tuple[str, Call]] = {
    "topics": ("stream: expected a topic, several topics or a pattern", lambda b: b.stream(5)),
    "topic in a list": ("stream, topic: expected a name", lambda b: b.stream(["a", 5])),
    "no topic": ("stream: expected a topic, several topics or a pattern", lambda b: b.stream(None)),
    "table of several topics": ("table, topic: expected a name", lambda b: b.table(["a", "b"])),
    "global table of a pattern": ("global_table, topic: expected a name", lambda b: b.global_table(re.compile("a"))),
    "sink topic": ("to, topic: expected a name", lambda b: records(b).to(5)),
    "branches": ("split: expected a dict of predicates by branch", lambda b: records(b).split([yes])),
    "no branches": ("split: expected at least one branch", lambda b: records(b).split({})),
    "default twice": ("split: the default branch needs a name", lambda b: records(b).split({"a": yes}, default="a")),
    "partitions": ("repartition, partitions: expected a whole number", lambda b: records(b).repartition(partitions=0)),
    "partitions as text": ("repartition, partitions", lambda b: records(b).repartition(partitions="4")),
    "partitions as flag": ("repartition, partitions", lambda b: records(b).repartition(partitions=True)),
    "windows": ("windowed_by: expected TumblingWindows", lambda b: grouped(b).windowed_by(5)),
    "join windows": ("windowed_by: expected TumblingWindows", lambda b: grouped(b).windowed_by(WINDOW)),
    "cogroup windows": ("windowed_by: expected Tumbling", lambda b: grouped(b).cogroup(fold).windowed_by(5)),
    "strategy": ("emit_strategy: expected EmitStrategy", lambda b: grouped(b).windowed_by(TUMBLING).emit_strategy(5)),
    "session strategy": ("emit_strategy: expected", lambda b: grouped(b).windowed_by(SESSIONS).emit_strategy("close")),
    "suppressed": ("suppress: expected Suppressed.until_", lambda b: rows(b).suppress(5)),
    "supplier": ("process: expected a supplier", lambda b: records(b).process(5)),
    "processor": ("process 'p': expected a supplier", lambda b: records(b).process(Forward(), name="p")),
    "class as a hint": ("Pass the class: ForwardValue", lambda b: records(b).process_values(ForwardValue())),
    "store of a process": ("process, store: expected a name", lambda b: records(b).process(Forward, store("x"))),
    "store builder": ("add_state_store: expected a builder", lambda b: b.add_state_store("x")),
}

STORES: list[tuple[str, Call]] = [
    ("table", lambda b: b.table("in", store=5)),
    ("global_table", lambda b: b.global_table("in", store=5)),
    ("to_table", lambda b: records(b).to_table(store=5)),
    ("count", lambda b: grouped(b).count(store=5)),
    ("reduce", lambda b: grouped(b).reduce(both, store=5)),
    ("aggregate", lambda b: grouped(b).aggregate(empty, fold, store=5)),
    ("count", lambda b: grouped(b).windowed_by(TUMBLING).count(store=5)),
    ("reduce", lambda b: grouped(b).windowed_by(SLIDING).reduce(both, store=5)),
    ("aggregate", lambda b: grouped(b).windowed_by(SESSIONS).aggregate(empty, fold, fold, store=5)),
    ("aggregate", lambda b: grouped(b).cogroup(fold).aggregate(empty, store=5)),
    ("filter", lambda b: rows(b).filter(yes, store=5)),
    ("filter_not", lambda b: rows(b).filter_not(yes, store=5)),
    ("map_values", lambda b: rows(b).map_values(same, store=5)),
    ("count", lambda b: grouped_rows(b).count(store=5)),
    ("reduce", lambda b: grouped_rows(b).reduce(both, both, store=5)),
    ("aggregate", lambda b: grouped_rows(b).aggregate(empty, fold, fold, store=5)),
    ("join", lambda b: rows(b).join(b.table("x"), both, store=5)),
    ("left_join", lambda b: rows(b).left_join(b.table("x"), both, foreign_key=same, store=5)),
]

SERDES: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "stream": lambda b, serdes: b.stream("in", **serdes),
    "table": lambda b, serdes: b.table("in", **serdes),
    "global_table": lambda b, serdes: b.global_table("in", **serdes),
    "to": lambda b, serdes: records(b).to("out", **serdes),
    "repartition": lambda b, serdes: records(b).repartition(**serdes),
    "to_table": lambda b, serdes: records(b).to_table(**serdes),
    "group_by_key": lambda b, serdes: records(b).group_by_key(**serdes),
    "group_by": lambda b, serdes: records(b).group_by(to_value, **serdes),
    "join": lambda b, serdes: records(b).join(b.stream("x"), both, window=WINDOW, **serdes),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_no_function(case: str) -> None:
    what, call = FUNCTIONS[case]
    with pytest.raises(TopologyError, match=rf"{re.escape(what)}: expected a function, got int \(5\)"):
        call(StreamsBuilder())


@pytest.mark.parametrize("case", JOINS)
def test_wrong_side_or_function_of_a_join(case: str) -> None:
    message, call = JOINS[case]
    with pytest.raises(TopologyError, match=re.escape(message)):
        call(StreamsBuilder())


@pytest.mark.parametrize("case", OTHERS)
def test_wrong_argument(case: str) -> None:
    message, call = OTHERS[case]
    with pytest.raises(TopologyError, match=re.escape(message)):
        call(StreamsBuilder())


@pytest.mark.parametrize(("what", "call"), STORES)
def test_wrong_store(what: str, call: Call) -> None:
    message = rf"^{what}, store: expected a name or Materialized\(\.\.\.\), got int \(5\)"
    with pytest.raises(TopologyError, match=message):
        call(StreamsBuilder())


@pytest.mark.parametrize("part", ["key_serde", "value_serde"])
@pytest.mark.parametrize("case", SERDES)
def test_wrong_serde(case: str, part: str) -> None:
    with pytest.raises(TopologyError, match=rf"^{case}, {part}: expected a serde such as serdes.String, got .*int"):
        SERDES[case](StreamsBuilder(), {part: int})


def test_wrong_serde_of_the_other_side() -> None:
    b = StreamsBuilder()
    with pytest.raises(TopologyError, match="join, other_value_serde: expected a serde"):
        records(b).join(b.stream("x"), both, window=WINDOW, other_value_serde=5)


def test_wrong_settings_of_a_source() -> None:
    topology: Any = Topology()
    with pytest.raises(
        TopologyError, match="source 's': offset_reset must be one of earliest, latest, none, got 'first'"
    ):
        topology.add_source("s", "in", offset_reset="first")
    with pytest.raises(
        TopologyError, match="global_table: offset_reset must be one of earliest, latest, none, got 'first'"
    ):
        StreamsBuilder().global_table("in", offset_reset="first")
    with pytest.raises(TopologyError, match="source 's', timestamp_extractor: expected a function, got int"):
        topology.add_source("s", "in", timestamp_extractor=5)
    with pytest.raises(TopologyError, match="source 's', key_serde: expected a serde"):
        topology.add_source("s", "in", key_serde=str)
    with pytest.raises(TopologyError, match="source 's', topic: expected a name"):
        topology.add_source("s", 5)


def test_wrong_settings_of_a_sink() -> None:
    topology: Any = Topology().add_source("s", "in")
    with pytest.raises(TopologyError, match="sink 'k', topic: expected a name"):
        topology.add_sink("k", 5, "s")
    with pytest.raises(TopologyError, match="sink 'k', partitioner: expected a function"):
        topology.add_sink("k", "out", "s", partitioner=5)
    with pytest.raises(TopologyError, match="sink 'k', value_serde: expected a serde"):
        topology.add_sink("k", "out", "s", value_serde=str)


def test_wrong_processor() -> None:
    topology: Any = Topology().add_source("s", "in")
    with pytest.raises(TopologyError, match=r"processor 'p': expected a supplier, .* Pass the class: Forward"):
        topology.add_processor("p", Forward(), "s")
    with pytest.raises(TopologyError, match="add_state_store: expected a builder such as"):
        topology.add_state_store("store")


def test_nothing_is_added_by_a_refused_call() -> None:
    topology: Any = Topology().add_source("s", "in")
    with pytest.raises(TopologyError):
        topology.add_sink("k", "out", "s", "nobody")
    topology.add_sink("k", "out", "s")
    assert "--> k\n" in str(topology.describe())
