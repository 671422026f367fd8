"""The epochs of a task in a map of Spark, under numbers."""

from collections.abc import Iterator
from typing import Any

from headrace.engine.state_log import Head
from headrace.spark.state import SparkEpochStore


class SparkMap:
    """A map of Spark's, as far as the store uses it."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:
        return self.entries.get(key)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.entries[key] = value

    def removeKey(self, key: tuple[int]) -> None:
        del self.entries[key]

    def keys(self) -> Iterator[tuple[int]]:
        return iter(list(self.entries))


def test_every_part_has_a_number_of_its_own() -> None:
    store = SparkEpochStore(SparkMap())
    parts = [(1, 0), (1, 1), (2, 0), (2, -1), (2, -2), (3, -1), (10**9, 500_000), (10**9, -500_000)]
    for number, (epoch, part) in enumerate(parts):
        store.put(epoch, part, b"%d" % number)
    store.set_head(Head(3, "attempt", 2, 2, 10))

    assert [store.get(epoch, part) for epoch, part in parts] == [b"%d" % n for n in range(len(parts))]
    assert sorted(store.keys()) == sorted(parts)
    assert store.head() == Head(3, "attempt", 2, 2, 10)


def test_a_part_that_was_removed_is_gone() -> None:
    store = SparkEpochStore(SparkMap())
    store.put(1, 0, b"one")

    store.remove(1, 0)

    assert store.get(1, 0) is None
    assert list(store.keys()) == []
    assert store.head() is None
