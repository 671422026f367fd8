"""count, reduce and aggregate over tumbling, hopping and unlimited windows.

The functions are closures, made by one method each. An object with methods that did the same was 6 % slower
(`benchmarks.task`, tumbling count, 5,000 keys), because most of what it calls are functions that an attribute holds,
and Python 3.11 looks these up slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.operators.emit_on_close import Emit, bind_emission, window_results
from headrace.operators.window_definitions import TimeWindows, TumblingWindows
from headrace.records import Window, Windowed
from headrace.topology.nodes import Cache, Process, StepContext

_new = tuple.__new__  # makes a Window or a Windowed in half the time that calling the class takes

Fold: TypeAlias = Callable[[Any, Any, int, int, int], bool]
"""fold(key, value, timestamp, start, end): False if the user's function failed, so that the record is dropped."""


@dataclass(frozen=True)
class WindowAggregate:
    """Fold the values of a key and window.

    A record with a null key is dropped; a null value is folded in, as in Kafka Streams. A window takes records until
    stream time less grace reaches its end. A result has the larger timestamp of the record and the window's value.
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
        store = context.store(self.store)

        def forward_held(parts: tuple[Any, int, int], new: Any, old: Any, timestamp: int) -> None:
            key, start, end = parts
            forward(_new(Windowed, (key, _new(Window, (start, end)))), new, old, timestamp)

        cache = context.cache(self.store, forward_held, self.send_old)
        if cache is not None and self.shared:
            # Kafka Streams' cache still shows windows that another step's records have pushed out of the store.
            store.keep_longer(store.retention)
        observed = context.cell("stream_time", -1)
        fold = self._bind_fold(context, forward, cache)
        if cache is not None and not self.emit_on_close:
            fold = self._bind_fold_again(context, cache, fold)
        emit_first = emit_last = None
        if self.emit_on_close:
            emit_closed = bind_emission(context, forward, self.closed_starts, window_results(store))
            # With a cache, Kafka Streams' store learns of the record's windows at the commit. Until then they do not
            # push out the windows that the record closes.
            emit_first, emit_last = (None, emit_closed) if cache is None else (emit_closed, None)
        bind_process = self._bind_tumbling if isinstance(self.windows, TumblingWindows) else self._bind_windows
        return bind_process(context, observed, fold, emit_first, emit_last)

    def closed_starts(self, last_close: int, close: int) -> tuple[int, int]:
        """Return the first and the last start of the windows that close between two close times."""
        size = self.windows.size
        return 0 if last_close < 0 else max(0, last_close - size) + 1, close - size

    def _bind_windows(
        self, context: StepContext, observed: list[int], fold: Fold, emit_first: Emit | None, emit_last: Emit | None
    ) -> Process:
        dropped, windows_for, grace = context.dropped, self.windows.windows_for, self.windows.grace

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
                elif not fold(key, value, timestamp, start, end):
                    return
            if emit_last is not None:
                emit_last(close)

        return process

    def _bind_tumbling(
        self, context: StepContext, observed: list[int], fold: Fold, emit_first: Emit | None, emit_last: Emit | None
    ) -> Process:
        """Return what `_bind_windows` does, without a list for the one window of a record."""
        dropped, size, grace = context.dropped, self.windows.size, self.windows.grace

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                return dropped()
            if timestamp > observed[0]:
                observed[0] = timestamp
            if emit_first is not None:
                emit_first(observed[0] - grace)
            start = timestamp - timestamp % size
            if start + size <= observed[0] - grace:
                dropped()
            elif not fold(key, value, timestamp, start, start + size):
                return
            if emit_last is not None:
                emit_last(observed[0] - grace)

        return process

    def _bind_fold(self, context: StepContext, forward: Process, cache: Cache | None) -> Fold:
        """Return the function that folds a record into a window and passes the result on."""
        store, fail = context.store(self.store), context.fail
        encode_entry_key, read, write, key_type = store.encode_entry_key, store.read, store.write, store.key_type
        initializer, aggregator = self.initializer, self.aggregator
        send_old, emit_on_close = self.send_old, self.emit_on_close
        reads_twice = not store.value_is_exact and send_old  # else it only matters that there was an old value

        def fold(key: Any, value: Any, timestamp: int, start: int, end: int) -> bool:
            try:
                entry_key = encode_entry_key(key, start)
                entry = read(entry_key, start)
                at = timestamp
                if entry is None:
                    stored = None
                    old = initializer() if send_old else None
                    new = aggregator(key, value, initializer())
                else:
                    aggregate, stored_at = entry
                    old = stored = read(entry_key, start)[0] if reads_twice else aggregate
                    if stored_at > timestamp:
                        at = stored_at
                    new = aggregator(key, value, aggregate)
                write(entry_key, start, None if new is None else (new, at))
            except Exception as error:
                fail(error, key, value, timestamp)
                return False
            if emit_on_close:
                return True
            if cache is not None:
                # A delete that comes out of a cache has the record's own timestamp, as in Kafka Streams.
                parts = key, start, end
                if key.__class__ is key_type:
                    cache.recent[key, start] = entry_key, parts
                cache.put(entry_key, parts, new, stored, timestamp if new is None else at)
            else:
                forward(_new(Windowed, (key, _new(Window, (start, end)))), new, old if send_old else None, at)
            return True

        return fold

    def _bind_fold_again(self, context: StepContext, cache: Cache, fold: Fold) -> Fold:
        """Return `fold` with a shortcut for a window that a record of this batch was folded into before.

        The window's entry key, value and update in the cache are in memory then. The shortcut looks each up once.
        Only keys of `store.key_type` have one: equal keys of other types may have different bytes.
        """
        store, fail, aggregator = context.store(self.store), context.fail, self.aggregator
        find, hold, write = cache.recent.get, cache.put, store.write
        live, floor, freeze, thaw, key_type = store.live, store.floor, store.freeze, store.thaw_value, store.key_type

        def fold_again(key: Any, value: Any, timestamp: int, start: int, end: int) -> bool:
            found = find((key, start)) if key.__class__ is key_type else None
            if found is None or start < floor[0]:
                return fold(key, value, timestamp, start, end)
            entry_key, parts = found
            entry = live.get(entry_key)
            if entry is None:  # deleted meanwhile, by this step or another one
                return fold(key, value, timestamp, start, end)
            try:
                aggregate, at = entry
                new = aggregator(key, value, aggregate if thaw is None else thaw(aggregate))
                if timestamp > at:
                    at = timestamp
                if new is None:
                    write(entry_key, start, None)
                    at = timestamp
                else:
                    # Without `write`: the first fold in this batch has told the store that this entry changes.
                    live[entry_key] = freeze((new, at))
            except Exception as error:
                fail(error, key, value, timestamp)
                return False
            # Without the old value: the cache has the one from before its first update.
            hold(entry_key, parts, new, None, at)
            return True

        return fold_again
