"""Join of two tables by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.table import bind_keep
from headrace.operators.value_getters import Getter
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class TableTableJoinSide:
    """Join an update of one table with the current row of the other.

    Results are not deduplicated: the delete of an absent row is passed on if the other side has a row. A result has
    the larger timestamp of the update and the other row.
    """

    other: Getter
    joiner: Callable[[Any, Any, Any], Any]
    """Called with (key, this side's value, the other side's)."""
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
    """Merge the results of both sides, and keep them if the joined table has a store."""

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
