"""Offsets of partitions of several topics, in one flat dictionary.

Tests: `tests/brokers/kafka/test_batch_ends.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from headrace.brokers.batches import Offsets

PartitionId: TypeAlias = tuple[str, int]
"""A topic and the number of one of its partitions."""
PartitionOffsets: TypeAlias = dict[PartitionId, int]


def by_partition(offsets: Offsets) -> PartitionOffsets:
    """Return offsets by topic partition.

    >>> by_partition({"a": {0: 5, 1: 6}, "b": {0: 7}})
    {('a', 0): 5, ('a', 1): 6, ('b', 0): 7}
    """
    return {(topic, number): offset for topic, numbers in offsets.items() for number, offset in numbers.items()}


def by_topic(offsets: Mapping[PartitionId, int]) -> dict[str, dict[int, int]]:
    """Return offsets by topic, then by partition.

    >>> by_topic({("a", 0): 5, ("a", 1): 6, ("b", 0): 7})
    {'a': {0: 5, 1: 6}, 'b': {0: 7}}
    """
    result: dict[str, dict[int, int]] = {}
    for (topic, number), offset in offsets.items():
        result.setdefault(topic, {})[number] = offset
    return result


def not_before(begin: PartitionOffsets, ends: PartitionOffsets) -> PartitionOffsets:
    """Return the ends, but no end before its begin.

    >>> not_before({("a", 0): 5, ("a", 1): 6}, {("a", 0): 4, ("a", 1): 9})
    {('a', 0): 5, ('a', 1): 9}
    """
    return {partition: max(ends[partition], offset) for partition, offset in begin.items()}


def distance(begin: PartitionOffsets, ends: PartitionOffsets) -> int:
    """Return how many offsets lie between begins and ends, in all partitions together.

    >>> distance({("a", 0): 5, ("a", 1): 6}, {("a", 0): 8, ("a", 1): 7})
    4
    """
    return sum(ends[partition] - offset for partition, offset in begin.items())
