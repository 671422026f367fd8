"""Window stores: values by key and window start, deleted after a retention period."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, overload

from headrace.records import ValueAndTimestamp, Window, Windowed
from headrace.state.codec import key_encoder, plain_codec, timestamped_codec, with_timestamp
from headrace.state.image import Changes
from headrace.state.overlay import ABSENT, Overlay
from headrace.state.retention import MAX_TIME, Retention
from headrace.state.setup import StoreSetup

K = TypeVar("K")
V = TypeVar("V")

_SUFFIX = struct.Struct(">qi")
_TIME = struct.Struct(">q")
_pack_suffix = _SUFFIX.pack
_MAX_SEQUENCE = 0x7FFFFFFF
_MIN_SEGMENT = 60_000
_FAST_KEYS = (str, int, bytes)
"""Types whose equal values have equal bytes, and that a dict finds faster than it takes to make those bytes."""


def _time_key(key: bytes) -> bytes:
    """Order by start, then key, then sequence number."""
    return key[-12:-4] + key[:-12] + key[-4:]


class WindowStore(Generic[K, V]):
    """A value for every key and window start.

    An entry key is the key's bytes, the start (8, big-endian) and a sequence number (4), as in Kafka Streams. The store
    remembers the latest start ever put. It no longer shows windows that start `retention` or more before it
    (`keep_oldest`: more than `retention` before it).

    For operators: `key`, `entry_key`, `encode_entry_key`, `read`, `write`, `add` and `scan`. An operator that comes
    back to an entry it has just written takes `live`, `floor`, `freeze`, `thaw_value` and `key_type`: `live` has the
    frozen entries by entry key.

    `encode_entry_key`, `read` and `write` are on the hot path. They are closures, and do what `Overlay`, `Codec` and
    `Retention` do without calling them: `_bind_hot_path` says why.
    """

    def __init__(
        self,
        setup: StoreSetup,
        *,
        retention: int,
        window_size: int,
        retain_duplicates: bool = False,
        timestamped: bool = False,
        keep_oldest: bool = False,
    ) -> None:
        self.name = name = setup.name
        self.retention = retention
        self.window_size = window_size
        self.timestamped = timestamped
        self.value_is_exact = setup.value_serde.exact_type is not None
        self.key: Callable[[Any], bytes] = key_encoder(name, setup.key_serde)
        self._encode_key = self.key if setup.key_serde.exact_type is None else setup.key_serde.encoder(name)
        self._decode_key = setup.key_serde.decoder(name)
        self.key_type = setup.key_serde.exact_type if setup.key_serde.exact_type in _FAST_KEYS else None
        """The type of the keys, if a dict finds such keys faster than it takes to make their bytes."""
        codec = (timestamped_codec if timestamped else plain_codec)(name, setup.value_serde)
        self.freeze, self._thaw, self.thaw_value = codec.freeze, codec.thaw, codec.thaw_value
        space = setup.image.space(name, _time_key)
        self._overlay = Overlay(space, codec.encode, codec.decode, _time_key, suffix=12)
        self.live, self._unchanged, self._load = self._overlay.live, self._overlay.unchanged, self._overlay.load
        self._retain_duplicates = retain_duplicates
        self._sequence = setup.small_state.cell(f"{name}/sequence", 0)
        self._kept = Retention(name, setup.small_state, retention, keep_oldest=keep_oldest)
        self._latest, self.floor = self._kept.latest, self._kept.floor
        self._bind_hot_path()

    def keep_longer(self, time: int) -> None:
        """Show windows for `time` longer than the retention; operators that need it call this before they begin."""
        self._kept.keep_longer(time)

    def entry_key(self, key: bytes, start: int) -> bytes:
        """Return the entry key of a serialized key's window."""
        return key + _pack_suffix(start, 0)

    def _bind_hot_path(self) -> None:
        """Make the functions that a windowed aggregate calls for every record, with everything at hand.

        As methods, which look the same things up in the store, they made a tumbling count 8 % slower.
        """
        self.encode_entry_key: Callable[[Any, int], bytes] = _entry_key_encoder(self._encode_key, self.key)
        """Return the entry key of a key's window: encode_entry_key(key, start)."""
        self.read: Callable[[bytes, int], Any] = self._reader()
        """Return the value of an entry, or None: read(entry key, start). The start is the one in the entry key."""
        self.write: Callable[[bytes, int, Any], None] = self._writer()
        """Set the value of an entry; None deletes it: write(entry key, start, value)."""

    def _reader(self) -> Callable[[bytes, int], Any]:
        live, load, floor, thaw, thaw_value = self.live, self._load, self.floor, self._thaw, self.thaw_value

        def read(entry_key: bytes, start: int) -> Any:
            if start < floor[0]:
                return None
            entry = live.get(entry_key, ABSENT)
            if entry is ABSENT:
                entry = load(entry_key)
            return entry if thaw is None or entry is None else thaw(entry)

        def read_timestamped(entry_key: bytes, start: int) -> Any:  # what `read` and `thaw` do, without the call
            if start < floor[0]:
                return None
            entry = live.get(entry_key, ABSENT)
            if entry is ABSENT:
                entry = load(entry_key)
            return None if entry is None else (thaw_value(entry[0]), entry[1])  # type: ignore[misc]

        return read if thaw_value is None else read_timestamped

    def _writer(self) -> Callable[[bytes, int, Any], None]:
        live, unchanged, delete, freeze = self.live, self._unchanged, self._overlay.delete, self.freeze
        latest, floor, kept = self._latest, self.floor, self._kept

        def write(entry_key: bytes, start: int, value: Any) -> None:
            if start > latest[0]:
                kept.admit(start)
            elif start < floor[0]:
                return
            if value is None:
                delete(entry_key)
            else:
                live[entry_key] = freeze(value)
                if unchanged:
                    unchanged.discard(entry_key)

        return write

    def add(self, key: bytes, start: int, value: Any) -> None:
        """Add a value to a serialized key's window, which may have others."""
        sequence = self._sequence
        sequence[0] = number = (sequence[0] + 1) & _MAX_SEQUENCE
        self.write(key + _pack_suffix(start, number), start, value)

    def scan(self, key: bytes, earliest: int, latest: int) -> list[tuple[int, Any]]:
        """Return (start, value) of a serialized key's windows that start from earliest to latest."""
        # No window starts after the latest start ever put: such a bound leaves out longer keys that begin with this.
        earliest, latest = max(earliest, self.floor[0], 0), min(latest, self._latest[0])
        if latest < earliest:
            return []
        low, high = key + _SUFFIX.pack(earliest, 0), key + _SUFFIX.pack(latest, _MAX_SEQUENCE)
        length, thaw, unpack = len(key), self._thaw, _SUFFIX.unpack_from
        return [
            (unpack(entry_key, length)[0], entry if thaw is None else thaw(entry))
            for entry_key, entry in self._overlay.between(key, low, high)
        ]

    def scan_by_time(self, earliest: int, latest: int) -> Iterator[tuple[bytes, int, Any]]:
        """Walk (serialized key, start, value) of the windows that start from earliest to latest, by start, then key."""
        earliest = max(earliest, self.floor[0], 0)
        if latest < earliest:
            return
        thaw = self._thaw
        high = _TIME.pack(latest + 1) if latest < MAX_TIME else b"\xff"
        for raw, entry in self._overlay.iterate_by_time(_TIME.pack(earliest), high):
            yield raw[:-12], _SUFFIX.unpack_from(raw, len(raw) - 12)[0], entry if thaw is None else thaw(entry)

    def put(self, key: K, value: V | None, start: int) -> None:
        """Set the value of a key's window; None deletes it."""
        raw = self.key(key)
        entry = with_timestamp(self.name, value) if self.timestamped else value
        if not self._retain_duplicates:
            self.write(self.entry_key(raw, start), start, entry)
        elif entry is not None:
            self.add(raw, start, entry)

    @overload
    def fetch(self, key: K, start: int) -> V | None: ...

    @overload
    def fetch(self, key: K, start: int, latest: int) -> Iterator[tuple[Windowed[K], V]]: ...

    def fetch(self, key: K, start: int, latest: int | None = None) -> Any:
        """Return the value of one window, or walk the windows that start from `start` to `latest`."""
        raw = self.key(key)
        if latest is None:
            return self._shown(self.read(self.entry_key(raw, start), start))
        found = self.scan(raw, start, latest)
        return iter([(self._windowed(key, time), self._shown(entry)) for time, entry in found])

    def fetch_all(self, earliest: int, latest: int) -> Iterator[tuple[Windowed[K], V]]:
        """Walk the windows of all keys that start from earliest to latest."""
        entries = sorted(self.scan_by_time(earliest, latest), key=self._segment_order)
        for raw, start, entry in entries:
            yield self._windowed(self._decode_key(raw), start), self._shown(entry)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """Walk all windows of all keys."""
        return self.fetch_all(0, MAX_TIME - 1)

    def decode_key(self, key: bytes) -> K:
        """Turn a serialized key back into a key."""
        return self._decode_key(key)  # type: ignore[no-any-return]

    def commit(self) -> dict[str, Changes]:
        """Hand the changes to the image, delete expired entries, and return the changes, by space."""
        return {self.name: self._overlay.commit(expired_before=self._kept.expired_before())}

    def _shown(self, entry: Any) -> Any:
        """Return an entry as users see it."""
        return ValueAndTimestamp(*entry) if self.timestamped and entry is not None else entry

    def _windowed(self, key: K, start: int) -> Windowed[K]:
        return Windowed(key, Window(start, start + self.window_size))

    def _segment_order(self, entry: tuple[bytes, int, Any]) -> tuple[int, bytes, int]:
        # Kafka Streams walks its segments one after the other, and each of them by key.
        return entry[1] // max(self.retention // 2, _MIN_SEGMENT), entry[0], entry[1]


def _entry_key_encoder(
    encode_key: Callable[[Any], bytes], explain: Callable[[Any], bytes]
) -> Callable[[Any, int], bytes]:
    def encode_entry_key(key: Any, start: int) -> bytes:
        try:
            return encode_key(key) + _pack_suffix(start, 0)
        except Exception:
            return explain(key) + _pack_suffix(start, 0)  # raises an error that says what is wrong

    return encode_entry_key
