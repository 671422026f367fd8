"""The records of a left or outer join that have found no match yet, in the order of their timestamps."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from headrace.serdes import Serde
from headrace.serdes.renamed_topic import RenamedTopic
from headrace.state.codec import Codec, key_encoder, plain_codec
from headrace.state.image import Changes, Image
from headrace.state.overlay import Overlay
from headrace.state.small_state import SmallState

_PLACE = struct.Struct(">qB")
_NEVER = (1 << 63) - 1
RIGHT, LEFT = 0, 1
"""The sides of a join, in the order in which records of one timestamp come out."""


class UnmatchedStore:
    """Records by (timestamp, side, key), several per place in the order of their arrival."""

    def __init__(
        self,
        name: str,
        key_serde: Serde[Any],
        left_serde: Serde[Any],
        right_serde: Serde[Any],
        image: Image,
        cells: SmallState,
    ) -> None:
        self.name = name
        self.key: Callable[[Any], bytes] = key_encoder(name, key_serde)
        self._decode_key = key_serde.decoder(name)
        # Two topics, so that the two schemas do not come under one subject of a registry.
        right, left = RenamedTopic(right_serde, after="-right"), RenamedTopic(left_serde, after="-left")
        self._codecs = (plain_codec(name, right), plain_codec(name, left))
        encode, decode = _entry_codec(self._codecs)
        self._overlay = Overlay(image.space(name), encode, decode)
        # No record is earlier: what was removed before it is never looked at again.
        self._first = cells.cell(f"{name}/first", _NEVER)

    def add(self, timestamp: int, side: int, key: bytes, value: Any) -> None:
        """Add a record of a serialized key."""
        place = _PLACE.pack(timestamp, side) + key
        entry = self._overlay.get(place)
        values = () if entry is None else entry[1]
        self._first[0] = min(self._first[0], timestamp)
        self._overlay.put(place, (side, (*values, self._codecs[side].freeze(value))))

    def forget(self, timestamp: int, side: int, key: bytes) -> None:
        """Remove all records of that timestamp, side and serialized key."""
        place = _PLACE.pack(timestamp, side) + key
        if self._overlay.get(place) is not None:
            self._overlay.delete(place)

    def walk(self) -> Iterator[tuple[int, int, Any, list[Any], bytes]]:
        """Walk (timestamp, side, key, values, place), earliest first; entries may be removed meanwhile."""
        if self._first[0] == _NEVER:
            return
        all_removed = True
        for place, (side, values) in self._overlay.iterate(_PLACE.pack(self._first[0], RIGHT), None):
            timestamp, _ = _PLACE.unpack_from(place)
            thaw = self._codecs[side].thaw
            if all_removed:
                self._first[0] = timestamp
            thawed = list(values) if thaw is None else [thaw(value) for value in values]
            yield timestamp, side, self._decode_key(place[9:]), thawed, place
            all_removed = all_removed and self._overlay.get(place) is None
        if all_removed:
            self._first[0] = _NEVER

    def remove(self, place: bytes) -> None:
        """Remove the records at a place that `walk` gave."""
        self._overlay.delete(place)

    def commit(self) -> dict[str, Changes]:
        """Hand what changed to the image and return it, by space."""
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
