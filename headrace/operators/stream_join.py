"""Join of two streams within a window.

Each side keeps its records in a window store and joins a new record with the records in the other side's store. A left
or outer join also keeps the records that found no match, in a store that both sides share, and puts them out once
their window has closed. The functions are closures; `windowed_aggregate` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.window_definitions import MAX_TIME, JoinWindows
from headrace.state.unmatched_records import LEFT, RIGHT
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class JoinWindow:
    """Pass a record on to the join, then keep it for later records of the other side."""

    store: str
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, fail = context.store(self.store), context.fail
        key_of, add = store.key, store.add

        def process(key: Any, value: Any, timestamp: int) -> None:
            forward(key, value, timestamp)
            if key is not None and value is not None:
                try:
                    add(key_of(key), timestamp, value)
                except Exception as error:
                    fail(error, key, value, timestamp)

        return process


@dataclass(frozen=True)
class JoinSide:
    """Join the records of one side with the records in the other side's store.

    A record with a null value is dropped. So is a record with a null key, except on an outer side, which joins it with
    None at once. A result has the larger timestamp of both records; a result without a match has the record's.
    """

    name: str
    """The name of the join as a whole: its two sides share their stream time."""
    is_left: bool
    is_outer: bool
    """Whether a record of this side without a match gives a result."""
    windows: JoinWindows
    joiner: Callable[[Any, Any, Any], Any]
    """Called with (key, left, right)."""
    other_store: str
    unmatched_store: str | None
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail, dropped, joiner, is_left, is_outer = (
            context.fail,
            context.dropped,
            self.joiner,
            self.is_left,
            self.is_outer,
        )
        other = context.store(self.other_store)
        key_of, scan = other.key, other.scan
        before, after = self._reach()
        stream_time = context.shared_cell(f"{self.name}/stream_time", -1)
        least_unmatched = context.shared_cell(f"{self.name}/least_unmatched", MAX_TIME)
        unmatched: Any = None if self.unmatched_store is None else context.store(self.unmatched_store)
        emit_expired = self._bind_emit_expired(context, forward, unmatched, stream_time, least_unmatched)
        this_side, other_side = (LEFT, RIGHT) if is_left else (RIGHT, LEFT)

        def process(key: Any, value: Any, timestamp: int) -> None:
            if timestamp > stream_time[0]:
                stream_time[0] = timestamp
            if value is None or (key is None and not is_outer):
                return dropped()
            results: list[tuple[Any, int]] = []
            failure = None
            if key is not None and unmatched is not None and timestamp == stream_time[0]:
                emit_expired()
            try:
                found: Any = ()
                if key is not None:
                    raw = key_of(key)
                    found = scan(raw, max(0, timestamp - before), max(0, timestamp + after))
                for found_at, other_value in found:
                    if unmatched is not None:
                        unmatched.forget(found_at, other_side, raw)
                    result = joiner(key, value, other_value) if is_left else joiner(key, other_value, value)
                    results.append((result, found_at))
                if not found and is_outer:
                    if key is None or max(0, timestamp + after) < stream_time[0]:
                        result = joiner(key, value, None) if is_left else joiner(key, None, value)
                        results.append((result, timestamp))
                    else:
                        unmatched.add(timestamp, this_side, raw, value)
                        least_unmatched[0] = min(least_unmatched[0], timestamp)
            except Exception as error:
                failure = error
            for result, found_at in results:
                forward(key, result, found_at if found_at > timestamp else timestamp)
            if failure is not None:  # the results before the failure stay
                fail(failure, key, value, timestamp)

        return process

    def _reach(self) -> tuple[int, int]:
        """Return how far before and after a record of this side its partners may be."""
        windows = self.windows
        return (windows.before, windows.after) if self.is_left else (windows.after, windows.before)

    def _bind_emit_expired(
        self,
        context: StepContext,
        forward: Process,
        unmatched: Any,
        stream_time: list[int],
        least_unmatched: list[int],
    ) -> Callable[[], None]:
        """Return the function that emits the records whose window has closed without a match."""
        fail, joiner, windows = context.fail, self.joiner, self.windows
        _, after = self._reach()

        def emit_expired() -> None:
            if least_unmatched[0] + after + windows.grace >= stream_time[0]:
                return
            least_unmatched[0] = MAX_TIME
            open_sides: set[int] = set()
            for timestamp, side, key, values, entry_key in unmatched.walk():
                # As in Kafka Streams, this ends as the time of the last entry checked, not of the first that stays.
                least_unmatched[0] = timestamp
                if len(open_sides) == 2:
                    break
                if timestamp + (windows.after if side == LEFT else windows.before) + windows.grace >= stream_time[0]:
                    open_sides.add(side)
                    if len(open_sides) == 2 and len(values) > 1:
                        break  # Kafka Streams looks at the values one by one, and breaks off at the second
                    continue
                unmatched.remove(entry_key)
                for value in values:
                    try:
                        result = joiner(key, value, None) if side == LEFT else joiner(key, None, value)
                    except Exception as error:
                        fail(error, key, value, timestamp)
                        continue
                    forward(key, result, timestamp)

        return emit_expired
