"""Steps of a table: an update travels as (key, new, old, timestamp)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.topology.nodes import Process, StepContext

NOT_PUT = -1
"""What a versioned store returns for an update that is older than its history."""


@dataclass(frozen=True)
class TableSource:
    """Take a stream of updates as a table; keep the table if a step or a query reads it."""

    store: str | None
    send_old: bool
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        dropped = context.dropped
        if self.store is None:

            def process_unkept(key: Any, value: Any, timestamp: int) -> None:
                if key is None:
                    dropped()
                else:
                    forward(key, value, None, timestamp)

            return process_unkept

        keep = bind_keep(context, forward, self.store, self.send_old)
        read, key_of = context.store(self.store).read, context.store(self.store).key
        fail = context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                return dropped()
            try:
                found = read(key_of(key))
            except Exception as error:
                return fail(error, key, value, timestamp)
            keep(key, value, None if found is None else found[0], timestamp)

        return process


@dataclass(frozen=True)
class TableFilter:
    """Keep the rows for which the predicate holds. The other rows are deleted downstream."""

    predicate: Callable[[Any, Any], Any]
    negated: bool
    store: str | None
    send_old: bool
    skips_nothing: bool
    """Whether to pass on updates of a row that neither was nor is in the table: a versioned table needs the delete."""
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        predicate, negated = self.predicate, self.negated

        def passing(key: Any, value: Any) -> Any:
            return value if bool(predicate(key, value)) is not negated else None

        return bind_computed(context, forward, passing, self.store, self.send_old, self.skips_nothing)


@dataclass(frozen=True)
class TableMapValues:
    """Give every row another value. The mapper is not called for deletes."""

    mapper: Callable[[Any, Any], Any]
    """Called with (key, value)."""
    store: str | None
    send_old: bool
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        return bind_computed(context, forward, self.mapper, self.store, self.send_old, skips_nothing=True)


@dataclass(frozen=True)
class TablePassThrough:
    """Pass updates on: here the inputs of a cogroup merge."""

    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        return forward


@dataclass(frozen=True)
class ToStream:
    """Turn the updates of a table into a stream."""

    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            forward(key, new, timestamp)

        return process


def bind_computed(
    context: StepContext,
    forward: Process,
    compute: Callable[[Any, Any], Any],
    store_name: str | None,
    send_old: bool,
    skips_nothing: bool,
) -> Process:
    """Return the function for a table whose rows are computed from its parent's rows, one by one.

    `compute(key, value)` returns the row's value, or None when the row is not in the table.
    """
    fail, store, put = context.fail, None, forward
    if store_name is not None:
        store, put = context.store(store_name), bind_keep(context, forward, store_name, send_old)

    def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
        try:
            computed = None if new is None else compute(key, new)
            if not send_old:
                before = None
            elif store is None:
                before = None if old is None else compute(key, old)
            else:
                found = store.read(store.key(key))
                before = None if found is None else found[0]
        except Exception as error:
            return fail(error, key, new, timestamp)
        if send_old and computed is None and before is None and not skips_nothing:
            return
        put(key, computed, before, timestamp)

    return process


def bind_keep(context: StepContext, forward: Process, store_name: str, send_old: bool) -> Process:
    """Return the function that writes an update to a table's store, then passes it on or puts it into the cache."""
    store, record, fail = context.store(store_name), context.record, context.fail
    key_of, write = store.key, store.write
    cache = context.cache(store_name, forward, send_old)
    hold = None if cache is None else cache.put

    def keep(key: Any, new: Any, old: Any, timestamp: int) -> None:
        try:
            raw = key_of(key)
            if hold is not None:
                stored = store.read(raw)
            valid_to = write(raw, new, timestamp)
        except Exception as error:
            return fail(error, key, new, timestamp)
        if hold is not None:
            hold(raw, key, new, None if stored is None else stored[0], timestamp)
        elif valid_to is None and record.is_latest:
            forward(key, new, old if send_old else None, timestamp)
        elif valid_to != NOT_PUT:
            pass_on(record, valid_to is None, forward, key, new, old if send_old else None, timestamp)

    return keep


def pass_on(record: Any, is_latest: bool, forward: Process, key: Any, new: Any, old: Any, timestamp: int) -> None:
    """Pass on an update with the information whether it is the latest of its key."""
    before = record.is_latest
    record.is_latest = is_latest
    try:
        forward(key, new, old, timestamp)
    finally:
        record.is_latest = before
