"""Join of two tables by a foreign key in the left one's value.

The left side sends a subscription to where the foreign key's row is; that side keeps it, and answers now and at every
change of the row; the left side joins the answer with its current row. An answer that was asked for by an older row is
recognised by the hash of that row and dropped.

Two keys and a row are serialized beside the topics' own: the topics that serdes see for them end in -fk, -pk and -vh,
as in Kafka Streams, so that no two schemas come under one subject of a registry.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from headrace.operators.value_getters import Getter
from headrace.records import Headers
from headrace.serdes import Serde
from headrace.topology.nodes import Process, StepContext

DELETE = 0
DELETE_AND_ANSWER = 1
ANSWER_IF_FOUND = 2
ANSWER_ALWAYS = 3
"""What a subscription asks for."""

_LENGTH = struct.Struct(">I")


class Subscription(NamedTuple):
    """What the left side sends to the foreign key's row."""

    hash: bytes | None
    instruction: int
    primary_key: Any
    partition: int


class Response(NamedTuple):
    """What the right side answers to the left row."""

    hash: bytes | None
    foreign_value: Any
    partition: int


def response_partition(topic: str, key: Any, response: Response, partitions: int) -> int:
    """Send an answer to the partition that asked."""
    return response.partition


def combined_key(foreign: bytes, primary: bytes) -> bytes:
    """Put both keys together so that the subscriptions of a foreign key stand side by side, as in Kafka Streams."""
    return _LENGTH.pack(len(foreign)) + foreign + primary


@dataclass(frozen=True)
class Subscribe:
    """On an update of the left table: subscribe to the new foreign key, unsubscribe from the old."""

    foreign_key: Callable[[Any, Any], Any]
    """Called with (key, value)."""
    foreign_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    is_left_join: bool
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, record = context.fail, context.dropped, context.record
        extract, is_left_join = self.foreign_key, self.is_left_join
        encode_foreign = context.serde(self.foreign_serde, "key").encoder(f"{context.step}-fk")
        hash_of = _hasher(context.serde(self.value_serde, "value"), context.step)
        partition = context.partition()

        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            if not record.is_latest:
                return dropped()
            try:
                new_foreign = None if new is None else extract(key, new)
                old_foreign = None if old is None else extract(key, old)
                row = None if new is None else hash_of(new)
                changed = (
                    new_foreign is None
                    or old_foreign is None
                    or encode_foreign(new_foreign) != encode_foreign(old_foreign)
                )
            except Exception as error:
                return fail(error, key, new, timestamp)

            def send(foreign: Any, instruction: int) -> None:
                forward(foreign, Subscription(row, instruction, key, partition), timestamp)

            if is_left_join:
                if new is None and old is None:
                    return
                if old_foreign is not None and changed:
                    send(old_foreign, DELETE)
                send(new_foreign, ANSWER_ALWAYS)
            elif new_foreign is None:
                if new is not None:
                    dropped()
                if old_foreign is not None:
                    send(old_foreign, DELETE_AND_ANSWER)
            elif old_foreign is not None and changed:
                send(old_foreign, DELETE)
                send(new_foreign, ANSWER_ALWAYS)
            else:
                send(new_foreign, ANSWER_IF_FOUND)

        return process


@dataclass(frozen=True)
class KeepSubscription:
    """Keep a subscription beside the foreign key's row."""

    store: str
    foreign_serde: Serde[Any] | None
    primary_serde: Serde[Any] | None
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, store = context.fail, context.dropped, context.store(self.store)
        encode_foreign = context.serde(self.foreign_serde, "key").encoder(f"{self.store}-fk")
        encode_primary = context.serde(self.primary_serde, "key").encoder(f"{self.store}-pk")

        def process(foreign: Any, subscription: Subscription, timestamp: int) -> None:
            if foreign is None and subscription.instruction != ANSWER_ALWAYS:
                return dropped()
            if foreign is not None:
                try:
                    place = combined_key(encode_foreign(foreign), encode_primary(subscription.primary_key))
                    kept = subscription.instruction in (ANSWER_IF_FOUND, ANSWER_ALWAYS)
                    store.write(place, (subscription.hash, subscription.partition) if kept else None, timestamp)
                except Exception as error:
                    return fail(error, foreign, subscription, timestamp)
            forward(foreign, subscription, timestamp)

        return process


