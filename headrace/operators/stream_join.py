"""Joins of two streams within a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.window_definitions import MAX_TIME, JoinWindows
from headrace.state.unmatched_records import LEFT, RIGHT
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class JoinWindow:
    """Pass a record on to the join, then keep it for the records of the other side that come later."""

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
    """Join the records of one side with what the other side's store has.

    A null value is dropped; so is a null key, unless this side is an outer one: then it is joined with None at once.
    The timestamp of a result is the larger of both records'; without a match, the record's.
    """

    name: str
    """Of the join as a whole: its two sides share their stream time."""
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
        fail, dropped = context.fail, context.dropped
        other, joiner, is_left, is_outer = context.store(self.other_store), self.joiner, self.is_left, self.is_outer
        key_of, scan = other.key, other.scan
        windows = self.windows
        before, after = (windows.before, windows.after) if is_left else (windows.after, windows.before)
        stream_time = context.shared_cell(f"{self.name}/stream_time", -1)
        least_unmatched = context.shared_cell(f"{self.name}/least_unmatched", MAX_TIME)
        unmatched: Any = None if self.unmatched_store is None else context.store(self.unmatched_store)
        this_side, other_side = (LEFT, RIGHT) if is_left else (RIGHT, LEFT)

        def joined(key: Any, value: Any, found: Any) -> Any:
            return joiner(key, value, found) if is_left else joiner(key, found, value)

        def emit_expired() -> None:
            """Put out the records whose window has closed without a match."""
            if least_unmatched[0] + after + windows.grace >= stream_time[0]:
                return
            least_unmatched[0] = MAX_TIME
            open_sides: set[int] = set()
            for timestamp, side, key, values, place in unmatched.walk():
                # Kafka Streams leaves the time of the last entry it looked at here, not of the first it left.
                least_unmatched[0] = timestamp
                if len(open_sides) == 2:
                    break
                if timestamp + (windows.after if side == LEFT else windows.before) + windows.grace >= stream_time[0]:
                    open_sides.add(side)
                    if len(open_sides) == 2 and len(values) > 1:
                        break  # as Kafka Streams, which looks at the values one by one, does at the second
                    continue
                unmatched.remove(place)
                for value in values:
                    try:
                        result = joiner(key, value, None) if side == LEFT else joiner(key, None, value)
                    except Exception as error:
                        fail(error, key, value, timestamp)
                        continue
                    forward(key, result, timestamp)

        def process(key: Any, value: Any, timestamp: int) -> None:
            if timestamp > stream_time[0]:
                stream_time[0] = timestamp
            if key is None or value is None:
                if not is_outer or value is None:
                    return dropped()
                try:
                    result = joined(None, value, None)
                except Exception as error:
                    return fail(error, key, value, timestamp)
                return forward(None, result, timestamp)
            if unmatched is not None and timestamp == stream_time[0]:
                emit_expired()
            latest = max(0, timestamp + after)
            results: list[tuple[Any, int]] = []
            failure = None
            try:
                raw = key_of(key)
                found = scan(raw, max(0, timestamp - before), latest)
                for found_at, other_value in found:
                    if unmatched is not None:
                        unmatched.forget(found_at, other_side, raw)
                    result = joiner(key, value, other_value) if is_left else joiner(key, other_value, value)
                    results.append((result, found_at))
                if not found and is_outer:
                    if latest < stream_time[0]:
                        results.append((joined(key, value, None), timestamp))
                    else:
                        unmatched.add(timestamp, this_side, raw, value)
                        least_unmatched[0] = min(least_unmatched[0], timestamp)
            except Exception as error:
                failure = error
            for result, found_at in results:
                forward(key, result, found_at if found_at > timestamp else timestamp)
            if failure is not None:  # what was joined before it stands
                fail(failure, key, value, timestamp)

        return process
