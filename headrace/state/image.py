"""The seam between stores and their storage: the entries of a task's stores as of the last commit, as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias

from headrace.state.ordered_map import OrderedMap, TimeKey

Changes: TypeAlias = dict[bytes, bytes | None]
"""What a commit changes in one space: key to value, or to None for a delete."""


class Space(Protocol):
    """The committed entries of one store, in the order of their keys' bytes."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""

    def between(self, low: bytes | None, high: bytes | None) -> list[tuple[bytes, bytes]]:
        """Return the entries from low to high, both included, at once."""

    def iterate(self, low: bytes | None, high: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Walk the entries from low to high, both included. The space may change during the walk."""

    def iterate_by_time(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Walk the entries with time keys from low to high, both included, in the order of their time keys."""

    def apply(self, changes: Changes) -> None:
        """Make the changes of a commit."""

    def __len__(self) -> int: ...


class Image(Protocol):
    """The committed entries of all stores of a task."""

    def space(self, name: str, time_key: TimeKey | None = None) -> Space:
        """Open a space; `time_key` makes its time order, if it has one."""


class MemorySpace:
    """A space in a dict."""

    __slots__ = ("_map",)

    def __init__(self, time_key: TimeKey | None = None) -> None:
        self._map: OrderedMap[bytes] = OrderedMap(time_key)

    def get(self, key: bytes) -> bytes | None:
        return self._map.data.get(key)

    def between(self, low: bytes | None, high: bytes | None) -> list[tuple[bytes, bytes]]:
        if not self._map.data:
            return []
        data = self._map.data
        return [(key, data[key]) for key in self._map.between(low, high)]

    def iterate(self, low: bytes | None, high: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        return self._entries(self._map.iterate(low, high, reverse=reverse))

    def iterate_by_time(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._entries(self._map.iterate_by_time(low, high)) if self._map.data else iter(())

    def _entries(self, keys: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
        data = self._map.data
        for key in keys:
            value = data.get(key)
            if value is not None:
                yield key, value

    def apply(self, changes: Changes) -> None:
        self._map.update(changes)

    def __len__(self) -> int:
        return len(self._map.data)


class MemoryImage:
    """An image in the memory of this process.

    >>> image = MemoryImage({"counts": {b"a": b"1"}})
    >>> image.space("counts").get(b"a")
    b'1'
    """

    def __init__(self, entries: Mapping[str, Changes] | None = None) -> None:
        self._entries = dict(entries or {})
        self._spaces: dict[str, MemorySpace] = {}

    def space(self, name: str, time_key: TimeKey | None = None) -> MemorySpace:
        if name not in self._spaces:
            space = MemorySpace(time_key)
            space.apply(self._entries.pop(name, {}))
            self._spaces[name] = space
        return self._spaces[name]
