"""The changes since the last commit, on top of the image."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from sortedcontainers import SortedKeyList, SortedList

from headrace.state.image import Changes, Space
from headrace.state.ordered_map import TimeKey, in_chunks

ABSENT: Any = object()
"""The default for `live.get`. It tells a key that was not read or changed yet from a deleted key, which is None."""


class Overlay:
    """Read through to an image, and keep every entry that was read or changed as an object until the commit.

    An entry of the image is read once, when it is first needed. `live` maps a key to its object, or to None when it is
    deleted. `unchanged` has the keys that were only read. Stores use both directly on the hot path. Values are turned
    into bytes once, at the commit, however often they changed.

    A put costs little more than one dict entry. Keys are sorted when a range is asked for: `live` remembers the order
    of insertion, so the keys that are new since the last range are its last ones.
    """

    __slots__ = (
        "_by_key",
        "_by_time",
        "_decode",
        "_encode",
        "_grouped",
        "_groups",
        "_space",
        "_suffix",
        "_time_key",
        "find",
        "live",
        "unchanged",
    )

    def __init__(
        self,
        space: Space,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
        time_key: TimeKey | None = None,
        suffix: int = 0,
    ) -> None:
        """Start without changes. Keys that differ only in their last `suffix` bytes form a group for `between`."""
        self._space = space
        self._encode = encode
        self._decode = decode
        self._time_key = time_key
        self._suffix = suffix
        self.find = space.get
        """Return the bytes that the image has for a key, or None."""
        # In the order in which keys were first needed: when a batch is repeated, its epoch has the same bytes.
        self.live: dict[bytes, Any] = {}
        self.unchanged: set[bytes] = set()
        self._by_key: Any = None
        self._by_time: Any = None
        self._groups: dict[bytes, list[bytes]] = {}
        self._grouped = 0

    def get(self, key: bytes) -> Any:
        value = self.live.get(key, ABSENT)
        return self.load(key) if value is ABSENT else value

    def load(self, key: bytes) -> Any:
        """Read a key that is not live yet; a key without an entry is not remembered."""
        data = self.find(key)
        return None if data is None else self.take_in(key, data)

    def take_in(self, key: bytes, data: bytes) -> Any:
        """Decode the bytes that the image has for a key, keep the object and return it."""
        value = self.live[key] = self._decode(data)
        self.unchanged.add(key)
        return value

    def put(self, key: bytes, value: Any) -> None:
        """Set a key."""
        self.live[key] = value
        if self.unchanged:
            self.unchanged.discard(key)

    def delete(self, key: bytes) -> None:
        """Delete a key. A key that the image does not have leaves no trace, so that no walk has to skip it later."""
        if self.find(key) is not None:
            self.put(key, None)
        elif key in self.live:
            del self.live[key]
            if self._by_key is not None:
                self._by_key.discard(key)
            if self._by_time is not None:
                self._by_time.discard(key)
            if self._grouped:
                self._ungroup(key)

    def between(self, group: bytes, low: bytes, high: bytes) -> list[tuple[bytes, Any]]:
        """Return the entries of a group, both bounds included, at once.

        Bounds are whole keys of the group. Only keys as long as they are belong to it: longer ones are other groups'.
        """
        live = self.live
        if len(live) != self._grouped:
            self._group_new_keys()
        mine = self._groups.get(group, ())
        mine = mine[bisect_left(mine, low) : bisect_right(mine, high)] if mine else ()
        committed = self._space.between(low, high)
        if not committed:
            return [(key, live[key]) for key in mine if live[key] is not None]
        decode, length = self._decode, len(low)
        merged = {key: decode(data) for key, data in committed if key not in live and len(key) == length}
        if not mine:
            return list(merged.items())
        merged.update((key, live[key]) for key in mine if live[key] is not None)
        return sorted(merged.items())

    def iterate(self, low: bytes | None, high: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, Any]]:
        """Walk the entries from low to high, both included. Entries may change during the walk."""
        if self._by_key is None:
            self._by_key = SortedList(self.live)
        mine = in_chunks(self._ranges(self._by_key, "irange"), low, high, reverse, None)
        committed = self._space.iterate(low, high, reverse=reverse)
        return self._merge(mine, committed, None, reverse)

    def iterate_by_time(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, Any]]:
        """Walk the entries with time keys from low to high, both included, in the order of their time keys."""
        time_key = self._time_key
        assert time_key is not None
        if self._by_time is None:
            self._by_time = SortedKeyList(self.live, key=time_key)
        mine = in_chunks(self._ranges(self._by_time, "irange_key"), low, high, False, time_key)
        committed = self._space.iterate_by_time(low, high)
        return self._merge(mine, committed, time_key, False)

    def _ranges(self, order: Any, method: str) -> Callable[..., Iterator[bytes]]:
        """Return a function that adds the new keys to a sorted list and then calls its method for a range."""

        def keys(*bounds: Any) -> Iterator[bytes]:
            new = len(self.live) - len(order)
            if new > 0:  # it is negative after a commit during the walk
                order.update(islice(reversed(self.live), new))
            return getattr(order, method)(*bounds)  # type: ignore[no-any-return]

        return keys

    def _group_new_keys(self) -> None:
        live, groups, suffix = self.live, self._groups, self._suffix
        for key in reversed(list(islice(reversed(live), len(live) - self._grouped))):
            group = groups.setdefault(key[:-suffix], [])
            if not group or group[-1] < key:
                group.append(key)
            else:
                insort(group, key)
        self._grouped = len(live)

    def _ungroup(self, key: bytes) -> None:
        group = self._groups.get(key[: -self._suffix], [])
        index = bisect_left(group, key)
        if index < len(group) and group[index] == key:
            del group[index]
            self._grouped -= 1

    def _merge(
        self,
        mine: Iterator[bytes],
        committed: Iterator[tuple[bytes, bytes]],
        time_key: TimeKey | None,
        reverse: bool,
    ) -> Iterator[tuple[bytes, Any]]:
        live = self.live
        mine_key = next(mine, None)
        entry = next(committed, None)
        taken: bytes | None = None
        while mine_key is not None or entry is not None:
            if mine_key is None:
                take_mine = False
            elif entry is None:
                take_mine = True
            else:
                first, second = (mine_key, entry[0]) if time_key is None else (time_key(mine_key), time_key(entry[0]))
                take_mine = first >= second if reverse else first <= second
            if take_mine:
                assert mine_key is not None
                value = live.get(mine_key, ABSENT)
                if value is not ABSENT:  # otherwise there was a commit during the walk, and the image has the entry
                    taken = mine_key
                    if value is not None:
                        yield mine_key, value
                mine_key = next(mine, None)
            else:
                assert entry is not None
                key = entry[0]
                # A key that became live after `mine` had walked past it is found only here.
                value = live.get(key, ABSENT) if key != taken else None
                if value is not None:
                    yield key, self._decode(entry[1]) if value is ABSENT else value
                entry = next(committed, None)

    def commit(self, *, expired_before: bytes | None = None) -> Changes:
        """Hand the changes to the image, forget them here, and return them.

        With `expired_before`, entries with a smaller time key are deleted.
        """
        live, unchanged, encode = self.live, self.unchanged, self._encode
        for key in unchanged:
            del live[key]
        unchanged.clear()
        changes: Changes = {key: None if value is None else encode(value) for key, value in live.items()}
        if expired_before is not None:
            time_key = self._time_key
            assert time_key is not None
            for key in [key for key in changes if time_key(key) < expired_before]:
                changes[key] = None
            for key, _ in self._space.iterate_by_time(b"", expired_before):
                changes[key] = None
        if changes:
            self._space.apply(changes)
        live.clear()
        self._by_key = self._by_time = None
        if self._grouped:
            self._groups.clear()
            self._grouped = 0
        return changes

    def __len__(self) -> int:
        """Return how many entries there are, approximately."""
        find, unchanged = self.find, self.unchanged
        changed = ((key, value) for key, value in self.live.items() if key not in unchanged)
        return len(self._space) + sum((value is not None) - (find(key) is not None) for key, value in changed)
