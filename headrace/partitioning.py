"""Kafka's default partitioner: the same key goes to the same partition as from a Java client."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

SEED = 0x9747B28C
M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_WORD = struct.Struct("<I")
_MANY = 500
"""From so many keys on it pays to hash them together, even if all of them were seen before."""


def murmur2(data: bytes) -> int:
    """Return Kafka's 32-bit murmur2 hash, unsigned.

    >>> murmur2(b"21") == -973932308 & 0xFFFFFFFF
    True
    """
    length = len(data)
    h = SEED ^ length
    whole = length & ~3
    for (k,) in _WORD.iter_unpack(data[:whole]):
        k = (k * M) & _MASK
        k = ((k ^ (k >> 24)) * M) & _MASK
        h = ((h * M) & _MASK) ^ k
    rest = data[whole:]
    if rest:
        h = ((h ^ int.from_bytes(rest, "little")) * M) & _MASK
    h = ((h ^ (h >> 13)) * M) & _MASK
    return h ^ (h >> 15)


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
    from headrace.murmur2 import murmur2_all  # numpy takes long to import for a command that writes little

    chosen: list[int] = ((murmur2_all(keys) & 0x7FFFFFFF) % partitions).tolist()
    return chosen
