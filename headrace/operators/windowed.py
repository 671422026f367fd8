"""count, reduce and aggregate over tumbling, hopping and unlimited windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.operators.windows import TimeWindows, TumblingWindows
from headrace.records import Window, Windowed
from headrace.topology.nodes import Process, StepContext

_new = tuple.__new__  # what Window(...) and Windowed(...) come down to, in half the time


@dataclass(frozen=True)
class WindowAggregate:
    """Fold the values of a key and window.

    A null key is dropped; a null value is folded in, as in Kafka Streams. A window takes a record as long as its end is
    after stream time less grace. The timestamp of a result is the largest of the record's and the window's.
    """

    store: str
    windows: TimeWindows
    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    """Called with (key, value, aggregate)."""
    emit_on_close: bool
    send_old: bool = False
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, fail, dropped = context.store(self.store), context.fail, context.dropped
        key_of, read, write = store.key, store.read, store.write
        initializer, aggregator, send_old = self.initializer, self.aggregator, self.send_old
        windows_for, grace, emit_on_close = self.windows.windows_for, self.windows.grace, self.emit_on_close
        hold = None if emit_on_close else context.cache(self.store, forward, send_old)
        observed = context.cell("stream_time", -1)
        reads_twice = not store.value_is_exact and (send_old or hold is not None)
        emit_closed = bind_emission(context, forward, store, self._closed_starts) if emit_on_close else None
        size = self.windows.size

        def fold(key: Any, value: Any, timestamp: int, raw: bytes, start: int, end: int) -> None:
            try:
                entry = read(raw, start)
                if entry is None:
                    stored = None
                    old = initializer() if send_old else None
                    new = aggregator(key, value, initializer())
                else:
                    aggregate, stored_at = entry
                    old = stored = read(raw, start)[0] if reads_twice else aggregate
                    if stored_at > timestamp:
                        timestamp = stored_at
                    new = aggregator(key, value, aggregate)
                write(raw, start, None if new is None else (new, timestamp))
            except Exception as error:
                return fail(error, key, value, timestamp)
            if emit_on_close:
                return
            windowed = _new(Windowed, (key, _new(Window, (start, end))))
            if hold is not None:
                hold(raw + start.to_bytes(8, "big"), windowed, new, stored, timestamp)
            else:
                forward(windowed, new, old if send_old else None, timestamp)

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                return dropped()
            if timestamp > observed[0]:
                observed[0] = timestamp
            close = observed[0] - grace
            try:
                raw = key_of(key)
            except Exception as error:
                return fail(error, key, value, timestamp)
            for start, end in windows_for(timestamp):
                if end > close:
                    fold(key, value, timestamp, raw, start, end)
                else:
                    dropped()
            if emit_closed is not None:
                emit_closed(close)

        def process_tumbling(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                return dropped()
            if timestamp > observed[0]:
                observed[0] = timestamp
            start = timestamp - timestamp % size
            if start + size > observed[0] - grace:
                try:
                    raw = key_of(key)
                except Exception as error:
                    return fail(error, key, value, timestamp)
                fold(key, value, timestamp, raw, start, start + size)
            else:
                dropped()
            if emit_closed is not None:
                emit_closed(observed[0] - grace)

        return process_tumbling if isinstance(self.windows, TumblingWindows) else process

    def _closed_starts(self, last_close: int, close: int) -> tuple[int, int]:
        size = self.windows.size
        return 0 if last_close < 0 else max(0, last_close - size) + 1, close - size


def bind_emission(
    context: StepContext, forward: Process, store: Any, closed_starts: Callable[[int, int], tuple[int, int]]
) -> Callable[[int], None]:
    """Return the function that puts out the windows a new close time has closed, by start, then key."""
    last_close = context.cell("last_close", -1)
    size = store.window_size

    def closed(earliest: int, latest: int) -> Iterator[tuple[Any, Any]]:
        for raw, start, entry in list(store.scan_by_time(earliest, latest)):
            yield Windowed(store.decode_key(raw), Window(start, start + size)), entry

    def emit(close: int) -> None:
        if last_close[0] >= close:
            return
        earliest, latest = closed_starts(last_close[0], close)
        if latest < 0:
            return
        last_close[0] = close
        for windowed, (value, timestamp) in closed(earliest, latest):
            forward(windowed, value, None, timestamp)

    return emit
