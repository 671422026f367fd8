"""The order in which a task takes the records of several lanes, and how they are cut into pages."""

from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.raw_records import RawRecord
from headrace.task import batches
from headrace.task.batches import process_lanes, process_pages
from headrace.task.lanes import Lane, joined, merge_order, taken_in

Turn = tuple[str, int, list[int], int]
"""(topic, partition, sequences of the records, ordinal of the first)."""


def lane(topic: str, partition: int, *records: tuple[int, int]) -> Lane:
    """Return a lane of (timestamp, sequence)."""
    raw: list[RawRecord] = [(offset, time, None, None, None, number) for offset, (time, number) in enumerate(records)]
    return Lane.of_source(topic, partition, raw)


def turns_of(lanes: Sequence[Lane]) -> list[Turn]:
    turns: list[Turn] = []

    def note(topic: str, partition: int, records: Sequence[RawRecord], ordinal: int) -> None:
        turns.append((topic, partition, [record[5] for record in records], ordinal))

    causes = process_lanes(lanes, note)
    assert len(causes) == sum(len(lane.records) for lane in lanes)
    return turns


def test_records_that_follow_each_other_in_a_topic_partition_are_processed_together() -> None:
    lanes = [lane("a", 0, (1, 0), (2, 1), (7, 4)), lane("b", 0, (3, 2), (8, 5))]

    assert turns_of(lanes) == [("a", 0, [0, 1], 0), ("b", 0, [2], 2), ("a", 0, [4], 3), ("b", 0, [5], 4)]


def test_lanes_of_one_topic_partition_are_one() -> None:
    lanes = [lane("a", 0, (1, 0), (3, 2)), lane("a", 0, (2, 1), (4, 3)), lane("a", 1, (9, 4))]

    assert turns_of(lanes) == [("a", 0, [0, 1, 2, 3], 0), ("a", 1, [4], 4)]


def test_lanes_that_are_in_order_keep_it() -> None:
    assert turns_of([lane("a", 0, (1, 0)), lane("a", 0), lane("b", 0, (2, 1))]) == [("a", 0, [0], 0), ("b", 0, [1], 1)]


def test_there_may_be_no_records() -> None:
    assert turns_of([]) == []
    assert turns_of([lane("a", 0), lane("b", 0)]) == []


def test_many_records_are_cut_into_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PAGE", 2)
    lanes = [lane("a", 0, (1, 0), (2, 1), (3, 2), (9, 4)), lane("b", 0, (4, 3))]

    assert turns_of(lanes) == [("a", 0, [0, 1], 0), ("a", 0, [2], 2), ("b", 0, [3], 3), ("a", 0, [4], 4)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30))
def test_lanes_are_processed_in_the_order_of_causes(arrivals: list[tuple[int, int]]) -> None:
    sequences = count()
    rows: list[list[tuple[int, int]]] = [[], [], [], []]
    for number, timestamp in arrivals:
        rows[number].append((timestamp, next(sequences)))
    lanes = [lane("ab"[number % 2], number // 3, *records) for number, records in enumerate(rows)]
    records = [record for one in lanes for record in one.records]
    order = merge_order(joined([one.causes for one in lanes]))

    turns = turns_of(lanes)

    assert [sequence for turn in turns for sequence in turn[2]] == [record[5] for record in taken_in(order, records)]
    assert [ordinal for *_, ordinal in turns] == [sum(len(t[2]) for t in turns[:n]) for n in range(len(turns))]


def test_pages_are_processed_as_they_come() -> None:
    seen: list[object] = []

    def pages() -> Iterator[Lane]:
        for sequence in range(3):
            seen.append("read")
            yield lane("a", 0, (sequence, sequence))

    causes = process_pages(pages(), lambda topic, partition, records, ordinal: seen.append(ordinal))

    assert seen == ["read", 0, "read", 1, "read", 2]
    assert causes.times.tolist() == [0, 1, 2]
