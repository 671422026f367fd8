"""count, reduce and aggregate over tumbling, hopping and unlimited windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.operators.window_definitions import TimeWindows, TumblingWindows
from headrace.records import Window, Windowed
from headrace.topology.nodes import Cache, Fail, Process, StepContext

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
    shared: bool = False
    """Whether other steps, with a stream time of their own, put into the same store."""
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        store, fail, dropped = context.store(self.store), context.fail, context.dropped

        def forward_held(parts: tuple[Any, int, int], new: Any, old: Any, timestamp: int) -> None:
            key, start, end = parts
            forward(_new(Windowed, (key, _new(Window, (start, end)))), new, old, timestamp)

        cache = context.cache(self.store, forward_held, self.send_old)
        if cache is not None and self.shared:
            # Kafka Streams' cache still shows windows that another step's records have pushed out of the store.
            store.keep_longer(store.retention)
        locate, read, write, key_type = store.encode_entry_key, store.read, store.write, store.key_type
        initializer, aggregator, send_old = self.initializer, self.aggregator, self.send_old
        windows_for, grace, emit_on_close = self.windows.windows_for, self.windows.grace, self.emit_on_close
        observed = context.cell("stream_time", -1)
        reads_twice = not store.value_is_exact and send_old  # else it only matters that there was one
        emit_closed = bind_emission(context, forward, store, self._closed_starts) if emit_on_close else None
        # With a cache, Kafka Streams' store gets to know the record's windows at the commit: they do not yet push out
        # those that the record has closed.
        emit_first, emit_last = (None, emit_closed) if cache is None else (emit_closed, None)
        size = self.windows.size

        def fold(key: Any, value: Any, timestamp: int, start: int, end: int) -> bool:
            """Tell whether the record's next window can be taken on."""
            try:
                place = locate(key, start)
                entry = read(place, start)
                at = timestamp
                if entry is None:
                    stored = None
                    old = initializer() if send_old else None
                    new = aggregator(key, value, initializer())
                else:
                    aggregate, stored_at = entry
                    old = stored = read(place, start)[0] if reads_twice else aggregate
                    if stored_at > timestamp:
                        at = stored_at
                    new = aggregator(key, value, aggregate)
                write(place, start, None if new is None else (new, at))
            except Exception as error:
                fail(error, key, value, timestamp)
                return False
            if emit_on_close:
                return True
            if cache is not None:
                # A delete that comes out of a cache has the record's own timestamp, as in Kafka Streams.
                parts = key, start, end
                if key.__class__ is key_type:
                    cache.recent[key, start] = place, parts
                cache.put(place, parts, new, stored, timestamp if new is None else at)
            else:
                forward(_new(Windowed, (key, _new(Window, (start, end)))), new, old if send_old else None, at)
            return True

        fold_in = fold if cache is None or emit_on_close else bind_fold_again(cache, store, aggregator, fail, fold)

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                return dropped()
            if timestamp > observed[0]:
                observed[0] = timestamp
            close = observed[0] - grace
            if emit_first is not None:
                emit_first(close)
            for start, end in windows_for(timestamp):
                if end <= close:
                    dropped()
                elif not fold_in(key, value, timestamp, start, end):
                    return
            if emit_last is not None:
                emit_last(close)

        def process_tumbling(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                return dropped()
            if timestamp > observed[0]:
                observed[0] = timestamp
            if emit_first is not None:
                emit_first(observed[0] - grace)
            start = timestamp - timestamp % size
            if start + size <= observed[0] - grace:
                dropped()
            elif not fold_in(key, value, timestamp, start, start + size):
                return
            if emit_last is not None:
                emit_last(observed[0] - grace)

        return process_tumbling if isinstance(self.windows, TumblingWindows) else process

    def _closed_starts(self, last_close: int, close: int) -> tuple[int, int]:
        size = self.windows.size
        return 0 if last_close < 0 else max(0, last_close - size) + 1, close - size


def bind_fold_again(
    cache: Cache, store: Any, aggregator: Callable[[Any, Any, Any], Any], fail: Fail, fold: Callable[..., bool]
) -> Callable[..., bool]:
    """Return `fold` with a short way for a window that a record of this batch was folded into before.

    Its place is known, its value is in hand, and so is what the cache holds of it: nothing is looked for twice.
    """
    find, hold, write = cache.recent.get, cache.put, store.write
    live, floor, freeze, thaw, key_type = store.live, store.floor, store.freeze, store.thaw_value, store.key_type

    def fold_again(key: Any, value: Any, timestamp: int, start: int, end: int) -> bool:
        found = find((key, start)) if key.__class__ is key_type else None
        if found is None or start < floor[0]:
            return fold(key, value, timestamp, start, end)
        place, parts = found
        entry = live.get(place)
        if entry is None:  # deleted meanwhile, here or by another step
            return fold(key, value, timestamp, start, end)
        try:
            aggregate, at = entry
            new = aggregator(key, value, aggregate if thaw is None else thaw(aggregate))
            if timestamp > at:
                at = timestamp
            if new is None:
                write(place, start, None)
                at = timestamp
            else:
                live[place] = freeze((new, at))  # which the store knows to have changed, since the batch's first time
        except Exception as error:
            fail(error, key, value, timestamp)
            return False
        hold(place, parts, new, None, at)
        return True

    return fold_again


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
