"""Join of two tables by a foreign key in the left row.

The left side sends a subscription to the partition of the foreign key. The right side keeps it, and answers now and
whenever the foreign key's row changes. The left side joins an answer with its current row. An answer has the hash
of the row that asked for it: if the row has changed since, the answer is dropped.

The operators have the names of Kafka Streams' processors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.foreign_key_messages import (
    ANSWER_ALWAYS,
    ANSWER_IF_FOUND,
    DELETE,
    DELETE_AND_ANSWER,
    CombinedKeys,
    Response,
    Subscription,
)
from headrace.operators.value_getters import Getter
from headrace.serdes import Serde
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class SubscriptionSend:
    """On an update of the left table: subscribe to the new foreign key, unsubscribe from the old one."""

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
                moves = (
                    old_foreign is not None
                    and new_foreign is not None
                    and encode_foreign(new_foreign) != encode_foreign(old_foreign)
                )
            except Exception as error:
                return fail(error, key, new, timestamp)
            if is_left_join:
                if new is None and old is None:
                    return
                leaves = moves or new_foreign is None
                sent = [(old_foreign, DELETE)] if old_foreign is not None and leaves else []
                sent.append((new_foreign, ANSWER_ALWAYS))
            elif new_foreign is None:
                if new is not None:
                    dropped()
                sent = [] if old_foreign is None else [(old_foreign, DELETE_AND_ANSWER)]
            elif moves:
                sent = [(old_foreign, DELETE), (new_foreign, ANSWER_ALWAYS)]
            else:
                sent = [(new_foreign, ANSWER_IF_FOUND)]
            for foreign, instruction in sent:
                forward(foreign, Subscription(row, instruction, key, partition), timestamp)

        return process


@dataclass(frozen=True)
class SubscriptionReceive:
    """Keep a subscription, or delete it, and pass it on."""

    store: str
    foreign_serde: Serde[Any] | None
    primary_serde: Serde[Any] | None
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, store = context.fail, context.dropped, context.store(self.store)
        keys = CombinedKeys(context, self.store, self.foreign_serde, self.primary_serde)

        def process(foreign: Any, subscription: Subscription, timestamp: int) -> None:
            if foreign is None and subscription.instruction != ANSWER_ALWAYS:
                return dropped()
            if foreign is not None:
                try:
                    kept = subscription.instruction in (ANSWER_IF_FOUND, ANSWER_ALWAYS)
                    entry = (subscription.hash, subscription.partition) if kept else None
                    store.write(keys.key(foreign, subscription.primary_key), entry, timestamp)
                except Exception as error:
                    return fail(error, foreign, subscription, timestamp)
            forward(foreign, subscription, timestamp)

        return process


@dataclass(frozen=True)
class SubscriptionJoin:
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
class ForeignTableJoin:
    """On an update of the right table: answer all subscribers of the row."""

    store: str
    foreign_serde: Serde[Any] | None
    primary_serde: Serde[Any] | None
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, record, store = context.fail, context.dropped, context.record, context.store(self.store)
        keys = CombinedKeys(context, self.store, self.foreign_serde, self.primary_serde)

        def process(foreign: Any, new: Any, old: Any, timestamp: int) -> None:
            if foreign is None or not record.is_latest:
                return dropped()
            try:
                prefix = keys.prefix(foreign)
                subscribers = [(keys.primary(raw, prefix), entry[0]) for raw, entry in store.prefix_scan(prefix)]
            except Exception as error:
                return fail(error, foreign, new, timestamp)
            for primary, (row, partition) in subscribers:
                forward(primary, Response(row, new, partition), timestamp)

        return process


@dataclass(frozen=True)
class ResponseJoin:
    """Join an answer with the left table's current row, if it is the row that asked."""

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
