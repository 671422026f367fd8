"""Kafka's hash of many keys at once, with numpy. It takes a tenth of the time of hashing one key after the other.

Tests: `tests/brokers/test_partitioning.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headrace.murmur2 import SEED, M, murmur2

_FEW = 32
"""With fewer keys than this, numpy is not faster than hashing them one by one."""
_REST = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)
"""Masks for the last bytes of a key, by their number."""


def murmur2_all(keys: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return Kafka's 32-bit murmur2 hash of each key, unsigned.

    >>> murmur2_all([b"21", b"foobar"]).tolist() == [murmur2(b"21"), murmur2(b"foobar")]
    True
    """
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    starts = np.cumsum(lengths) - lengths
    # Longest first: the keys that have another word to hash are then always at the front.
    order = np.argsort(-lengths, kind="stable")
    lengths, starts = lengths[order], starts[order]
    data = b"".join([*keys, bytes(4)])
    words = np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))  # the four bytes from each position on

    hashed = lengths.astype(np.uint32) ^ np.uint32(SEED)
    whole = lengths >> 2
    left = len(keys)
    for step in range(int(whole[0]) if left else 0):
        left = int(np.searchsorted(-whole, -step))  # whole > step
        if left < _FEW:
            break
        word = words[starts[:left] + 4 * step] * np.uint32(M)
        word ^= word >> np.uint32(24)
        word *= np.uint32(M)
        hashed[:left] *= np.uint32(M)
        hashed[:left] ^= word
    else:
        left = 0

    rest = lengths & 3
    tail = words[starts + (lengths - rest)] & _REST[rest]
    hashed = np.where(rest > 0, (hashed ^ tail) * np.uint32(M), hashed)
    hashed ^= hashed >> np.uint32(13)
    hashed *= np.uint32(M)
    hashed ^= hashed >> np.uint32(15)

    result = np.empty_like(hashed)
    result[order] = hashed
    for number in order[:left].tolist():
        result[number] = murmur2(keys[number])
    return result
