"""Session stores: values by key and session, deleted after a retention period."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from headrace.records import Window, Windowed
from headrace.state.codec import key_encoder, plain_codec
from headrace.state.image import Changes
from headrace.state.overlay import Overlay
from headrace.state.retention import MAX_TIME, Retention
from headrace.state.setup import StoreSetup

K = TypeVar("K")
V = TypeVar("V")

_SUFFIX = struct.Struct(">qq")
_TIME = struct.Struct(">q")


def _time_key(key: bytes) -> bytes:
    """Order by end, then start, then key."""
    return key[-16:] + key[:-16]


class SessionStore(Generic[K, V]):
    """A value for every key and session.

    An entry key is the key's bytes, the end and the start (8 each, big-endian), as in Kafka Streams. The store
    remembers the latest end ever put. It no longer shows sessions that ended `retention` or more before it
    (`keep_oldest`: `scan_by_time` still walks sessions that ended exactly `retention` before it). `key`, `read`,
    `write`, `scan` and `scan_by_time` are for operators.
    """

    def __init__(self, setup: StoreSetup, *, retention: int, keep_oldest: bool = False) -> None:
        self.name = name = setup.name
        self.retention = retention
        self.value_is_exact = setup.value_serde.exact_type is not None
        self.key: Callable[[Any], bytes] = key_encoder(name, setup.key_serde)
        self._decode_key = setup.key_serde.decoder(name)
        codec = plain_codec(name, setup.value_serde)
        self._freeze, self._thaw = codec.freeze, codec.thaw
        space = setup.image.space(name, _time_key)
        self._overlay = Overlay(space, codec.encode, codec.decode, _time_key, suffix=16)
        self._kept = Retention(name, setup.small_state, retention, keep_oldest=keep_oldest)
        self._latest, self._floor = self._kept.latest, self._kept.floor
        self._committed_latest: int = self._latest[0]
        self._hidden = 1 if keep_oldest else 0

    def keep_longer(self, time: int) -> None:
        """Show sessions for `time` longer than the retention; operators that need it call this before they begin."""
        self._kept.keep_longer(time)

    def was_overdue(self, end: int) -> bool:
        """Tell whether a session with this end was shown at the last commit only because of `keep_longer`."""
        return end <= self._committed_latest - self.retention

    def read(self, key: bytes, start: int, end: int) -> Any:
        """Return the value of one session of a serialized key, or None."""
        if end < self._floor[0] + self._hidden:
            return None
        entry = self._overlay.get(key + _SUFFIX.pack(end, start))
        return entry if self._thaw is None or entry is None else self._thaw(entry)

    def write(self, key: bytes, start: int, end: int, value: Any) -> None:
        """Set the value of one session of a serialized key; None deletes it."""
        if not self._kept.admit(end):
            return
        entry_key = key + _SUFFIX.pack(end, start)
        if value is None:
            self._overlay.delete(entry_key)
        else:
            self._overlay.put(entry_key, self._freeze(value))

    def scan(self, key: bytes, earliest_end: int, latest_start: int) -> list[tuple[int, int, Any]]:
        """Return (start, end, value) of a serialized key's sessions, by end.

        They end at `earliest_end` or later and start at `latest_start` or earlier.
        """
        earliest_end, latest_end = max(earliest_end, self._floor[0] + self._hidden, 0), self._latest[0]
        if latest_end < earliest_end:
            return []
        # No session ends after the latest end ever put: such a bound leaves out longer keys that begin with this.
        low, high = key + _SUFFIX.pack(earliest_end, 0), key + _SUFFIX.pack(latest_end, MAX_TIME)
        entries = self._overlay.between(key, low, high)
        found = []
        length, thaw = len(key), self._thaw
        for entry_key, entry in entries:
            end, start = _SUFFIX.unpack_from(entry_key, length)
            if start <= latest_start:
                found.append((start, end, entry if thaw is None else thaw(entry)))
        return found

    def scan_by_time(self, earliest_end: int, latest_end: int) -> Iterator[tuple[bytes, int, int, Any]]:
        """Walk (serialized key, start, end, value) of sessions by end, then start, then key."""
        earliest_end = max(earliest_end, 0)
        if latest_end < earliest_end:
            return
        thaw = self._thaw
        high = _TIME.pack(latest_end + 1) if latest_end < MAX_TIME else b"\xff"
        for raw, entry in self._overlay.iterate_by_time(_TIME.pack(earliest_end), high):
            end, start = _SUFFIX.unpack_from(raw, len(raw) - 16)
            yield raw[:-16], start, end, entry if thaw is None else thaw(entry)

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """Walk a key's sessions, by end."""
        return self.find_sessions(key, 0, MAX_TIME)

    def find_sessions(self, key: K, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed[K], V]]:
        """Walk a key's sessions that end at `earliest_end` or later and start at `latest_start` or earlier, by end."""
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
        """Hand the changes to the image, delete expired entries, and return the changes, by space."""
        self._committed_latest = self._latest[0]
        return {self.name: self._overlay.commit(expired_before=self._kept.expired_before())}
