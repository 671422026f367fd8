"""Versioned stores: several values of a key over time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from headrace.errors import StreamsError
from headrace.records import ValueAndTimestamp
from headrace.state.codec import Codec, key_encoder, plain_codec
from headrace.state.image import Changes
from headrace.state.overlay import Overlay
from headrace.state.retention import Expiry
from headrace.state.setup import StoreSetup

K = TypeVar("K")
V = TypeVar("V")

_TIME = struct.Struct(">q")
_DELETED = b"\0"
_PRESENT = b"\1"
_NOT_PUT = -1


class VersionedRecord(NamedTuple, Generic[V]):
    """A value, the time at which it began to hold, and the time at which it ended (None: it still holds)."""

    value: V
    timestamp: int
    valid_to: int | None = None


def _time_key(key: bytes) -> bytes:
    """Order by the time at which a version ended, then key."""
    return key[-8:] + key[:-8]


class VersionedStore(Generic[K, V]):
    """The values that a key had during `history_retention`, and its latest value for ever.

    The latest values are in one space, by key. The versions that they replaced are in another, the history. There an
    entry key is the key's bytes and the time at which the version ended (8, big-endian). So versions that are out of
    reach are found by time and deleted. A put that is older than the history is refused. `key`, `read` and `write` are
    for operators.
    """

    def __init__(self, setup: StoreSetup, *, history_retention: int) -> None:
        self.name = name = setup.name
        self.history_retention = history_retention
        self.key = key_encoder(name, setup.key_serde)
        self._decode_key = setup.key_serde.decoder(name)
        codec = plain_codec(name, setup.value_serde)
        self.value_is_exact = setup.value_serde.exact_type is not None
        self._freeze, self._thaw, self._encode = codec.freeze, codec.thaw, codec.encode
        encode, decode = _version_codec(codec)
        # Both keep (start, value). In the history the value None stands for a time without a value.
        self._latest = Overlay(setup.image.space(name), encode, decode)
        history = setup.image.space(f"{name}/history", _time_key)
        self._history = Overlay(history, encode, decode, _time_key, suffix=8)
        self._observed = setup.small_state.cell(f"{name}/observed", -1)
        self._expiry = Expiry(history_retention)
        self._puts: list[tuple[bytes, Any, int]] | None = None

    def put(self, key: K, value: V | None, timestamp: int) -> int | None:
        """Add a version; return the time at which it ends, or None when it is the latest.

        A version that is older than the history is not stored, and the call returns -1.
        """
        return self.write(self.key(key), value, timestamp)

    def write(self, raw: bytes, value: V | None, timestamp: int) -> int | None:
        """Add a version of a serialized key: for operators."""
        if timestamp < 0:
            raise StreamsError(f"store '{self.name}': expected a timestamp of at least 0, got {timestamp}")
        frozen = None if value is None else self._freeze(value)
        if self._puts is not None:
            self._puts.append((raw, frozen, timestamp))
        if timestamp < self._observed[0] - self.history_retention:
            return _NOT_PUT
        self._observed[0] = max(self._observed[0], timestamp)
        latest = self._latest.get(raw)
        if latest is None:
            deleted_at = self._deleted_at(raw)
            is_latest = deleted_at is None or deleted_at <= timestamp
        else:
            is_latest = latest[0] <= timestamp
        if is_latest:
            self._replace_latest(raw, latest, timestamp, frozen)
            return None
        return self._insert(raw, latest, timestamp, frozen)

    def get(self, key: K, as_of: int | None = None) -> VersionedRecord[V] | None:
        """Return the latest version of a key, or the version at a time; None where it is deleted or unknown."""
        raw = self.key(key)
        latest = self._latest.get(raw)
        if latest is not None and (as_of is None or latest[0] <= as_of):
            return VersionedRecord(self._thawed(latest[1]), latest[0])
        if as_of is None or as_of < self._observed[0] - self.history_retention:
            return None
        found = self._holding_after(raw, as_of)
        if found is None or found[1] > as_of or found[2] is None:
            return None
        valid_to, start, value = found
        return VersionedRecord(self._thawed(value), start, valid_to)

    def read(self, raw: bytes) -> ValueAndTimestamp[V] | None:
        """Return the latest value of a serialized key with its time: for operators."""
        latest = self._latest.get(raw)
        return None if latest is None else ValueAndTimestamp(self._thawed(latest[1]), latest[0])

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Delete a key from a time on; return the version at that time."""
        if timestamp < self._observed[0] - self.history_retention:
            return None
        existing = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return existing

    def all(self) -> Iterator[tuple[K, VersionedRecord[V]]]:
        """Walk the latest version of every key."""
        for raw, (start, value) in self._latest.iterate(None, None):
            yield self._decode_key(raw), VersionedRecord(self._thawed(value), start)

    def keep_puts(self) -> None:
        """Keep all puts from now on for `take_puts`: the changes of a commit do not tell when a key was deleted."""
        self._puts = []

    def take_puts(self) -> Iterator[tuple[bytes, bytes | None, int]]:
        """Walk (key, value, timestamp) of the puts since the last call, in order, including puts that were too old."""
        taken, self._puts = self._puts or (), []
        for raw, value, timestamp in taken:
            yield raw, None if value is None else self._encode(value), timestamp

    def commit(self) -> dict[str, Changes]:
        """Hand the changes to the image, delete history that is out of reach, and return the changes, by space."""
        reachable = max(self._observed[0] - self.history_retention + 1, 0)
        return {
            self.name: self._latest.commit(),
            f"{self.name}/history": self._history.commit(expired_before=self._expiry.bound(reachable)),
        }

    def _replace_latest(self, raw: bytes, latest: Any, timestamp: int, value: Any) -> None:
        """Make a version the latest and move the one before it to the history."""
        entry_key = raw + _TIME.pack(timestamp)
        if latest is not None and latest[0] < timestamp:
            self._history.put(entry_key, latest)
        if value is not None:
            self._latest.put(raw, (timestamp, value))
            return
        self._latest.delete(raw)
        # Marks the time of the delete. As in Kafka Streams there is no mark when it deletes a version of the same time.
        if latest is None and self._history.get(entry_key) is None:
            self._history.put(entry_key, (timestamp, None))

    def _insert(self, raw: bytes, latest: Any, timestamp: int, value: Any) -> int:
        """Put a version into the history; return the time at which it ends."""
        following = self._holding_after(raw, timestamp)
        if following is None:
            valid_to: int = latest[0]
        else:
            valid_to, start, before = following
            if start > timestamp:
                valid_to = start
            elif start < timestamp:
                self._history.put(raw + _TIME.pack(timestamp), (start, before))
        self._history.put(raw + _TIME.pack(valid_to), (timestamp, value))
        return valid_to

    def _holding_after(self, raw: bytes, time: int) -> tuple[int, int, Any] | None:
        """Return (end, start, value) of a key's first version in the history that ends after a time."""
        return self._end_of_history(raw, time + 1, reverse=False)

    def _deleted_at(self, raw: bytes) -> int | None:
        """Return the time at which a key without a latest value was deleted, if it is still known."""
        last = self._end_of_history(raw, 0, reverse=True)
        return None if last is None else last[0]

    def _end_of_history(self, raw: bytes, earliest: int, *, reverse: bool) -> tuple[int, int, Any] | None:
        earliest = max(earliest, 0)
        if self._observed[0] < earliest:
            return None
        low, high, length = raw + _TIME.pack(earliest), raw + _TIME.pack(self._observed[0]), len(raw)
        for entry_key, (start, value) in self._history.iterate(low, high, reverse=reverse):
            if len(entry_key) == length + 8:
                return _TIME.unpack_from(entry_key, length)[0], start, value
        return None

    def _thawed(self, value: Any) -> Any:
        return value if self._thaw is None else self._thaw(value)


def _version_codec(codec: Codec) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    pack, unpack = _TIME.pack, _TIME.unpack_from

    def encode(version: tuple[int, Any]) -> bytes:
        start, value = version
        return pack(start) + (_DELETED if value is None else _PRESENT + codec.encode(value))

    def decode(data: bytes) -> tuple[int, Any]:
        return unpack(data)[0], None if data[8:] == _DELETED else codec.decode(data[9:])

    return encode, decode
