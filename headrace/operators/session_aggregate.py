"""count, reduce and aggregate over sessions.

The functions are closures, made by one method each; `windowed_aggregate` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.operators.emit_on_close import Emit, bind_emission, session_results
from headrace.operators.window_definitions import SessionWindows
from headrace.records import Headers, Window, Windowed
from headrace.topology.nodes import Process, StepContext

_NO_HEADERS: Headers = []


@dataclass(frozen=True)
class SessionAggregate:
    """Fold the values of a key's session, and merge the sessions that a record connects.

    A record with a null key is dropped; a null value is folded in, as in Kafka Streams. A record is dropped as late if
    its session, merged, ends more than gap and grace before stream time. A result has the session's end as timestamp.
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
        store, fail, dropped = context.store(self.store), context.fail, context.dropped
        gap, grace = self.windows.gap, self.windows.grace
        initializer, aggregator, merger = self.initializer, self.aggregator, self.merger
        observed = context.cell("stream_time", -1)
        context.cell("last_close", -1)  # checkpoints have it, whether or not the step emits on close
        # A merger or aggregator may change its aggregate in place: then downstream needs old values of its own. If
        # downstream wants no old values, it only matters that there was one.
        reads_twice = not store.value_is_exact and self.send_old
        emit_closed: Emit | None = None
        if self.emit_on_close:
            emit_closed = bind_emission(context, forward, _closed_ends, session_results(store))
            pass_on, is_cached = None, False
        else:
            pass_on, is_cached = self._bind_pass_on(context, forward)

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
            elif pass_on is not None:
                for old_start, old_end, old in replaced:
                    pass_on(raw, key, old_start, old_end, None, old)
                # A second record at the time of a session of one instant: only a cache knows the value before.
                before = untouched[0][2] if is_cached and found and not replaced else None
                pass_on(raw, key, start, end, aggregate, before)
            if emit_closed is not None:
                emit_closed(close)

        return process

    def _bind_pass_on(self, context: StepContext, forward: Process) -> tuple[Callable[..., None], bool]:
        """Return the function that passes on a session's value, and whether it goes into a cache."""
        store, record, send_old = context.store(self.store), context.record, self.send_old
        cache = context.cache(self.store, forward, send_old)
        if cache is None:

            def pass_on(raw: bytes, key: Any, start: int, end: int, new: Any, old: Any) -> None:
                # Kafka Streams makes new records here, without headers.
                headers, record.headers = record.headers, _NO_HEADERS
                try:
                    forward(Windowed(key, Window(start, end)), new, old if send_old else None, end)
                finally:
                    record.headers = headers

            return pass_on, False

        hold = cache.put
        # Kafka Streams' cache still shows sessions that its store has forgotten, and late records may join them.
        store.keep_longer(store.retention)

        def put_into_cache(raw: bytes, key: Any, start: int, end: int, new: Any, old: Any) -> None:
            if store.was_overdue(end):
                old = None  # a cache looks for the old value in the store, which has forgotten it
            entry_key = raw + end.to_bytes(8, "big") + start.to_bytes(8, "big")
            hold(entry_key, Windowed(key, Window(start, end)), new, old, end)

        return put_into_cache, True


def _closed_ends(last_close: int, close: int) -> tuple[int, int]:
    return max(0, last_close), close - 1
