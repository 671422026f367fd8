"""count, reduce and aggregate over sliding windows.

As in Kafka Streams, a window exists only if its records differ from those of the others. Each record at t makes its
*left window* [t - difference, t], which ends at the record. Once a later record is within `difference`, it also makes
its *right window* [t + 1, t + 1 + difference], which starts just after the record. A record is folded into all windows
that contain it. Then it makes the windows that are missing:

- the right window of the record before it, whose first record it is;
- its own left window, which begins with what the window before it holds;
- its own right window, if records later than it are there.

The functions are closures, made by one method each. An object with methods that did the same was 12 % slower
(`benchmarks.task`, sliding count, 5,000 keys); `windowed_aggregate` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.errors import TaskError
from headrace.operators.emit_on_close import Emit, bind_emission, window_results
from headrace.operators.window_definitions import SlidingWindows
from headrace.records import Window, Windowed
from headrace.state.window import WindowStore
from headrace.topology.nodes import Process, StepContext

Put: TypeAlias = Callable[[Any, bytes, int, Any, Any, int, int], None]
"""put(key, serialized key, start, new, old, timestamp, the record's timestamp)"""
Fold: TypeAlias = Callable[[Any, Any, bytes, int, Any, int, int], None]
"""fold(key, value, serialized key, start, entry, the record's timestamp, close)"""
Take: TypeAlias = Callable[[Any, Any, bytes, int, int], None]
"""take(key, value, serialized key, the record's timestamp, close)"""


@dataclass(frozen=True)
class SlidingAggregate:
    """Fold the values of a key into all windows that contain a record, and make the windows that it calls for.

    A record with a null key or value is dropped. A window takes records until stream time less grace is past its end.
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
        difference, grace = self.windows.difference, self.windows.grace
        observed = context.cell("stream_time", -1)
        put = self._bind_put(context, forward)
        fold = self._bind_fold(context, put)
        take, take_early = self._bind_take(context, fold, put), self._bind_take_early(context, fold, put)
        emit_closed: Emit | None = None
        if self.emit_on_close:
            emit_closed = bind_emission(context, forward, self.closed_starts, window_results(store))

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
                    return take_early(key, value, raw, timestamp, close)  # it is too early to close a window
                take(key, value, raw, timestamp, close)
            except TaskError:
                raise
            except Exception as error:
                fail(error, key, value, timestamp)
            if emit_closed is not None:
                emit_closed(close)

        return process

    def closed_starts(self, last_close: int, close: int) -> tuple[int, int]:
        """Return the first and the last start of the windows that close between two close times."""
        difference = self.windows.difference
        return 0 if last_close < 0 else max(0, last_close - difference), close - difference - 1

    def _bind_put(self, context: StepContext, forward: Process) -> Put:
        """Return the function that stores a window's value and passes it on; `old` is None for a new window."""
        store, difference = context.store(self.store), self.windows.difference
        emit_on_close, send_old, entry_key_of = self.emit_on_close, self.send_old, store.entry_key
        cache = None if emit_on_close else context.cache(self.store, forward, send_old)
        hold = None if cache is None else cache.put
        if hold is not None:
            # Kafka Streams' cache still shows windows that its store has forgotten, and late records may need them.
            store.keep_longer(store.retention)

        def put(key: Any, raw: bytes, start: int, new: Any, old: Any, timestamp: int, received: int) -> None:
            entry_key = entry_key_of(raw, start)
            stored = store.read(entry_key, start) if hold is not None else None
            store.write(entry_key, start, None if new is None else (new, timestamp))
            if emit_on_close:
                return
            windowed = Windowed(key, Window(start, start + difference))
            if hold is not None:
                before = None if stored is None else stored[0]
                # A delete that comes out of a cache has the record's own timestamp, as in Kafka Streams.
                hold(entry_key, windowed, new, before, received if new is None else timestamp)
            else:
                forward(windowed, new, old if send_old else None, timestamp)

        return put

    def _bind_fold(self, context: StepContext, put: Put) -> Fold:
        """Return the function that folds a record into an open window, or, without an entry, into a new one."""
        store, dropped, difference = context.store(self.store), context.dropped, self.windows.difference
        initializer, aggregator, send_old = self.initializer, self.aggregator, self.send_old
        reads_again = not store.value_is_exact and send_old

        def fold(key: Any, value: Any, raw: bytes, start: int, entry: Any, timestamp: int, close: int) -> None:
            if start + difference < close:
                return dropped()
            if entry is None:
                old = initializer() if send_old else None
                return put(key, raw, start, aggregator(key, value, initializer()), old, timestamp, timestamp)
            aggregate, stored_at = entry
            old = _value_again(store, raw, start) if reads_again else aggregate
            put(key, raw, start, aggregator(key, value, aggregate), old, max(timestamp, stored_at), timestamp)

        return fold

    def _bind_take(self, context: StepContext, fold: Fold, put: Put) -> Take:
        """Return the function that folds a record into its windows, newest first, and makes the new ones."""
        store, difference = context.store(self.store), self.windows.difference
        is_exact, make_left = store.value_is_exact, self._bind_make_left(context, fold, put)

        def take(key: Any, value: Any, raw: bytes, timestamp: int, close: int) -> None:
            has_left = has_right = False
            before: Any = None  # the newest window that ends before the record: (start, aggregate)
            right: Any = None  # the newest window that contains it: the later records are the same in its right window
            previous: int | None = None  # the time of the latest record before it
            starts = set()
            found = store.scan(raw, max(0, timestamp - 2 * difference), timestamp + 1)
            for start, entry in reversed(found):
                starts.add(start)
                end = start + difference
                if start == timestamp + 1:
                    has_right = True
                elif end > timestamp:
                    if right is None:
                        right = entry if is_exact else _entry_again(store, raw, start)
                    fold(key, value, raw, start, entry, timestamp, close)
                elif end == timestamp:
                    has_left = True
                    fold(key, value, raw, start, entry, timestamp, close)
                    if entry[1] >= timestamp:
                        return  # an earlier record of this time made all the windows
                    previous = entry[1]
                else:
                    before, previous = (start, entry[0]), entry[1]
                    break
            if previous is not None and previous + 1 not in starts and previous + 1 + difference >= timestamp:
                fold(key, value, raw, previous + 1, None, timestamp, close)
            if not has_left:
                make_left(key, value, raw, before, previous, timestamp, close)
            if not has_right and right is not None and right[1] > timestamp:
                put(key, raw, timestamp + 1, right[0], None, right[1], timestamp)

        return take

    def _bind_make_left(self, context: StepContext, fold: Fold, put: Put) -> Callable[..., None]:
        """Return the function that makes the window that ends at a record.

        It begins with the aggregate of the window before it if the last record in there, at `previous`, is in it too.
        """
        store, dropped, difference = context.store(self.store), context.dropped, self.windows.difference
        aggregator, reads_again = self.aggregator, not store.value_is_exact and self.send_old

        def make_left(
            key: Any, value: Any, raw: bytes, before: Any, previous: int | None, timestamp: int, close: int
        ) -> None:
            start = timestamp - difference
            if before is None or previous is None or previous < start:
                return fold(key, value, raw, start, None, timestamp, close)
            start_before, aggregate = before
            old = _value_again(store, raw, start_before) if reads_again else aggregate
            if start + difference < close:
                return dropped()
            put(key, raw, start, aggregator(key, value, aggregate), old, timestamp, timestamp)

        return make_left

    def _bind_take_early(self, context: StepContext, fold: Fold, put: Put) -> Take:
        """Return the function for a record before `difference`: the window that starts at 0 is its left window."""
        store = context.store(self.store)
        is_exact = store.value_is_exact

        def take_early(key: Any, value: Any, raw: bytes, timestamp: int, close: int) -> None:
            first: Any = None  # the window that starts at 0
            right: Any = None
            has_right = False
            previous: int | None = None
            starts = set()
            for start, entry in store.scan(raw, 0, timestamp + 1):
                starts.add(start)
                if start == 0:
                    first = entry
                    if entry[1] < timestamp:
                        previous = entry[1]
                elif start <= timestamp:
                    right = entry if is_exact else _entry_again(store, raw, start)
                    fold(key, value, raw, start, entry, timestamp, close)
                else:
                    has_right = True
            if right is None and first is not None and first[1] > timestamp:
                right = first if is_exact else _entry_again(store, raw, 0)
            if not has_right and right is not None and right[1] > timestamp:
                put(key, raw, timestamp + 1, right[0], None, right[1], timestamp)
            if previous is not None and previous + 1 not in starts:
                fold(key, value, raw, previous + 1, None, timestamp, close)
            fold(key, value, raw, 0, first, timestamp, close)

        return take_early


def _entry_again(store: WindowStore[Any, Any], raw: bytes, start: int) -> Any:
    """Read a window once more, for a value of its own: the aggregator may change in place the one that it gets."""
    return store.read(store.entry_key(raw, start), start)


def _value_again(store: WindowStore[Any, Any], raw: bytes, start: int) -> Any:
    entry = _entry_again(store, raw, start)
    return None if entry is None else entry[0]
