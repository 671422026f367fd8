"""The records of a left or outer join that have no match yet, in the order of their timestamps."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from headrace.serdes import Serde
from headrace.serdes.renamed_topic import RenamedTopic
from headrace.state.codec import Codec, key_encoder, plain_codec
from headrace.state.image import Changes
from headrace.state.overlay import Overlay
from headrace.state.setup import StoreSetup

_PREFIX = struct.Struct(">qB")
_NEVER = (1 << 63) - 1
RIGHT, LEFT = 0, 1
"""The sides of a join, in the order in which records with the same timestamp come out."""


class UnmatchedRecords:
    """Records by timestamp, side and key. Records with the same three are in the order of their arrival.

    An entry key is the timestamp (8, big-endian), the side (1) and the key's bytes.
    """

    def __init__(self, setup: StoreSetup, right_serde: Serde[Any]) -> None:
        """Take the serde of the left side's values from the setup."""
        self.name = name = setup.name
        self.key: Callable[[Any], bytes] = key_encoder(name, setup.key_serde)
        self._decode_key = setup.key_serde.decoder(name)
        # Two topics, so that a registry keeps the two schemas under two subjects.
        right, left = RenamedTopic(right_serde, after="-right"), RenamedTopic(setup.value_serde, after="-left")
        self._codecs = (plain_codec(name, right), plain_codec(name, left))
        encode, decode = _entry_codec(self._codecs)
        self._overlay = Overlay(setup.image.space(name), encode, decode)
        # No record is earlier. Earlier ones were removed and are never looked at again.
        self._first = setup.small_state.cell(f"{name}/first", _NEVER)

    def add(self, timestamp: int, side: int, key: bytes, value: Any) -> None:
        """Add a record of a serialized key."""
        entry_key = _PREFIX.pack(timestamp, side) + key
        entry = self._overlay.get(entry_key)
        values = () if entry is None else entry[1]
        self._first[0] = min(self._first[0], timestamp)
        self._overlay.put(entry_key, (side, (*values, self._codecs[side].freeze(value))))

    def forget(self, timestamp: int, side: int, key: bytes) -> None:
        """Remove all records of that timestamp, side and serialized key."""
        entry_key = _PREFIX.pack(timestamp, side) + key
        if self._overlay.get(entry_key) is not None:
            self._overlay.delete(entry_key)

    def walk(self) -> Iterator[tuple[int, int, Any, list[Any], bytes]]:
        """Walk (timestamp, side, key, values, entry key), earliest first. Entries may be removed during the walk."""
        if self._first[0] == _NEVER:
            return
        all_removed = True
        for entry_key, (side, values) in self._overlay.iterate(_PREFIX.pack(self._first[0], RIGHT), None):
            timestamp, _ = _PREFIX.unpack_from(entry_key)
            thaw = self._codecs[side].thaw
            if all_removed:
                self._first[0] = timestamp
            thawed = list(values) if thaw is None else [thaw(value) for value in values]
            yield timestamp, side, self._decode_key(entry_key[9:]), thawed, entry_key
            all_removed = all_removed and self._overlay.get(entry_key) is None
        if all_removed:
            self._first[0] = _NEVER

    def remove(self, entry_key: bytes) -> None:
        """Remove the records with an entry key that `walk` gave."""
        self._overlay.delete(entry_key)

    def commit(self) -> dict[str, Changes]:
        """Hand the changes to the image and return them, by space."""
        return {self.name: self._overlay.commit()}


def _entry_codec(codecs: tuple[Codec, Codec]) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder()

    def encode(entry: Any) -> bytes:
        side, values = entry
        return encoder.encode((side, [codecs[side].encode(value) for value in values]))

    def decode(data: bytes) -> Any:
        side, values = decoder.decode(data)
        return side, tuple(codecs[side].decode(value) for value in values)

    return encode, decode
