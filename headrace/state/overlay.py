"""The changes since the last commit, over what the image holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.state.image import Changes, Space
from headrace.state.ordered_map import OrderedMap, Position

_ABSENT = object()


class Overlay:
    """Read through to an image and keep what was touched as objects until the commit.

    The first touch of a key reads the image, later ones do not. `live` maps a key to its object, or to None when the
    key is absent or deleted; operators on the hot path read it directly. Values are turned into bytes once, at the
    commit, however often they changed.
    """

    __slots__ = ("_decode", "_dirty", "_encode", "_map", "_position", "_space", "live")

    def __init__(
        self,
        space: Space,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
        position: Position | None = None,
    ) -> None:
        self._space = space
        self._encode = encode
        self._decode = decode
        self._position = position
        self._map: OrderedMap[Any] = OrderedMap(position)
        self._dirty: dict[bytes, None] = {}  # in the order of first change: a batch run again gives the same bytes
        self.live: dict[bytes, Any] = self._map.data

    def get(self, key: bytes) -> Any:
        value = self.live.get(key, _ABSENT)
        return self.load(key) if value is _ABSENT else value

    def load(self, key: bytes) -> Any:
        """Read a key that is not live yet."""
        data = self._space.get(key)
        value = None if data is None else self._decode(data)
        self._map.put(key, value)
        return value

    def put(self, key: bytes, value: Any) -> None:
        """Set a key, or delete it with None."""
        self._map.put(key, value)
        self._dirty[key] = None

    def between(self, low: bytes | None, high: bytes | None) -> list[tuple[bytes, Any]]:
        """Return the entries from low to high, both included, at once."""
        committed = self._space.between(low, high)
        live = self.live
        mine = self._map.between(low, high) if live else []
        if not committed:
            return [(key, live[key]) for key in mine if live[key] is not None]
        decode = self._decode
        if not mine:
            return [(key, decode(data)) for key, data in committed]
        merged = {key: decode(data) for key, data in committed if key not in live}
        merged.update((key, live[key]) for key in mine if live[key] is not None)
        return sorted(merged.items())

    def iterate(self, low: bytes | None, high: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, Any]]:
        """Walk the entries from low to high, both included; entries may change meanwhile."""
        mine = self._map.iterate(low, high, reverse=reverse)
        committed = self._space.iterate(low, high, reverse=reverse)
        return self._merge(mine, committed, None, reverse)

    def iterate_by_position(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, Any]]:
        """Walk the entries whose position is from low to high, both included, in that order."""
        mine = self._map.iterate_by_position(low, high)
        committed = self._space.iterate_by_position(low, high)
        return self._merge(mine, committed, self._position, False)

    def _merge(
        self,
        mine: Iterator[bytes],
        committed: Iterator[tuple[bytes, bytes]],
        position: Position | None,
        reverse: bool,
    ) -> Iterator[tuple[bytes, Any]]:
        live = self.live
        mine_key = next(mine, None)
        entry = next(committed, None)
        while mine_key is not None or entry is not None:
            if mine_key is None:
                take_mine = False
            elif entry is None:
                take_mine = True
            else:
                first, second = (mine_key, entry[0]) if position is None else (position(mine_key), position(entry[0]))
                take_mine = first >= second if reverse else first <= second
            if take_mine:
                assert mine_key is not None
                value = live.get(mine_key)
                if value is not None:
                    yield mine_key, value
                mine_key = next(mine, None)
            else:
                assert entry is not None
                if entry[0] not in live:
                    yield entry[0], self._decode(entry[1])
                entry = next(committed, None)

    def commit(self, *, expired_before: bytes | None = None) -> Changes:
        """Hand what changed to the image, forget it here, and return it.

        With `expired_before`, entries whose position is less are deleted on the way.
        """
        live, encode = self.live, self._encode
        changes: Changes = {}
        for key in self._dirty:
            value = live[key]
            changes[key] = None if value is None else encode(value)
        if expired_before is not None:
            position = self._position
            assert position is not None
            for key in [key for key in changes if position(key) < expired_before]:
                changes[key] = None
            for key, _ in self._space.iterate_by_position(b"", expired_before):
                changes[key] = None
        if changes:
            self._space.apply(changes)
        self._dirty.clear()
        self._map.clear()
        return changes

    def __len__(self) -> int:
        """Return about how many entries there are."""
        live = self.live
        if not live:
            return len(self._space)
        get = self._space.get
        return len(self._space) + sum((live[key] is not None) - (get(key) is not None) for key in self._dirty)
