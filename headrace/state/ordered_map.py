"""A dict with keys of bytes that sorts them when a range is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

from sortedcontainers import SortedKeyList, SortedList

T = TypeVar("T")
TimeKey = Callable[[bytes], bytes]
"""Turns a key into the bytes that sort it by time. A time key is unique, as a key is."""


class OrderedMap(Generic[T]):
    """Keep entries by key, and sort the keys once a range is asked for.

    A store that is never asked for a range pays for a dict only. With `time_key` the keys have a second order, by time.
    """

    __slots__ = ("_by_key", "_by_time", "data", "time_key")

    def __init__(self, time_key: TimeKey | None = None) -> None:
        self.data: dict[bytes, T] = {}
        self.time_key = time_key
        self._by_key: Any = None
        self._by_time: Any = None

    def update(self, changes: Mapping[bytes, T | None]) -> None:
        """Put several entries; None deletes."""
        data, new, gone = self.data, [], []
        for key, value in changes.items():
            if value is not None:
                if key not in data:
                    new.append(key)
                data[key] = value
            elif data.pop(key, None) is not None:
                gone.append(key)
        for order in (self._by_key, self._by_time):
            if order is not None:
                for key in gone:
                    order.remove(key)
                order.update(new)

    def between(self, low: bytes | None, high: bytes | None) -> list[bytes]:
        """Return the keys from low to high, both included, at once."""
        return list(self._keys().irange(low, high))

    def iterate(self, low: bytes | None, high: bytes | None, *, reverse: bool = False) -> Iterator[bytes]:
        """Walk the keys from low to high, both included. Entries may change during the walk."""
        return in_chunks(self._keys().irange, low, high, reverse, None)

    def iterate_by_time(self, low: bytes, high: bytes) -> Iterator[bytes]:
        """Walk the keys with time keys from low to high, both included. Entries may change during the walk."""
        assert self.time_key is not None
        if self._by_time is None:
            self._by_time = SortedKeyList(self.data, key=self.time_key)
        return in_chunks(self._by_time.irange_key, low, high, False, self.time_key)

    def _keys(self) -> Any:
        if self._by_key is None:
            self._by_key = SortedList(self.data)
        return self._by_key


def in_chunks(
    irange: Callable[..., Iterator[bytes]],
    low: bytes | None,
    high: bytes | None,
    reverse: bool,
    time_key: TimeKey | None,
) -> Iterator[bytes]:
    """Read a range in chunks and search again for each of them, so that changes between two keys do no harm."""
    size = 16
    inclusive = (True, True)
    while True:
        chunk = list(islice(irange(low, high, inclusive, reverse), size))
        yield from chunk
        if len(chunk) < size:
            return
        last = chunk[-1] if time_key is None else time_key(chunk[-1])
        if reverse:
            high, inclusive = last, (inclusive[0], False)
        else:
            low, inclusive = last, (False, inclusive[1])
        size = min(size * 4, 4096)
