"""Steps of a table: an update travels as (key, new, old, timestamp)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.topology.nodes import Process, StepContext

NOT_PUT = -1
"""What a versioned store says of an update that is too old for it."""


@dataclass(frozen=True)
class TableSource:
    """Take a stream of updates as a table, and keep it when somebody needs it kept."""

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
    """Keep the rows for which the predicate holds; the others are deleted downstream."""

    predicate: Callable[[Any, Any], Any]
    negated: bool
    store: str | None
    send_old: bool
    skips_nothing: bool
    """Whether an update that neither was nor is in the table goes on: versioned tables need the delete."""
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        predicate, negated, send_old, fail = self.predicate, self.negated, self.send_old, context.fail
        skips_nothing = self.skips_nothing
        store = None if self.store is None else context.store(self.store)
        keep = None if self.store is None else bind_keep(context, forward, self.store, send_old)

        def passing(key: Any, value: Any) -> Any:
            return value if value is not None and bool(predicate(key, value)) is not negated else None

        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            try:
                passed = passing(key, new)
                if not send_old:
                    before = None
                elif store is None:
                    before = passing(key, old)
                else:
                    found = store.read(store.key(key))
                    before = None if found is None else found[0]
            except Exception as error:
                return fail(error, key, new, timestamp)
            if send_old and passed is None and before is None and not skips_nothing:
                return
            if keep is None:
                forward(key, passed, before, timestamp)
            else:
                keep(key, passed, before, timestamp)

        return process


@dataclass(frozen=True)
class TableMapValues:
    """Give every row another value; the function is not called for deletes."""

    mapper: Callable[[Any, Any], Any]
    """Called with (key, value)."""
    store: str | None
    send_old: bool
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        mapper, send_old, fail = self.mapper, self.send_old, context.fail
        store = None if self.store is None else context.store(self.store)
        keep = None if self.store is None else bind_keep(context, forward, self.store, send_old)

        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            try:
                mapped = None if new is None else mapper(key, new)
                if not send_old:
                    before = None
                elif store is None:
                    before = None if old is None else mapper(key, old)
                else:
                    found = store.read(store.key(key))
                    before = None if found is None else found[0]
            except Exception as error:
                return fail(error, key, new, timestamp)
            if keep is None:
                forward(key, mapped, before, timestamp)
            else:
                keep(key, mapped, before, timestamp)

        return process


@dataclass(frozen=True)
class TablePassThrough:
    """Pass updates on: where the inputs of a cogroup come together."""

    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        return forward


@dataclass(frozen=True)
class ToStream:
    """Make a stream of a table's updates."""

    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            forward(key, new, timestamp)

        return process


def bind_keep(context: StepContext, forward: Process, store_name: str, send_old: bool) -> Process:
    """Return the function that puts an update into a table's store and passes it on, or into the store's cache."""
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
    """Pass on an update, saying whether it is its key's latest."""
    before = record.is_latest
    record.is_latest = is_latest
    try:
        forward(key, new, old, timestamp)
    finally:
        record.is_latest = before
