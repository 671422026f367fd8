"""The forms of a store's values: as users see them, as an overlay keeps them, and as bytes."""

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
    """Conversions between the forms of a store's values. Values with timestamps are plain tuples here.

    A value that cannot change and survives a round trip (a str, an int) is kept as it is until the commit. Any other
    value is turned into bytes by a put and read from them by every get, so that nobody can change it in the store.
    """

    freeze: Callable[[Any], Any]
    """From the value that a user puts to the frozen value, which the overlay keeps."""
    thaw: Callable[[Any], Any] | None
    """From the frozen value to the value that operators get; None where both are the same."""
    encode: Callable[[Any], bytes]
    """From the frozen value to bytes."""
    decode: Callable[[bytes], Any]
    """From bytes to the frozen value."""
    thaw_value: Callable[[Any], Any] | None = None
    """The `thaw` of the value in a timestamped entry: the hot path calls it directly and saves the call of `thaw`."""


def _same(data: bytes) -> bytes:
    return data


def plain_codec(store: str, serde: Serde[Any]) -> Codec:
    """Make the codec of values without timestamps."""
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
    """Make the codec of values with timestamps. As in Kafka Streams, the timestamp (8 bytes, big-endian) is first."""
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
            return encode(entry)  # raises an error that says what is wrong

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
    """Return a function that makes a new copy of a value each time: by `copy` if possible, which is faster than bytes.

    >>> import json
    >>> frozen = b'{"city":"Ulm"}'
    >>> make = value_maker(json.loads(frozen), frozen, json.loads)
    >>> make(), make() is make()
    ({'city': 'Ulm'}, False)
    """
    if value.__class__ is dict and _UNCHANGING.issuperset(map(type, value.values())):
        return value.copy().copy  # a copy of a copy: the caller may change the value
    return partial(thaw_value, frozen)


def with_timestamp(store: str, entry: Any) -> Any:
    """Return the entry that a user puts into a timestamped store, or raise an error when it has no timestamp."""
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

    # The encoder of an exact type neither takes nor returns None.
    return encode_key if serde.exact_type is not None else encode_checked


def _explain(store: str, serde: Serde[Any], value: Any, role: str = "value") -> bytes:
    if value is None:
        raise SerializationError(f"store '{store}': expected a {role}, got None")
    try:
        data = serde.serialize(store, value)
    except SerializationError as error:
        raise SerializationError(f"store '{store}': {error}") from error.__cause__
    assert data is not None
    return data
