"""count, reduce and aggregate over sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.window_definitions import SessionWindows
from headrace.records import Headers, Window, Windowed
from headrace.topology.nodes import Process, StepContext

_NO_HEADERS: Headers = []


@dataclass(frozen=True)
class SessionAggregate:
    """Fold the values of a key's session, and merge the sessions that a record connects.

    A null key is dropped; a null value is folded in, as in Kafka Streams. A merged session that ended more than gap and
    grace before stream time is dropped. The timestamp of a result is the session's end.
    """

    store: str
    windows: SessionWindows
    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    """Called with (key, value, aggregate)."""
    merger: Callable[[Any, Any, Any], Any]
    """Called with (key, left, right)."""
    emit_on_close: bool
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, record, fail, dropped = context.store(self.store), context.record, context.fail, context.dropped
        gap, grace, emit_on_close = self.windows.gap, self.windows.grace, self.emit_on_close
        initializer, aggregator, merger, send_old = self.initializer, self.aggregator, self.merger, self.send_old
        cache = None if emit_on_close else context.cache(self.store, forward, send_old)
        hold = None if cache is None else cache.put
        if hold is not None:
            # Kafka Streams' cache still shows sessions that its store has forgotten, and late records may join them.
            store.keep_longer(store.retention)
        observed = context.cell("stream_time", -1)
        last_close = context.cell("last_close", -1)
        # A merger or aggregator may change its aggregate in place: then downstream needs old values of its own.
        reads_twice = not store.value_is_exact and send_old  # else it only matters that there was one

        def pass_on(raw: bytes, key: Any, start: int, end: int, new: Any, old: Any) -> None:
            if emit_on_close:
                return
            windowed = Windowed(key, Window(start, end))
            if hold is not None:
                if store.was_overdue(end):
                    old = None  # a cache looks for the old value in the store, which has forgotten it
                hold(raw + end.to_bytes(8, "big") + start.to_bytes(8, "big"), windowed, new, old, end)
                return
            # Kafka Streams makes these records anew, without headers.
            headers, record.headers = record.headers, _NO_HEADERS
            try:
                forward(windowed, new, old if send_old else None, end)
            finally:
                record.headers = headers

        def emit_closed(close: int) -> None:
            if last_close[0] >= close:
                return
            earliest = 0 if last_close[0] < 0 else last_close[0]
            if close - 1 < 0:
                return
            last_close[0] = close
            for raw, start, end, value in list(store.scan_by_time(earliest, close - 1)):
                forward(Windowed(store.decode_key(raw), Window(start, end)), value, None, end)

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                return dropped()
            if timestamp > observed[0]:
                observed[0] = timestamp
            close = observed[0] - grace - gap
            try:
                raw = store.key(key)
                found = store.scan(raw, timestamp - gap, timestamp + gap)
                untouched = store.scan(raw, timestamp - gap, timestamp + gap) if reads_twice else found
                start = min((session[0] for session in found), default=timestamp)
                end = max((session[1] for session in found), default=timestamp)
                start, end = min(start, timestamp), max(end, timestamp)
                if end >= close:
                    aggregate = initializer()
                    for _, _, merged in found:
                        aggregate = merger(key, aggregate, merged)
                    aggregate = aggregator(key, value, aggregate)
                    replaced = untouched if (start, end) != (timestamp, timestamp) else []
                    for old_start, old_end, _ in replaced:
                        store.write(raw, old_start, old_end, None)
                    store.write(raw, start, end, aggregate)
            except Exception as error:
                return fail(error, key, value, timestamp)
            if end < close:
                dropped()
            else:
                for old_start, old_end, old in replaced:
                    pass_on(raw, key, old_start, old_end, None, old)
                # A second record at the instant of a one-instant session: only a cache knows of the value before.
                before = untouched[0][2] if hold is not None and found and not replaced else None
                pass_on(raw, key, start, end, aggregate, before)
            if emit_on_close:
                emit_closed(close)

        return process
