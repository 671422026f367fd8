"""count, reduce and aggregate of a grouped stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.table import NOT_PUT, pass_on
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class Aggregate:
    """Fold the values of a key.

    A record with a null key or value is dropped. An aggregate of None deletes the row. A result has the larger
    timestamp of the record and the row.
    """

    store: str
    initializer: Callable[[], Any] | None
    """None: the first value is the aggregate (reduce)."""
    aggregator: Callable[[Any, Any, Any], Any]
    """Called with (key, value, aggregate)."""
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, record, fail, dropped = context.store(self.store), context.record, context.fail, context.dropped
        key_of, read, write = store.key, store.read, store.write
        initializer, aggregator, send_old = self.initializer, self.aggregator, self.send_old
        cache = context.cache(self.store, forward, send_old)
        hold = None if cache is None else cache.put
        # An aggregator may change its aggregate in place: then downstream needs an old value of its own. If downstream
        # wants no old values, it only matters that there was one.
        reads_twice = not store.value_is_exact and send_old

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None or value is None:
                return dropped()
            try:
                raw = key_of(key)
                entry = read(raw)
                at = timestamp
                if entry is not None:
                    aggregate, stored_at = entry
                    old = stored = read(raw)[0] if reads_twice else aggregate
                    if stored_at > timestamp:
                        at = stored_at
                    new = aggregator(key, value, aggregate)
                else:
                    stored = None
                    if initializer is None:
                        new, old = value, None
                    else:
                        # The old value of a first result is the initial value, as in Kafka Streams.
                        old = initializer() if send_old else None
                        new = aggregator(key, value, initializer())
                valid_to = write(raw, new, at)
            except Exception as error:
                return fail(error, key, value, timestamp)
            if hold is not None:
                # A delete that comes out of a cache has the record's own timestamp, as in Kafka Streams.
                hold(raw, key, new, stored, timestamp if new is None else at)
            elif valid_to is None:
                forward(key, new, old if send_old else None, at)
            elif valid_to != NOT_PUT:
                pass_on(record, False, forward, key, new, old if send_old else None, at)

        return process


@dataclass(frozen=True)
class Count:
    """Count the records of a key.

    An `Aggregate` that adds 1 gives the same results, but is 3 to 6 % slower (`benchmarks.task`, count): it calls two
    functions more per record.
    """

    store: str
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, record, fail, dropped = context.store(self.store), context.record, context.fail, context.dropped
        key_of, read, write, send_old = store.key, store.read, store.write, self.send_old
        cache = context.cache(self.store, forward, send_old)
        hold = None if cache is None else cache.put

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None or value is None:
                return dropped()
            try:
                raw = key_of(key)
                entry = read(raw)
                if entry is None:
                    old, stored, new = 0, None, 1
                else:
                    old, stored_at = entry
                    stored = old
                    if stored_at > timestamp:
                        timestamp = stored_at
                    new = old + 1
                valid_to = write(raw, new, timestamp)
            except Exception as error:
                return fail(error, key, value, timestamp)
            if hold is not None:
                hold(raw, key, new, stored, timestamp)
            elif valid_to is None:
                forward(key, new, old if send_old else None, timestamp)
            elif valid_to != NOT_PUT:
                pass_on(record, False, forward, key, new, old if send_old else None, timestamp)

        return process