@dataclass(frozen=True)
class AnswerSubscription:
    """Answer a new subscription with the foreign key's current row."""

    table: Getter
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, get = context.fail, self.table.bind(context)

        def process(foreign: Any, subscription: Subscription, timestamp: int) -> None:
            instruction = subscription.instruction
            if instruction == DELETE:
                return
            try:
                found = None if foreign is None else get(foreign)
            except Exception as error:
                return fail(error, foreign, subscription, timestamp)
            if found is None and instruction == ANSWER_IF_FOUND:
                return
            value = None if found is None or instruction == DELETE_AND_ANSWER else found[0]
            at = timestamp if found is None else max(timestamp, found[1])
            forward(subscription.primary_key, Response(subscription.hash, value, subscription.partition), at)

        return process


@dataclass(frozen=True)
class AnswerSubscribers:
    """On an update of the right table: answer everybody who subscribed to the row."""

    store: str
    foreign_serde: Serde[Any] | None
    primary_serde: Serde[Any] | None
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, record, store = context.fail, context.dropped, context.record, context.store(self.store)
        encode_foreign = context.serde(self.foreign_serde, "key").encoder(f"{self.store}-fk")
        decode_primary = context.serde(self.primary_serde, "key").decoder(f"{self.store}-pk")

        def process(foreign: Any, new: Any, old: Any, timestamp: int) -> None:
            if foreign is None or not record.is_latest:
                return dropped()
            try:
                prefix = combined_key(encode_foreign(foreign), b"")
                subscribers = [
                    (decode_primary(place[len(prefix) :]), entry[0]) for place, entry in store.prefix_scan(prefix)
                ]
            except Exception as error:
                return fail(error, foreign, new, timestamp)
            for primary, (row, partition) in subscribers:
                forward(primary, Response(row, new, partition), timestamp)

        return process


@dataclass(frozen=True)
class ResolveResponse:
    """Join an answer with the left table's current row, if that is the row that asked."""

    table: Getter
    value_serde: Serde[Any] | None
    subscribe_step: str
    joiner: Callable[[Any, Any, Any], Any]
    """Called with (key, left, right)."""
    is_left_join: bool
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, joiner, is_left_join = context.fail, context.dropped, self.joiner, self.is_left_join
        get, hash_of = self.table.bind(context), _hasher(context.serde(self.value_serde, "value"), self.subscribe_step)

        def process(key: Any, response: Response, timestamp: int) -> None:
            try:
                found = get(key)
                if (None if found is None else hash_of(found[0])) != response.hash:
                    return dropped()
                if response.foreign_value is None and (not is_left_join or found is None):
                    result = None
                else:
                    result = joiner(key, None if found is None else found[0], response.foreign_value)
            except Exception as error:
                return fail(error, key, response, timestamp)
            forward(key, result, timestamp)

        return process


def _hasher(serde: Serde[Any], topic: str) -> Callable[[Any], bytes]:
    encode, blake = serde.encoder(f"{topic}-vh"), hashlib.blake2b

    def hash_of(value: Any) -> bytes:
        return blake(encode(value), digest_size=16).digest()

    return hash_of


class SubscriptionSerde(Serde[Subscription]):
    """Carry a subscription to the foreign key's partition."""

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
    """Carry an answer back to the left table's partition."""

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
    """Keep (hash, partition) of a subscription."""

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "StoredSubscriptionSerde()"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[Any], bytes]:
        return msgspec.msgpack.encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], Any]:
        return lambda data: tuple(msgspec.msgpack.decode(data))
