"""Window stores: values by key and window start, forgotten after a retention period."""

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
_MAX_SEQUENCE = 0x7FFFFFFF
_MIN_SEGMENT = 60_000
_LOOKED_UP_FAST = (str, int, bytes)
"""Types whose equal values have equal bytes, and that a dict finds in less time than these take to make."""


def _time_key(key: bytes) -> bytes:
    """Order by start, then key, then sequence number."""
    return key[-12:-4] + key[:-12] + key[-4:]


class WindowStore(Generic[K, V]):
    """A value for every key and window start.

    Bytes of an entry's key: the key's, the start (8, big-endian) and a sequence number (4), as in Kafka Streams.
    The store remembers the latest start ever put and no longer shows windows that start `retention` or more before it
    (`keep_oldest`: more than `retention` before it). For operators: `key`, `place`, `locate`, `read`, `write`,
    `add`, `scan`; and `live`, `floor`, `freeze`, `thaw_value`, `key_type` for one that comes back to a place.
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
        name, key_serde, value_serde, image = setup.name, setup.key_serde, setup.value_serde, setup.image
        self.name = name
        self.retention = retention
        self.window_size = window_size
        self.timestamped = timestamped
        self.value_is_exact = value_serde.exact_type is not None
        self.key: Callable[[Any], bytes] = key_encoder(name, key_serde)
        codec = (timestamped_codec if timestamped else plain_codec)(name, value_serde)
        self._overlay = Overlay(image.space(name, _time_key), codec.encode, codec.decode, _time_key, suffix=12)
        self._decode_key = key_serde.decoder(name)
        self._thaw = codec.thaw
        # For a step that comes back to a place soon after it wrote there: what is in hand, by place, frozen.
        self.live, self.freeze, self.thaw_value = self._overlay.live, codec.freeze, codec.thaw_value
        self.key_type = key_serde.exact_type if key_serde.exact_type in _LOOKED_UP_FAST else None
        self._encode_key = key_serde.encoder(name) if key_serde.exact_type is not None else self.key
        self._retain_duplicates = retain_duplicates
        self._sequence = setup.small_state.cell(f"{name}/sequence", 0)
        self._kept = Retention(name, setup.small_state, retention, keep_oldest=keep_oldest)
        self._latest, self.floor = self._kept.latest, self._kept.floor
        self._bind()

    def _bind(self) -> None:
        """Make the functions of the hot path, with everything they need at hand."""
        overlay = self._overlay
        live, unchanged, load, delete = overlay.live, overlay.unchanged, overlay.load, overlay.delete
        freeze, thaw, latest, floor, lag = self.freeze, self._thaw, self._latest, self.floor, self._kept.lag
        thaw_value, key_of, encode_key = self.thaw_value, self.key, self._encode_key
        pack, sequence = _SUFFIX.pack, self._sequence

        def place(key: bytes, start: int) -> bytes:
            return key + pack(start, 0)

        def locate(key: Any, start: int) -> bytes:
            try:
                return encode_key(key) + pack(start, 0)
            except Exception:
                return key_of(key) + pack(start, 0)  # which says what is wrong

        def read(place: bytes, start: int) -> Any:
            if start < floor[0]:
                return None
            entry = live.get(place, ABSENT)
            if entry is ABSENT:
                entry = load(place)
            return entry if thaw is None or entry is None else thaw(entry)

        def read_timestamped(place: bytes, start: int) -> Any:
            # The way of every windowed aggregate: what `read` and `thaw` do, without the call.
            if start < floor[0]:
                return None
            entry = live.get(place, ABSENT)
            if entry is ABSENT:
                entry = load(place)
            return None if entry is None else (thaw_value(entry[0]), entry[1])  # type: ignore[misc]

        def write(place: bytes, start: int, value: Any) -> None:
            if start > latest[0]:
                latest[0] = start
                if start - lag > floor[0]:
                    floor[0] = start - lag
            elif start < floor[0]:
                return
            if value is None:
                delete(place)
            else:
                live[place] = freeze(value)
                if unchanged:
                    unchanged.discard(place)

        def add(key: bytes, start: int, value: Any) -> None:
            sequence[0] = number = (sequence[0] + 1) & _MAX_SEQUENCE
            write(key + pack(start, number), start, value)

        self.place: Callable[[bytes, int], bytes] = place
        """Where a serialized key's window is."""
        self.locate: Callable[[Any, int], bytes] = locate
        """Where a key's window is."""
        self.read: Callable[[bytes, int], Any] = read if thaw_value is None else read_timestamped
        """Return the value at a place, given its start once more."""
        self.write: Callable[[bytes, int, Any], None] = write
        """Set the value at a place, given its start once more; None deletes it."""
        self.add: Callable[[bytes, int, Any], None] = add
        """Add a value to a serialized key's window, beside others."""

    def keep_longer(self, time: int) -> None:
        """Show windows for that much longer than the retention; operators that need it say so before they begin."""
        self._kept.keep_longer(time)
        self._bind()

    def scan(self, key: bytes, earliest: int, latest: int) -> list[tuple[int, Any]]:
        """Return (start, value) of a serialized key's windows that start from earliest to latest."""
        # No window starts after the latest start ever put: a bound that leaves out the keys that begin with this one.
        earliest, latest = max(earliest, self.floor[0], 0), min(latest, self._latest[0])
        if latest < earliest:
            return []
        low, high = key + _SUFFIX.pack(earliest, 0), key + _SUFFIX.pack(latest, _MAX_SEQUENCE)
        length, thaw, unpack = len(key), self._thaw, _SUFFIX.unpack_from
        return [
            (unpack(place, length)[0], entry if thaw is None else thaw(entry))
            for place, entry in self._overlay.between(key, low, high)
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
            self.write(self.place(raw, start), start, entry)
        elif entry is not None:
            self.add(raw, start, entry)

    @overload
    def fetch(self, key: K, start: int) -> V | None: ...

    @overload
    def fetch(self, key: K, start: int, latest: int) -> Iterator[tuple[Windowed[K], V]]: ...

    def fetch(self, key: K, start: int, latest: int | None = None) -> Any:
        """Return the value of the window with that start, or walk the windows that start from `start` to `latest`."""
        raw = self.key(key)
        if latest is None:
            return self._shown(self.read(self.place(raw, start), start))
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
        """Hand what changed to the image, drop what has expired, and return the changes, by space."""
        return {self.name: self._overlay.commit(expired_before=self._kept.expired_before())}

    def _shown(self, entry: Any) -> Any:
        """Return an entry as users see it."""
        return ValueAndTimestamp(*entry) if self.timestamped and entry is not None else entry

    def _windowed(self, key: K, start: int) -> Windowed[K]:
        return Windowed(key, Window(start, start + self.window_size))

    def _segment_order(self, entry: tuple[bytes, int, Any]) -> tuple[int, bytes, int]:
        # Kafka Streams walks its segments one after the other, and each in the order of keys.
        return entry[1] // max(self.retention // 2, _MIN_SEGMENT), entry[0], entry[1]
