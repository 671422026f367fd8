"""How a store keeps a value between commits, and as bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from headrace.errors import SerializationError
from headrace.serdes import Serde
from headrace.serdes.error_messages import shown

_TIMESTAMP = struct.Struct(">q")
_UNCHANGING = frozenset((str, int, float, bool, type(None)))


@dataclass(frozen=True)
class Codec:
    """Four conversions of a store's values. An entry with a timestamp is a plain tuple here; users see it by name.

    A value that cannot change and survives a round trip (a str, an int) is kept as it is until the commit. Any other is
    turned into bytes when it is put, and made anew at every get: nobody can change it behind the store's back.
    """

    freeze: Callable[[Any], Any]
    """From what the user puts to what the overlay keeps."""
    thaw: Callable[[Any], Any] | None
    """From what the overlay keeps to what operators get; None where they are the same."""
    encode: Callable[[Any], bytes]
    """From what the overlay keeps to bytes."""
    decode: Callable[[bytes], Any]
    """From bytes to what the overlay keeps."""
    thaw_value: Callable[[Any], Any] | None = None
    """What `thaw` does to the value of a timestamped entry, for those who cannot afford the call."""


def _same(data: bytes) -> bytes:
    return data


def plain_codec(store: str, serde: Serde[Any]) -> Codec:
    """Keep a value alone."""
    encoder, decoder = serde.encoder(store), serde.decoder(store)
    exact = serde.exact_type

    def to_bytes(value: Any) -> bytes:
        try:
            return encoder(value)
        except Exception:
            return _explain(store, serde, value)

    if exact is None:
        return Codec(to_bytes, decoder, _same, _same)

    def check(value: Any) -> Any:
        return value if value.__class__ is exact else decoder(to_bytes(value))

    return Codec(check, None, to_bytes, decoder)


def timestamped_codec(store: str, serde: Serde[Any]) -> Codec:
    """Keep a value with its timestamp: as bytes the timestamp (8, big-endian) comes first, as in Kafka Streams."""
    pack, unpack = _TIMESTAMP.pack, _TIMESTAMP.unpack_from
    inner = plain_codec(store, serde)
    inner_freeze, inner_thaw, inner_encode, inner_decode = inner.freeze, inner.thaw, inner.encode, inner.decode
    exact = serde.exact_type

    def freeze(entry: tuple[Any, int]) -> Any:
        value, timestamp = entry
        if value.__class__ is exact:
            return entry
        frozen = inner_freeze(value)
        return None if frozen is None else (frozen, timestamp)

    def encode(entry: Any) -> bytes:
        value, timestamp = entry
        return pack(timestamp) + inner_encode(value)

    def encode_exact(entry: Any) -> bytes:
        try:
            return pack(entry[1]) + encoder(entry[0])
        except Exception:
            return encode(entry)  # which says what is wrong

    def decode(data: bytes) -> Any:
        return inner_decode(data[8:]), unpack(data)[0]

    encoder = serde.encoder(store)
    if inner_thaw is None:
        return Codec(freeze, None, encode_exact, decode)

    def freeze_bytes(entry: tuple[Any, int]) -> Any:
        value, timestamp = entry
        try:
            frozen = encoder(value)
        except Exception:
            frozen = _explain(store, serde, value)
        return None if frozen is None else (frozen, timestamp)

    def thaw(entry: Any) -> Any:
        return inner_thaw(entry[0]), entry[1]

    return Codec(freeze_bytes, thaw, encode, decode, inner_thaw)


def value_maker(value: Any, frozen: Any, thaw_value: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return what makes a value anew that an overlay keeps: a copy is made faster than bytes are read.

    >>> import json
    >>> frozen = b'{"city":"Ulm"}'
    >>> make = value_maker(json.loads(frozen), frozen, json.loads)
    >>> make(), make() is make()
    ({'city': 'Ulm'}, False)
    """
    if value.__class__ is dict and _UNCHANGING.issuperset(map(type, value.values())):
        return value.copy().copy  # who has the value itself may change it
    return partial(thaw_value, frozen)


def with_timestamp(store: str, entry: Any) -> Any:
    """Return what a user puts into a timestamped store, or raise when it has no timestamp."""
    if entry is None or (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], int)):
        return entry
    raise SerializationError(
        f"store '{store}': the store keeps timestamps, expected ValueAndTimestamp(value, timestamp), got {shown(entry)}"
    )


def key_encoder(store: str, serde: Serde[Any]) -> Callable[[Any], bytes]:
    """Return the function that turns a store's key into bytes."""
    encoder = serde.encoder(store)

    def encode_key(key: Any) -> bytes:
        try:
            return encoder(key)
        except Exception:
            return _explain(store, serde, key, "key")

    def encode_checked(key: Any) -> bytes:
        try:
            data = encoder(key)
        except Exception:
            return _explain(store, serde, key, "key")
        if data is None or key is None:
            raise SerializationError(f"store '{store}': expected a key, got {key!r}, which {serde!r} writes as null")
        return data

    # The encoder of an exact type neither takes None nor gives it.
    return encode_key if serde.exact_type is not None else encode_checked


def _explain(store: str, serde: Serde[Any], value: Any, part: str = "value") -> bytes:
    if value is None:
        raise SerializationError(f"store '{store}': expected a {part}, got None")
    try:
        data = serde.serialize(store, value)
    except SerializationError as error:
        raise SerializationError(f"store '{store}': {error}") from error.__cause__
    assert data is not None
    return data
