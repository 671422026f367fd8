"""Kafka's default partitioner: the same key goes to the same partition as from a Java client.

Tests: `tests/brokers/test_partitioning.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from headrace.murmur2 import murmur2

_MANY = 500
"""From this number of keys on it is faster to hash them together, even if all of them are in the cache."""


@lru_cache(maxsize=1 << 16)
def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, as Kafka's default partitioner chooses it."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partitions_of(keys: Sequence[bytes], partitions: int) -> list[int]:
    """Return the partition of each key.

    >>> partitions_of([b"ann", b"zoe"], 2) == [partition_of(b"ann", 2), partition_of(b"zoe", 2)]
    True
    """
    if len(keys) < _MANY:
        return [partition_of(key, partitions) for key in keys]
    from headrace.murmur2_numpy import murmur2_all  # numpy takes long to import for a command that writes little

    chosen: list[int] = ((murmur2_all(keys) & 0x7FFFFFFF) % partitions).tolist()
    return chosen
