"""Versioned stores: several values of a key over time."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from headrace.records import ValueAndTimestamp
from headrace.serdes import Serde
from headrace.state.cells import Cells
from headrace.state.codec import key_encoder, plain_codec
from headrace.state.image import Changes, Image
from headrace.state.overlay import Overlay

K = TypeVar("K")
V = TypeVar("V")

_TIME = struct.Struct(">Q")
_OFFSET = 1 << 63  # shifts signed times so that their bytes sort as the times do
_MAX_TIME = (1 << 63) - 1
_DELETED = b"\0"
_PRESENT = b"\1"


class VersionedRecord(NamedTuple, Generic[V]):
    """A value with the time from which it held, and the time from which it no longer did (None: it still does)."""

    value: V
    timestamp: int
    valid_to: int | None = None


class VersionedStore(Generic[K, V]):
    """The values a key has had during `history_retention`, and its latest one for ever.

    Bytes of an entry's key: the key's and the time from which the version holds (8). A put that is older than the
    history is refused.
    """

    def __init__(
        self,
        name: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        image: Image,
        cells: Cells,
        *,
        history_retention: int,
    ) -> None:
        self.name = name
        self.history_retention = history_retention
        self.key = key_encoder(name, key_serde)
        self._decode_key = key_serde.decoder(name)
        codec = plain_codec(name, value_serde)
        self.value_is_exact = value_serde.exact_type is not None
        self._freeze, self._thaw = codec.freeze, codec.thaw

        def encode(entry: tuple[Any]) -> bytes:
            return _DELETED if entry[0] is None else _PRESENT + codec.encode(entry[0])

        def decode(data: bytes) -> tuple[Any]:
            return (None,) if data == _DELETED else (codec.decode(data[1:]),)

        self._overlay = Overlay(image.space(name), encode, decode)
        self._observed = cells.cell(f"{name}/observed", -1)

    def put(self, key: K, value: V | None, timestamp: int) -> int | None:
        """Add a version; return when it stops holding, or None when it is the latest.

        Raise nothing for a version older than the history: it is not stored, and -1 is returned.
        """
        return self.write(self.key(key), value, timestamp)

    def write(self, raw: bytes, value: V | None, timestamp: int) -> int | None:
        """Add a version of a serialized key: for operators."""
        observed = self._observed
        if timestamp < observed[0] - self.history_retention:
            return -1
        observed[0] = max(observed[0], timestamp)
        following = self._first(raw, timestamp + 1, _MAX_TIME, reverse=False)
        frozen = None if value is None else self._freeze(value)
        self._overlay.put(raw + _TIME.pack(timestamp + _OFFSET), (frozen,))
        self._forget_history(raw)
        return None if following is None else following[0]

    def get(self, key: K, as_of: int | None = None) -> VersionedRecord[V] | None:
        """Return the latest version of a key, or the one that held at a time; None where it was deleted or unknown."""
        return self._get(self.key(key), as_of)

    def read(self, raw: bytes) -> ValueAndTimestamp[V] | None:
        """Return the latest value of a serialized key with its time: for operators."""
        record = self._get(raw, None)
        return None if record is None else ValueAndTimestamp(record.value, record.timestamp)

    def _get(self, raw: bytes, as_of: int | None) -> VersionedRecord[V] | None:
        latest = self._first(raw, -_OFFSET, _MAX_TIME, reverse=True)
        if latest is None:
            return None
        if as_of is None or latest[0] <= as_of:
            return self._record(latest, None)
        if as_of < self._observed[0] - self.history_retention:
            return None
        found = self._first(raw, -_OFFSET, as_of, reverse=True)
        if found is None:
            return None
        following = self._first(raw, as_of + 1, _MAX_TIME, reverse=False)
        return self._record(found, None if following is None else following[0])

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Delete a key from a time on; return the version that held at that time."""
        if timestamp < self._observed[0] - self.history_retention:
            return None
        existing = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return existing

    def all(self) -> Iterator[tuple[K, VersionedRecord[V]]]:
        """Walk the latest version of every key."""
        seen: bytes | None = None
        for raw, _ in self._overlay.iterate(None, None):
            key = raw[:-8]
            if key != seen:
                seen = key
                decoded = self._decode_key(key)
                record = self.get(decoded)
                if record is not None:
                    yield decoded, record

    def commit(self) -> dict[str, Changes]:
        """Hand what changed to the image and return it, by space."""
        return {self.name: self._overlay.commit()}

    def _record(self, version: tuple[int, Any], valid_to: int | None) -> VersionedRecord[V] | None:
        start, entry = version
        if entry is None:
            return None
        return VersionedRecord(entry if self._thaw is None else self._thaw(entry), start, valid_to)

    def _first(self, key: bytes, earliest: int, latest: int, *, reverse: bool) -> tuple[int, Any] | None:
        """Return (start, value) of the first or last version that starts in a span."""
        if latest < earliest:
            return None
        low, high = key + _TIME.pack(earliest + _OFFSET), key + _TIME.pack(latest + _OFFSET)
        length = len(key) + 8
        for raw, entry in self._overlay.iterate(low, high, reverse=reverse):
            if len(raw) == length:
                return _TIME.unpack_from(raw, length - 8)[0] - _OFFSET, entry[0]
        return None

    def _forget_history(self, key: bytes) -> None:
        """Delete a key's versions that no query can reach any more."""
        floor = self._observed[0] - self.history_retention
        low, high = key + _TIME.pack(0), key + _TIME.pack(max(floor, -_OFFSET) + _OFFSET)
        reachable = [raw for raw, _ in self._overlay.between(low, high) if len(raw) == len(key) + 8]
        for raw in reachable[:-1]:
            self._overlay.put(raw, None)
