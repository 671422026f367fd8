"""The buffer of suppress: the latest update of every key, in the order in which they are due."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from headrace.records import Headers
from headrace.state.codec import Codec, key_encoder, plain_codec
from headrace.state.image import Changes
from headrace.state.overlay import Overlay
from headrace.state.setup import StoreSetup

_TIME = struct.Struct(">q")
_NEVER = _TIME.pack((1 << 63) - 1)
# Kafka Streams counts for an entry beside its bytes: the buffer time; timestamp, offset and partition of the record.
_ENTRY_OVERHEAD = 8
_CONTEXT_OVERHEAD = 8 + 8 + 4


class BufferedUpdate(NamedTuple):
    """A waiting update. Its values are frozen by the codec."""

    new: Any
    old: Any
    prior: Any
    timestamp: int
    headers: Headers
    topic: str
    partition: int
    offset: int


class SuppressBuffer:
    """Hold back updates until they are due. The first waiting update of a key decides when that is.

    An entry key is the time at which the entry is due (8, big-endian) and the key's bytes.
    """

    def __init__(self, setup: StoreSetup, *, count_bytes: bool = False) -> None:
        self.name = name = setup.name
        self.key: Callable[[Any], bytes] = key_encoder(name, setup.key_serde)
        self._decode_key = setup.key_serde.decoder(name)
        self._codec = codec = plain_codec(name, setup.value_serde)
        self._due = Overlay(setup.image.space(f"{name}/due"), _TIME.pack, lambda data: _TIME.unpack(data)[0])
        encode, decode = _entry_codec(codec)
        self._entries = Overlay(setup.image.space(name), encode, decode)
        self._count_bytes = count_bytes
        self._records = setup.small_state.cell(f"{name}/records", 0)
        self._bytes = setup.small_state.cell(f"{name}/bytes", 0)
        # The entry key that is due first. Nothing before it is looked at again: it was taken.
        self._next = setup.small_state.cell(f"{name}/next", _NEVER)

    @property
    def records(self) -> int:
        """Return how many keys are waiting."""
        return self._records[0]  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Return the size of the waiting updates, as Kafka Streams counts it; 0 without `count_bytes`."""
        return self._bytes[0]  # type: ignore[no-any-return]

    @property
    def next_due(self) -> int:
        """Return the time at which the next entry is due."""
        return _TIME.unpack_from(self._next[0])[0]  # type: ignore[no-any-return]

    def put(
        self,
        due: int,
        key: Any,
        new: Any,
        old: Any,
        timestamp: int,
        headers: Headers,
        topic: str,
        partition: int = -1,
        offset: int = -1,
    ) -> None:
        """Replace a key's waiting update, or add one; the last arguments are the record that made it."""
        raw = self.key(key)
        freeze = self._codec.freeze
        frozen_new = None if new is None else freeze(new)
        frozen_old = None if old is None else freeze(old)
        first_due = self._due.get(raw)
        if first_due is None:
            entry_key = _TIME.pack(due) + raw
            entry = BufferedUpdate(frozen_new, frozen_old, frozen_old, timestamp, headers, topic, partition, offset)
            self._due.put(raw, due)
            self._records[0] += 1
            if entry_key < self._next[0]:
                self._next[0] = entry_key
        else:
            entry_key = _TIME.pack(first_due) + raw
            before = self._entries.get(entry_key)
            entry = BufferedUpdate(frozen_new, frozen_old, before.prior, timestamp, headers, topic, partition, offset)
            if self._count_bytes:
                self._bytes[0] -= self._size(raw, before)
        self._entries.put(entry_key, entry)
        if self._count_bytes:
            self._bytes[0] += self._size(raw, entry)

    def take_while(self, wanted: Callable[[], bool]) -> Iterator[tuple[Any, Any, Any, BufferedUpdate]]:
        """Take the entries that are due first while more are wanted: key, new value, old value and the entry."""
        if not wanted():
            return
        entries = self._entries.iterate(self._next[0], None)
        current = next(entries, None)
        while current is not None and wanted():
            entry_key, entry = current
            raw = entry_key[8:]
            self._due.delete(raw)
            self._entries.delete(entry_key)
            self._records[0] -= 1
            if self._count_bytes:
                self._bytes[0] -= self._size(raw, entry)
            current = next(entries, None)
            self._next[0] = _NEVER if current is None else current[0]
            yield self._decode_key(raw), self._thaw(entry.new), self._thaw(entry.old), entry

    def prior_value(self, key: Any) -> tuple[Any] | None:
        """Return the value before a key's first waiting update, in a tuple; None when the key is not waiting."""
        raw = self.key(key)
        due = self._due.get(raw)
        if due is None:
            return None
        return (self._thaw(self._entries.get(_TIME.pack(due) + raw).prior),)

    def commit(self) -> dict[str, Changes]:
        """Hand the changes to the image and return them, by space."""
        return {f"{self.name}/due": self._due.commit(), self.name: self._entries.commit()}

    def _thaw(self, value: Any) -> Any:
        return value if value is None or self._codec.thaw is None else self._codec.thaw(value)

    def _size(self, key: bytes, entry: BufferedUpdate) -> int:
        def length(value: Any) -> int:
            return 0 if value is None else len(self._codec.encode(value))

        # Kafka Streams keeps the old and the prior value as one when they have the same bytes.
        old = 0 if entry.old == entry.prior else length(entry.old)
        headers = sum(len(name) + len(value) for name, value in entry.headers)
        values = length(entry.new) + old + length(entry.prior)
        return _ENTRY_OVERHEAD + len(key) + values + _CONTEXT_OVERHEAD + len(entry.topic) + headers


def _entry_codec(codec: Codec) -> tuple[Callable[[BufferedUpdate], bytes], Callable[[bytes], BufferedUpdate]]:
    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder()

    def to_bytes(value: Any) -> bytes | None:
        return None if value is None else codec.encode(value)

    def from_bytes(data: bytes | None) -> Any:
        return None if data is None else codec.decode(data)

    def encode(entry: BufferedUpdate) -> bytes:
        new, old, prior, *record = entry
        return encoder.encode((to_bytes(new), to_bytes(old), to_bytes(prior), *record))

    def decode(data: bytes) -> BufferedUpdate:
        new, old, prior, timestamp, headers, *origin = decoder.decode(data)
        pairs = [(name, value) for name, value in headers]
        return BufferedUpdate(from_bytes(new), from_bytes(old), from_bytes(prior), timestamp, pairs, *origin)

    return encode, decode
