"""The messages between the two sides of a foreign-key join, and the subscriptions that the right side keeps.

The serdes of the two keys and of the row are called with topics of their own, which end in -fk, -pk and -vh, as in
Kafka Streams: so no two schemas share a subject of a schema registry.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from headrace.records import Headers
from headrace.serdes import Serde
from headrace.topology.nodes import StepContext

DELETE = 0
DELETE_AND_ANSWER = 1
ANSWER_IF_FOUND = 2
ANSWER_ALWAYS = 3
"""The instructions of a subscription. The last two keep it."""

_LENGTH = struct.Struct(">I")


class Subscription(NamedTuple):
    """What the left side sends to the foreign key's row."""

    hash: bytes | None
    """Of the left row that asks."""
    instruction: int
    primary_key: Any
    partition: int
    """Of the left row: where the answer goes."""


class Response(NamedTuple):
    """What the right side answers to the left row."""

    hash: bytes | None
    """Of the left row that asked."""
    foreign_value: Any
    partition: int


def response_partition(topic: str, key: Any, response: Response, partitions: int) -> int:
    """Send an answer to the partition that asked."""
    return response.partition


class CombinedKeys:
    """The keys of a subscription store: the length of the foreign key, the foreign key, the primary key.

    So the subscriptions of a foreign key are side by side, as in Kafka Streams.
    """

    def __init__(
        self, context: StepContext, store: str, foreign_serde: Serde[Any] | None, primary_serde: Serde[Any] | None
    ) -> None:
        foreign, primary = context.serde(foreign_serde, "key"), context.serde(primary_serde, "key")
        self._encode_foreign = foreign.encoder(f"{store}-fk")
        self._encode_primary, self._decode_primary = primary.encoder(f"{store}-pk"), primary.decoder(f"{store}-pk")

    def key(self, foreign: Any, primary: Any) -> bytes:
        """Return the key of a subscription."""
        return self.prefix(foreign) + self._encode_primary(primary)

    def prefix(self, foreign: Any) -> bytes:
        """Return the prefix of the keys of all subscriptions of a foreign key."""
        raw = self._encode_foreign(foreign)
        return _LENGTH.pack(len(raw)) + raw

    def primary(self, key: bytes, prefix: bytes) -> Any:
        """Return the primary key in the key of a subscription."""
        return self._decode_primary(key[len(prefix) :])


class SubscriptionSerde(Serde[Subscription]):
    """Serialize a subscription for the way to the foreign key's partition."""

    def __init__(self, primary: Serde[Any]) -> None:
        self.primary = primary

    def __repr__(self) -> str:
        return f"SubscriptionSerde({self.primary!r})"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[Subscription], bytes]:
        encode_key, pack = self.primary.encoder(f"{topic}-pk", headers), msgspec.msgpack.encode
        return lambda sent: pack((sent.hash, sent.instruction, encode_key(sent.primary_key), sent.partition))

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], Subscription]:
        decode_key, unpack = self.primary.decoder(f"{topic}-pk", headers), msgspec.msgpack.decode

        def decode(data: bytes) -> Subscription:
            row, instruction, key, partition = unpack(data)
            return Subscription(row, instruction, decode_key(key), partition)

        return decode


class ResponseSerde(Serde[Response]):
    """Serialize an answer for the way back to the left table's partition."""

    def __init__(self, foreign_value: Serde[Any]) -> None:
        self.foreign_value = foreign_value

    def __repr__(self) -> str:
        return f"ResponseSerde({self.foreign_value!r})"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[Response], bytes]:
        encode_value, pack = self.foreign_value.encoder(topic, headers), msgspec.msgpack.encode

        def encode(response: Response) -> bytes:
            row, value, partition = response
            return pack((row, None if value is None else encode_value(value), partition))

        return encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], Response]:
        decode_value, unpack = self.foreign_value.decoder(topic, headers), msgspec.msgpack.decode

        def decode(data: bytes) -> Response:
            row, value, partition = unpack(data)
            return Response(row, None if value is None else decode_value(value), partition)

        return decode


class StoredSubscriptionSerde(Serde[tuple[bytes | None, int]]):
    """Serialize the values of a subscription store: the hash and the partition of a subscription."""

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "StoredSubscriptionSerde()"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[Any], bytes]:
        return msgspec.msgpack.encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], Any]:
        return lambda data: tuple(msgspec.msgpack.decode(data))
