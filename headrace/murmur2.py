"""Kafka's hash of a key, one key at a time.

Tests: `tests/brokers/test_partitioning.py`.
"""

from __future__ import annotations

import struct

SEED = 0x9747B28C
M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_WORD = struct.Struct("<I")


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
