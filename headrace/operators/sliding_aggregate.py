"""count, reduce and aggregate over sliding windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.errors import TaskError
from headrace.operators.window_definitions import SlidingWindows
from headrace.operators.windowed_aggregate import bind_emission
from headrace.records import Window, Windowed
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class SlidingAggregate:
    """Fold the values of a key into all windows that a record falls into, and make the windows it calls for.

    A null key or value is dropped. A window takes a record as long as its end is not before stream time less grace.
    Results come newest window first. Records before `difference` share the window that starts at 0.
    """

    store: str
    windows: SlidingWindows
    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    """Called with (key, value, aggregate)."""
    emit_on_close: bool
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, fail, dropped = context.store(self.store), context.fail, context.dropped
        place_of = store.entry_key
        difference, grace, emit_on_close = self.windows.difference, self.windows.grace, self.emit_on_close
        initializer, aggregator, send_old = self.initializer, self.aggregator, self.send_old
        cache = None if emit_on_close else context.cache(self.store, forward, send_old)
        hold = None if cache is None else cache.put
        if hold is not None:
            # Kafka Streams' cache still shows windows that its store has forgotten, and late records may need them.
            store.keep_longer(store.retention)
        observed = context.cell("stream_time", -1)
        emit_closed = bind_emission(context, forward, store, self._closed_starts) if emit_on_close else None

        def put(key: Any, raw: bytes, start: int, new: Any, old: Any, timestamp: int, received: int) -> None:
            """Store a window's value and pass it on; `old` is None for a window that is made."""
            place = place_of(raw, start)
            stored = store.read(place, start) if hold is not None else None
            store.write(place, start, None if new is None else (new, timestamp))
            if emit_on_close:
                return
            windowed = Windowed(key, Window(start, start + difference))
            if hold is not None:
                before = None if stored is None else stored[0]
                # A delete that comes out of a cache has the record's own timestamp, as in Kafka Streams.
                at = received if new is None else timestamp
                hold(place, windowed, new, before, at)
            else:
                forward(windowed, new, old if send_old else None, timestamp)

        def update(key: Any, value: Any, raw: bytes, start: int, entry: Any, timestamp: int, close: int) -> None:
            """Fold a record into a window, or into a new one when there is no entry, if it is still open."""
            if start + difference < close:
                dropped()
                return
            if entry is None:
                old = initializer() if send_old else None
                put(key, raw, start, aggregator(key, value, initializer()), old, timestamp, timestamp)
                return
            aggregate, stored_at = entry
            old = fresh(raw, start, aggregate) if send_old else None
            put(key, raw, start, aggregator(key, value, aggregate), old, max(timestamp, stored_at), timestamp)

        def fresh(raw: bytes, start: int, aggregate: Any) -> Any:
            """Return an old value that an aggregator cannot have changed in place."""
            if store.value_is_exact:
                return aggregate
            entry = store.read(place_of(raw, start), start)
            return None if entry is None else entry[0]

        def process_late_enough(key: Any, value: Any, raw: bytes, timestamp: int, close: int) -> None:
            has_left = has_right = False
            left: Any = None
            left_start = 0
            right: Any = None
            previous: int | None = None
            starts = set()
            found = store.scan(raw, max(0, timestamp - 2 * difference), timestamp + 1)
            for start, entry in reversed(found):
                starts.add(start)
                end = start + difference
                if start == timestamp + 1:
                    has_right = True
                elif end > timestamp:
                    if right is None:
                        right = entry if store.value_is_exact else store.read(place_of(raw, start), start)
                    update(key, value, raw, start, entry, timestamp, close)
                elif end == timestamp:
                    has_left = True
                    stored_at = entry[1]
                    update(key, value, raw, start, entry, timestamp, close)
                    if stored_at < timestamp:
                        previous = stored_at
                    else:
                        return
                else:
                    left, left_start, previous = entry[0], start, entry[1]
                    break
            if previous is not None:
                right_of_previous = previous + 1
                if right_of_previous not in starts and right_of_previous + difference >= timestamp:
                    update(key, value, raw, right_of_previous, None, timestamp, close)
            if not has_left:
                start = timestamp - difference
                if previous is not None and previous >= start and left is not None:
                    old = fresh(raw, left_start, left) if send_old else None
                    make_from(key, value, raw, start, left, old, timestamp, close)
                else:
                    update(key, value, raw, start, None, timestamp, close)
            if not has_right and right is not None and right[1] > timestamp:
                put(key, raw, timestamp + 1, right[0], None, right[1], timestamp)

        def make_from(
            key: Any, value: Any, raw: bytes, start: int, left: Any, old: Any, timestamp: int, close: int
        ) -> None:
            """Make a window that begins with the aggregate of the window before it."""
            if start + difference < close:
                dropped()
            else:
                put(key, raw, start, aggregator(key, value, left), old, timestamp, timestamp)

        def process_early(key: Any, value: Any, raw: bytes, timestamp: int, close: int) -> None:
            """Handle a record whose left window would start before 0."""
            combined: Any = None
            right: Any = None
            has_right = False
            previous: int | None = None
            starts = set()
            for start, entry in store.scan(raw, 0, timestamp + 1):
                starts.add(start)
                if start == 0:
                    combined = entry
                    if entry[1] < timestamp:
                        previous = entry[1]
                elif start <= timestamp:
                    right = entry if store.value_is_exact else store.read(place_of(raw, start), start)
                    update(key, value, raw, start, entry, timestamp, close)
                else:
                    has_right = True
            if right is None and combined is not None and combined[1] > timestamp:
                right = combined if store.value_is_exact else store.read(place_of(raw, 0), 0)
            if not has_right and right is not None and right[1] > timestamp:
                put(key, raw, timestamp + 1, right[0], None, right[1], timestamp)
            if previous is not None and previous + 1 not in starts:
                update(key, value, raw, previous + 1, None, timestamp, close)
            update(key, value, raw, 0, combined, timestamp, close)

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None or value is None:
                return dropped()
            if timestamp > observed[0]:
                observed[0] = timestamp
            close = observed[0] - grace
            if timestamp + difference < close:
                return dropped()
            try:
                raw = store.key(key)
                if timestamp < difference:
                    return process_early(key, value, raw, timestamp, close)
                process_late_enough(key, value, raw, timestamp, close)
            except TaskError:
                raise
            except Exception as error:
                fail(error, key, value, timestamp)
            if emit_closed is not None:
                emit_closed(close)

        return process

    def _closed_starts(self, last_close: int, close: int) -> tuple[int, int]:
        difference = self.windows.difference
        return 0 if last_close < 0 else max(0, last_close - difference), close - difference - 1
