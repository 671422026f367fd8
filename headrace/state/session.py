"""Session stores: values by key and session, forgotten after a retention period."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from headrace.records import Window, Windowed
from headrace.serdes import Serde
from headrace.state.codec import key_encoder, plain_codec
from headrace.state.image import Changes, Image
from headrace.state.overlay import Overlay
from headrace.state.small_state import SmallState

K = TypeVar("K")
V = TypeVar("V")

_SUFFIX = struct.Struct(">qq")
_TIME = struct.Struct(">q")
_MAX_TIME = 0x7FFFFFFFFFFFFFFF


def _time_key(key: bytes) -> bytes:
    """Order by end, then start, then key."""
    return key[-16:] + key[:-16]


class SessionStore(Generic[K, V]):
    """A value for every key and session.

    Bytes of an entry's key: the key's, the end and the start (8 each, big-endian), as in Kafka Streams. The store
    remembers the latest end ever put and no longer shows sessions that ended `retention` or more before it
    (`keep_oldest`: `scan_by_time` still walks those that ended exactly `retention` before). `key`, `read`, `write`,
    `scan` and `scan_by_time` are for operators.
    """

    def __init__(
        self,
        name: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        image: Image,
        cells: SmallState,
        *,
        retention: int,
        keep_oldest: bool = False,
    ) -> None:
        self.name = name
        self.retention = retention
        self.value_is_exact = value_serde.exact_type is not None
        self.key: Callable[[Any], bytes] = key_encoder(name, key_serde)
        codec = plain_codec(name, value_serde)
        self._overlay = Overlay(image.space(name, _time_key), codec.encode, codec.decode, _time_key, suffix=16)
        self._decode_key = key_serde.decoder(name)
        self._freeze, self._thaw = codec.freeze, codec.thaw
        # The latest end ever put, and the least that is still kept; both only rise.
        self._latest = cells.cell(f"{name}/latest", -_MAX_TIME)
        self._committed_latest: int = self._latest[0]
        self._floor = cells.cell(f"{name}/floor", -_MAX_TIME)
        self._lag = retention - (0 if keep_oldest else 1)
        self._hidden = 1 if keep_oldest else 0
        self._expired_to = -_MAX_TIME

    def keep_longer(self, time: int) -> None:
        """Show sessions for that much longer than the retention; operators that need it say so before they begin."""
        self._lag = self.retention - 1 + time

    def was_overdue(self, end: int) -> bool:
        """Tell whether at the last commit a session that ended then was shown only because it is kept longer."""
        return end <= self._committed_latest - self.retention

    def read(self, key: bytes, start: int, end: int) -> Any:
        """Return the value of one session of a serialized key, or None."""
        if end < self._floor[0] + self._hidden:
            return None
        entry = self._overlay.get(key + _SUFFIX.pack(end, start))
        return entry if self._thaw is None or entry is None else self._thaw(entry)

    def write(self, key: bytes, start: int, end: int, value: Any) -> None:
        """Set the value of one session of a serialized key; None deletes it."""
        latest, floor = self._latest, self._floor
        if end > latest[0]:
            latest[0] = end
            if end - self._lag > floor[0]:
                floor[0] = end - self._lag
        elif end < floor[0]:
            return
        place = key + _SUFFIX.pack(end, start)
        if value is None:
            self._overlay.delete(place)
        else:
            self._overlay.put(place, self._freeze(value))

    def scan(self, key: bytes, earliest_end: int, latest_start: int) -> list[tuple[int, int, Any]]:
        """Return (start, end, value) of a serialized key's sessions in that range, by end."""
        earliest_end, latest_end = max(earliest_end, self._floor[0] + self._hidden, 0), self._latest[0]
        if latest_end < earliest_end:
            return []
        # No session ends after the latest end ever put: a bound that leaves out the keys that begin with this one.
        low, high = key + _SUFFIX.pack(earliest_end, 0), key + _SUFFIX.pack(latest_end, _MAX_TIME)
        entries = self._overlay.between(key, low, high)
        found = []
        length, thaw = len(key), self._thaw
        for place, entry in entries:
            end, start = _SUFFIX.unpack_from(place, length)
            if start <= latest_start:
                found.append((start, end, entry if thaw is None else thaw(entry)))
        return found

    def scan_by_time(self, earliest_end: int, latest_end: int) -> Iterator[tuple[bytes, int, int, Any]]:
        """Walk (serialized key, start, end, value) of sessions by end, then start, then key."""
        earliest_end = max(earliest_end, 0)
        if latest_end < earliest_end:
            return
        thaw = self._thaw
        high = _TIME.pack(latest_end + 1) if latest_end < _MAX_TIME else b"\xff"
        for raw, entry in self._overlay.iterate_by_time(_TIME.pack(earliest_end), high):
            end, start = _SUFFIX.unpack_from(raw, len(raw) - 16)
            yield raw[:-16], start, end, entry if thaw is None else thaw(entry)

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """Walk a key's sessions, by end."""
        return self.find_sessions(key, 0, _MAX_TIME)

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed[K], V]]:
        """Walk a key's sessions that end at or after one time and start at or before another, by end."""
        for start, end, value in self.scan(self.key(key), earliest_end, latest_start):
            yield Windowed(key, Window(start, end)), value

    def fetch_session(self, key: K, start: int, end: int) -> V | None:
        """Return the value of one session, or None."""
        return self.read(self.key(key), start, end)  # type: ignore[no-any-return]

    def put(self, session: Windowed[K], value: V | None) -> None:
        """Set the value of a session; None removes it."""
        self.write(self.key(session.key), session.window.start, session.window.end, value)

    def remove(self, session: Windowed[K]) -> None:
        """Remove a session."""
        self.put(session, None)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Walk all sessions of all keys, by key, end and start."""
        thaw, floor = self._thaw, self._floor[0] + self._hidden
        for raw, entry in self._overlay.iterate(None, None):
            end, start = _SUFFIX.unpack_from(raw, len(raw) - 16)
            if end >= floor:
                key = self._decode_key(raw[:-16])
                yield Windowed(key, Window(start, end)), entry if thaw is None else thaw(entry)

    def decode_key(self, key: bytes) -> K:
        """Turn a serialized key back into a key."""
        return self._decode_key(key)  # type: ignore[no-any-return]

    def commit(self) -> dict[str, Changes]:
        """Hand what changed to the image, drop what has expired, and return the changes, by space."""
        floor = self._floor[0]
        self._committed_latest = self._latest[0]
        if floor - self._expired_to < max(self.retention // 2, 1):
            return {self.name: self._overlay.commit()}
        self._expired_to = floor
        return {self.name: self._overlay.commit(expired_before=_TIME.pack(max(floor, 0)))}
