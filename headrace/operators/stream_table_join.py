"""Join of a stream with a table or a global table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.value_getters import Getter
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class StreamTableJoin:
    """Join a record with the table's current row of its key, or of the key that `key` returns.

    A record with a null value is dropped. A record with a null key is dropped by an inner join; a left join joins it
    with None. The result has the record's timestamp. A versioned table is looked up as of that timestamp.
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
