"""Tasks without state, which run where their records are.

Tests: headrace.engine.stateless, headrace.engine.inputs, headrace.engine.routing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from headrace import KStream, StreamsBuilder, StreamsConfig, Topology, serdes
from headrace.engine import routing, stateless
from headrace.task import batches, outputs
from headrace.testing import TopologyTestDriver
from tests.engine.memory_broker import MemoryTransaction
from tests.engine.memory_engine import MemoryEngine

Stream: TypeAlias = KStream[Any, Any]
TEXT: dict[str, Any] = {"key_serde": serdes.String, "value_serde": serdes.String}


def by_two_tasks(first: Stream) -> Stream:
    """Send records through two tasks of one unit, and bring them together again."""
    return first.repartition(name="two", partitions=2, **TEXT).select_key(lambda key, value: "all")


def by_two_topics(first: Stream) -> Stream:
    """Send records through two topics to one task."""
    small, large = (
        first.filter(lambda key, value, odd=odd: ord(value) % 2 == odd).repartition(name=f"odd{odd}", **TEXT)  # type: ignore[misc]
        for odd in (0, 1)
    )
    return small.merge(large).select_key(lambda key, value: "all")


def by_many_repartitions(first: Stream) -> Stream:
    """Send records from one task without state to the next."""
    for number in range(5):
        first = first.repartition(name=f"step{number}", partitions=2, **TEXT).map_values(str.lower)
    return first.select_key(lambda key, value: "all")


def in_a_circle(first: Stream) -> Stream:
    """Send records back to where they came from, by way of another task."""
    once = first.repartition(name="once", partitions=2, **TEXT)
    again = once.filter(lambda key, value: value < "c").map_values(lambda value: value + "!")
    back = again.repartition(name="again", partitions=2, **TEXT).select_key(lambda key, value: value)
    return once.merge(back.repartition(name="back", partitions=2, **TEXT))


@pytest.mark.parametrize("way", [by_two_tasks, by_two_topics, by_many_repartitions, in_a_circle])
@pytest.mark.parametrize("counts_before", [True, False], ids=["behind state", "from a topic"])
@pytest.mark.parametrize(("size", "page"), [(1, 10_000), (5, 10_000), (None, 10_000), (None, 3)])
def test_records_keep_their_order_through_tasks_without_state(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[Stream], Stream],
    counts_before: bool,
    size: int | None,
    page: int,
) -> None:
    for module, name in ((outputs, "PAGE"), (batches, "PAGE"), (stateless, "_ENOUGH")):
        monkeypatch.setattr(module, name, page)

    def build() -> Topology:
        builder = StreamsBuilder()
        first = builder.stream("in", **TEXT)
        if counts_before:
            first = first.group_by_key(**TEXT).reduce(lambda old, new: new, store="first").to_stream()
        together = way(first).repartition(name="one", partitions=1, **TEXT).group_by_key(**TEXT)
        together.reduce(lambda old, new: old + new, store="all").to_stream().to("out", **TEXT)
        return builder.build()

    config = StreamsConfig(application_id="app", num_partitions=1, statestore_cache_max_bytes=0)
    engine = MemoryEngine(build(), config, tmp_path)
    with TopologyTestDriver(build(), {"statestore_cache_max_bytes": 0}) as driver:
        for number, letter in enumerate("abcdefghijkl" * 3):
            driver.pipe("in", letter.encode(), letter.encode(), 1000 + number, [])
            engine.produce("in", letter.encode(), letter.encode(), 1000 + number)
        expected = [(key, value) for key, value, *_ in driver.queue("out")]

    engine.run(size)

    assert [(key, value) for _, _, key, value, *_ in engine.records("out")] == expected


def by_unequal_ways(first: Stream) -> Stream:
    """Send records to one task by two ways, one of which leads through another task."""
    direct = first.filter(lambda key, value: ord(value) % 2 == 0).repartition(name="direct", **TEXT)
    around = first.filter(lambda key, value: ord(value) % 2 == 1).repartition(name="around", **TEXT)
    return direct.merge(around.map_values(str.lower).repartition(name="further", **TEXT))


@pytest.mark.parametrize("way", [by_two_topics, by_unequal_ways])
@pytest.mark.parametrize("counts_before", [True, False], ids=["behind state", "from a topic"])
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("page", [10_000, 3])
def test_a_task_without_state_takes_what_comes_by_several_ways_in_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[Stream], Stream],
    counts_before: bool,
    in_place: bool,
    page: int,
) -> None:
    for module, name in ((outputs, "PAGE"), (batches, "PAGE"), (stateless, "_ENOUGH")):
        monkeypatch.setattr(module, name, page)
    builder = StreamsBuilder()
    first = builder.stream("in", **TEXT)
    if counts_before:
        first = first.group_by_key(**TEXT).reduce(lambda old, new: new, store="first").to_stream()
    way(first).to("out", **TEXT)
    config = StreamsConfig(application_id="app", num_partitions=1, statestore_cache_max_bytes=0)
    engine = MemoryEngine(builder.build(), config, tmp_path, in_place=in_place)
    letters = "abcdefghijkl" * 3
    for number, letter in enumerate(letters):
        engine.produce("in", b"k", letter.encode(), 1000 + number)

    engine.run()

    assert [value for _, _, _, value, *_ in engine.records("out")] == [letter.encode() for letter in letters]


def test_a_task_writes_under_one_name_whatever_topics_it_finds_something_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StreamsBuilder()
    stream = builder.stream(["a", "b"], **TEXT)
    stream.to("out", **TEXT)
    stream.repartition(name="more", **TEXT).to("out", **TEXT)
    engine = MemoryEngine(builder.build(), StreamsConfig(application_id="app"), tmp_path, in_place=True)
    names: list[set[str]] = []
    send = MemoryTransaction.send

    def noting(self: MemoryTransaction, task: str, *rest: Any) -> int:
        names[-1].add(task)
        return send(self, task, *rest)

    monkeypatch.setattr(MemoryTransaction, "send", noting)
    for topics in (["a", "b"], ["a"], ["b"]):  # as when one of them is lost before the batch is done again
        names.append(set())
        for topic in topics:
            engine.produce(topic, b"k", b"v", 1000)
        engine.run()

    assert names[0] == names[1] == names[2]
    assert len(names[0]) == 2


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("joins", [False, True], ids=["two topics", "a stream and a global table"])
def test_equal_causes_have_one_order_whatever_comes_first(tmp_path: Path, joins: bool, backwards: bool) -> None:
    builder = StreamsBuilder()
    if joins:  # the table's row is there before the stream's record
        rows = builder.global_table("b", **TEXT)
        stream = builder.stream("a", **TEXT).join(rows, lambda value, row: f"{value}+{row}", key=lambda key, value: key)
    else:
        stream = builder.stream(["a", "b"], **TEXT)
    stream.to("out", **TEXT)
    engine = MemoryEngine(builder.build(), StreamsConfig(application_id="app"), tmp_path)
    for topic in ("a", "b"):  # as on Kafka, where the offset is all there is beside the timestamp
        engine.broker.topic_records[topic] = [[(0, 1000, b"k", topic.encode(), None, 0)]]
    end = engine.planner.next(engine.end)
    assert end is not None

    messages = engine.messages(end)
    made = engine.process(messages[::-1] if backwards else messages)
    engine.commit(made, end)

    assert [row[3] for row in engine.records("out")] == ([b"a+b"] if joins else [b"a", b"b"])


def test_a_long_stretch_goes_through_many_tasks_without_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "RECORDS_PER_MESSAGE", 2)
    builder = StreamsBuilder()
    by_many_repartitions(builder.stream("in", **TEXT)).to("out", **TEXT)
    engine = MemoryEngine(builder.build(), StreamsConfig(application_id="app", num_partitions=1), tmp_path)
    for number in range(100):
        engine.produce("in", b"k", b"%d" % number, 1000 + number)

    engine.run()

    assert [value for _, _, _, value, *_ in engine.records("out")] == [b"%d" % number for number in range(100)]
