"""group_by of a table, and count, reduce and aggregate of the grouped table."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.errors import StreamsError
from headrace.operators.table import bind_keep
from headrace.records import Headers
from headrace.serdes import Serde
from headrace.topology.nodes import Process, StepContext

_LENGTH = struct.Struct(">I")
_NEW, _OLD = 1, 2


@dataclass(frozen=True)
class Regrouping:
    """Send an update to its group: one record (new, old) if the row stays in its group, else one for each group.

    A row belongs to no group if the mapper returns None, a None key or a None value for it.
    """

    mapper: Callable[[Any, Any], tuple[Any, Any]]
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        mapper, fail, record = self.mapper, context.fail, context.record

        def pair(key: Any, value: Any) -> tuple[Any, Any] | None:
            if value is None:
                return None
            found = mapper(key, value)
            if found is None:
                return None
            if not isinstance(found, tuple) or len(found) != 2:
                raise StreamsError(f"group_by: expected a (key, value) pair, got {type(found).__name__} ({found!r})")
            return None if found[0] is None or found[1] is None else found

        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            if not record.is_latest:
                return
            try:
                new_pair, old_pair = pair(key, new), pair(key, old)
            except Exception as error:
                return fail(error, key, new, timestamp)
            if old_pair is not None and new_pair is not None and old_pair[0] == new_pair[0]:
                forward(new_pair[0], (new_pair[1], old_pair[1]), timestamp)
                return
            if old_pair is not None:
                forward(old_pair[0], (None, old_pair[1]), timestamp)
            if new_pair is not None:
                forward(new_pair[0], (new_pair[1], None), timestamp)

        return process


@dataclass(frozen=True)
class TableAggregate:
    """Subtract the old value of an update from its group, then add the new one."""

    store: str
    initializer: Callable[[], Any] | None
    """None: the first value is the aggregate (reduce)."""
    adder: Callable[[Any, Any, Any], Any]
    """Called with (key, value, aggregate)."""
    subtractor: Callable[[Any, Any, Any], Any]
    """Called with (key, value, aggregate)."""
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, fail, dropped = context.store(self.store), context.fail, context.dropped
        initializer, adder, subtractor = self.initializer, self.adder, self.subtractor
        keep = bind_keep(context, forward, self.store, self.send_old)
        cached = context.cache(self.store, forward, self.send_old) is not None
        reads_twice = not store.value_is_exact and self.send_old

        def process(key: Any, change: tuple[Any, Any], timestamp: int) -> None:
            if key is None:
                return dropped()
            new, old = change
            try:
                raw = store.key(key)
                entry = store.read(raw)
                aggregate = None if entry is None else entry[0]
                before = store.read(raw)[0] if reads_twice and entry is not None else aggregate
                at = timestamp
                if old is not None and entry is not None:
                    aggregate = subtractor(key, old, aggregate)
                    at = max(timestamp, entry[1])
                if new is not None:
                    if aggregate is None and initializer is None:
                        aggregate = new
                    else:
                        start = initializer() if aggregate is None and initializer is not None else aggregate
                        aggregate = adder(key, new, start)
                        at = timestamp if entry is None else max(timestamp, entry[1])
            except Exception as error:
                return fail(error, key, change, timestamp)
            # A delete that comes out of a cache has the record's own timestamp, as in Kafka Streams.
            keep(key, aggregate, before, timestamp if cached and aggregate is None else at)

        return process


class ChangeSerde(Serde[tuple[Any, Any]]):
    """Serialize (new, old) for a repartition.

    A byte says which of the two are there. If both are, the length of the new value follows. Then come the values.
    """

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"ChangeSerde({self.inner!r})"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[tuple[Any, Any]], bytes]:
        encode = self.inner.encoder(topic, headers)

        def encode_change(change: tuple[Any, Any]) -> bytes:
            new, old = change
            if old is None:
                return bytes([_NEW]) + encode(new)
            if new is None:
                return bytes([_OLD]) + encode(old)
            data = encode(new)
            return bytes([_NEW | _OLD]) + _LENGTH.pack(len(data)) + data + encode(old)

        return encode_change

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], tuple[Any, Any]]:
        decode = self.inner.decoder(topic, headers)

        def decode_change(data: bytes) -> tuple[Any, Any]:
            if data[0] == _NEW:
                return decode(data[1:]), None
            if data[0] == _OLD:
                return None, decode(data[1:])
            end = 5 + _LENGTH.unpack_from(data, 1)[0]
            return decode(data[5:end]), decode(data[end:])

        return decode_change
