"""The records of a left or outer join that have no match yet."""

from typing import Any

import pytest

from headrace import serdes
from headrace.state.builders import unmatched_records
from headrace.state.unmatched_records import LEFT, RIGHT
from tests.state.committed_store import CommittedStore


@pytest.fixture
def kept() -> CommittedStore:
    return CommittedStore(unmatched_records("unmatched", serdes.String, serdes.String, serdes.Json))


def walked(kept: CommittedStore) -> list[tuple[int, int, Any, list[Any]]]:
    return [(timestamp, side, key, values) for timestamp, side, key, values, _ in kept.store.walk()]


def test_records_come_by_time_then_right_before_left_then_key(kept: CommittedStore) -> None:
    kept.store.add(5, LEFT, b"a", "l")
    kept.store.add(5, RIGHT, b"b", [1])
    kept.store.add(5, RIGHT, b"a", [2])
    kept.store.add(3, LEFT, b"z", "first")

    expected = [(3, LEFT, "z", ["first"]), (5, RIGHT, "a", [[2]]), (5, RIGHT, "b", [[1]]), (5, LEFT, "a", ["l"])]
    assert walked(kept) == expected
    kept.commit()
    assert walked(kept) == expected
    kept.rebuild()
    assert walked(kept) == expected


def test_records_with_one_entry_key_come_in_the_order_of_their_arrival(kept: CommittedStore) -> None:
    for value in ("b", "a", "b"):
        kept.store.add(5, LEFT, b"k", value)

    assert walked(kept) == [(5, LEFT, "k", ["b", "a", "b"])]


def test_forget_removes_all_records_with_an_entry_key(kept: CommittedStore) -> None:
    kept.store.add(5, LEFT, b"k", "a")
    kept.store.add(5, LEFT, b"k", "b")
    kept.store.add(6, LEFT, b"k", "c")
    kept.commit()

    kept.store.forget(5, LEFT, b"k")
    kept.store.forget(6, RIGHT, b"k")
    kept.store.forget(7, LEFT, b"k")

    assert walked(kept) == [(6, LEFT, "k", ["c"])]
    assert list(kept.commit()["unmatched"].values()) == [None]


def test_records_may_be_removed_during_a_walk(kept: CommittedStore) -> None:
    for time in range(40):
        kept.store.add(time, LEFT, b"k", str(time))
    kept.commit()

    for timestamp, _, _, _, place in kept.store.walk():
        if timestamp >= 30:
            break
        kept.store.remove(place)

    assert [timestamp for timestamp, *_ in walked(kept)] == list(range(30, 40))


def test_a_record_earlier_than_all_that_were_removed_is_found(kept: CommittedStore) -> None:
    kept.store.add(50, LEFT, b"k", "x")
    for *_, place in kept.store.walk():
        kept.store.remove(place)
    assert walked(kept) == []

    kept.store.add(10, LEFT, b"k", "early")

    assert walked(kept) == [(10, LEFT, "k", ["early"])]


def test_a_record_left_in_the_middle_is_found_again(kept: CommittedStore) -> None:
    for time in (1, 2, 3):
        kept.store.add(time, LEFT, b"k", str(time))
    for timestamp, *_, place in kept.store.walk():
        if timestamp != 2:
            kept.store.remove(place)

    assert [timestamp for timestamp, *_ in walked(kept)] == [2]
    kept.store.add(1, LEFT, b"k", "again")
    assert [timestamp for timestamp, *_ in walked(kept)] == [1, 2]


def test_a_walk_does_not_look_at_removed_records(kept: CommittedStore) -> None:
    for time in range(2000):
        kept.store.add(time, LEFT, b"k", "x")
    kept.commit()
    for timestamp, *_, place in kept.store.walk():
        if timestamp >= 1000:
            break
        kept.store.remove(place)
    before = kept.touched

    for _ in range(10):
        next(kept.store.walk())

    assert kept.touched - before <= 20
