"""Joins with a table: of a stream, and of another table by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.table import bind_keep
from headrace.operators.value_getters import Getter
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class StreamTableJoin:
    """Join a record with a table's current value for its key (or for the key that `key` gives).

    A null value is dropped; so is a null key, except in a left join: then it is joined with None. The result has the
    record's timestamp. A versioned table is looked up as of that time.
    """

    table: Getter
    joiner: Callable[..., Any]
    """Called with (left, right), or with (key, left, right)."""
    with_key: bool
    is_left_join: bool
    key: Callable[[Any, Any], Any] | None = None
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, joiner, is_left_join = context.fail, context.dropped, self.joiner, self.is_left_join
        get, get_as_of, key_of = self.table.bind(context), self.table.bind_as_of(context), self.key
        with_key = self.with_key

        def process(key: Any, value: Any, timestamp: int) -> None:
            if value is None:
                return dropped()
            try:
                wanted = key if key_of is None else key_of(key, value)
                if wanted is None:
                    if not is_left_join:
                        return dropped()
                    found = None
                else:
                    found = get(wanted) if get_as_of is None else get_as_of(wanted, timestamp)
                if found is None and not is_left_join:
                    return
                other = None if found is None else found[0]
                result = joiner(key, value, other) if with_key else joiner(value, other)
            except Exception as error:
                return fail(error, key, value, timestamp)
            forward(key, result, timestamp)

        return process


@dataclass(frozen=True)
class TableTableJoinSide:
    """Join an update of one table with the other's current value.

    Nothing is deduplicated: a delete of an absent row is passed on when the other side has one. The timestamp of a
    result is the larger of the update's and the other value's.
    """

    other: Getter
    joiner: Callable[[Any, Any, Any], Any]
    """Called with (key, this side's value, the other's)."""
    needs_this: bool
    """Whether a result needs a value of this side."""
    needs_other: bool
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, record = context.fail, context.dropped, context.record
        get, joiner, send_old = self.other.bind(context), self.joiner, self.send_old
        needs_this, needs_other = self.needs_this, self.needs_other

        def joined(key: Any, value: Any, found: Any) -> Any:
            if value is None and (needs_this or found is None):
                return None
            return joiner(key, value, found)

        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            if key is None or not record.is_latest:
                return dropped()
            try:
                entry = get(key)
                if entry is None:
                    if needs_other or (new is None and old is None):
                        return
                    found = None
                else:
                    found = entry[0]
                    if entry[1] > timestamp:
                        timestamp = entry[1]
                result = joined(key, new, found)
                before = joined(key, old, found) if send_old else None
            except Exception as error:
                return fail(error, key, new, timestamp)
            forward(key, result, before, timestamp)

        return process


@dataclass(frozen=True)
class TableJoinMerge:
    """Bring the results of both sides together, and keep them when they have a store."""

    store: str | None
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        if self.store is not None:
            return bind_keep(context, forward, self.store, self.send_old)
        if self.send_old:
            return forward

        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            forward(key, new, None, timestamp)

        return process
