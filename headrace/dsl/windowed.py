"""`TimeWindowedStream` and `SessionWindowedStream`: records by key and window, to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from headrace.dsl.grouped import GroupedStream
from headrace.dsl.materialized import Materialized, materialized
from headrace.dsl.table import KTable
from headrace.errors import TopologyError
from headrace.operators.session_aggregate import SessionAggregate
from headrace.operators.sliding_aggregate import SlidingAggregate
from headrace.operators.value_getters import StoreGetter
from headrace.operators.window_definitions import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from headrace.operators.windowed_aggregate import WindowAggregate
from headrace.records import Windowed
from headrace.serdes import Serde
from headrace.serdes import SessionWindowed as SessionWindowedSerde
from headrace.serdes import Windowed as WindowedSerde
from headrace.serdes.incomplete import IncompleteSerde
from headrace.topology.arguments import check_function
from headrace.topology.nodes import Operator

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
Fold = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, eq=False)
class TimeWindowedStream(Generic[K, V]):
    """Records grouped by key and window. A null key is dropped; a null value is folded in (sliding: dropped).

    Made by `GroupedStream.windowed_by`. The result is a `KTable` with `Windowed` keys; its timestamp is the largest of
    the window's records.

    >>> builder = StreamsBuilder()
    >>> hops = builder.stream("in").group_by_key().windowed_by(HoppingWindows(10, advance=5))
    >>> hops.count().to_stream().to("out")
    >>> for result in run(builder, [("a", "x", 7)]):
    ...     print(*result)
    [a@0/10] 1 7
    [a@5/15] 1 7
    """

    grouped: GroupedStream[K, V]
    windows: TimeWindows | SlidingWindows
    on_close: bool = False

    def emit_strategy(self, strategy: EmitStrategy) -> TimeWindowedStream[K, V]:
        """Choose between a result at every update and one final result when a window closes.

        Stateful; never repartitions. See `EmitStrategy` for what is lost when stream time jumps.

        >>> builder = StreamsBuilder()
        >>> windowed = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10))
        >>> final = windowed.emit_strategy(EmitStrategy.on_window_close())
        >>> final.count(store=Materialized(retention=1000)).to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 3), ("a", "y", 7), ("a", "z", 12)]):
        ...     print(*result)
        [a@0/10] 2 7
        """
        _check_strategy(strategy)
        if strategy.on_close and isinstance(self.windows, UnlimitedWindows):
            raise TopologyError(
                "emit_strategy: unlimited windows never close, on_window_close would emit nothing. "
                "Use on_window_update or other windows"
            )
        return replace(self, on_close=strategy.on_close)

    def count(self, *, store: str | Materialized | None = None, name: str | None = None) -> KTable[Windowed[K], int]:
        """Count the records of each key and window.

        Stateful; repartitions when the key was changed; drops null keys, counts null values (sliding: drops them).

        >>> builder = StreamsBuilder()
        >>> windowed = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10, grace=5))
        >>> windowed.count(store="counts").to_stream().to("out")
        >>> records = [("a", "x", 3), ("b", "y", 14), ("a", "late", 4), ("b", "z", 15), ("a", "too late", 5)]
        >>> for result in run(builder, records):
        ...     print(*result)
        [a@0/10] 1 3
        [b@10/20] 1 14
        [a@0/10] 2 4
        [b@10/20] 2 15
        """
        keep = self.grouped.count_store(store, takes_number=not isinstance(self.windows, SlidingWindows))
        return self._add(keep, "KSTREAM-AGGREGATE-", name, lambda: 0, lambda key, value, count: count + 1)

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | Materialized | None = None, name: str | None = None
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each key and window by `reducer(aggregate, value)`; the first is taken as it is.

        Stateful; repartitions when the key was changed; drops null keys. A null value is given to the reducer (sliding:
        dropped).

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).reduce(max).to_stream().to("out")
        >>> for result in run(builder, [("a", 3, 1), ("a", 5, 2), ("a", 4, 12)]):
        ...     print(*result)
        [a@0/10] 3 1
        [a@0/10] 5 2
        [a@10/20] 4 12
        """
        keep = (materialized(store, "reduce") or Materialized()).or_serdes(
            self.grouped.key_serde, self.grouped.value_serde
        )
        return self._add(keep, "KSTREAM-REDUCE-", name, lambda: None, fold_of(reducer))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], A]:
        """Fold the values of each key and window by `aggregator(key, value, aggregate)`, from `initializer()`.

        Stateful; repartitions when the key was changed; drops null keys. The aggregator sees null values (sliding: they
        are dropped). An aggregate of None deletes.

        >>> builder = StreamsBuilder()
        >>> windowed = builder.stream("in").group_by_key().windowed_by(SlidingWindows(10))
        >>> windowed.aggregate(list, lambda key, value, seen: [*seen, value]).to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 20), ("a", "y", 25)]):
        ...     print(*result)
        [a@10/20] ['x'] 20
        [a@21/31] ['y'] 25
        [a@15/25] ['x', 'y'] 25
        """
        check_function(initializer, "aggregate, initializer")
        check_function(aggregator, "aggregate, aggregator")
        keep = (materialized(store, "aggregate") or Materialized()).or_serdes(self.grouped.key_serde)
        return self._add(keep, "KSTREAM-AGGREGATE-", name, initializer, aggregator)

    def _add(
        self, keep: Materialized, prefix: str, name: str | None, initializer: Callable[[], Any], aggregator: Fold
    ) -> KTable[Any, Any]:
        graph = self.grouped.graph
        store = keep.name or graph.new_store_name(prefix)
        step = graph.new_name(prefix, name)
        return self.grouped.add_aggregate(
            step,
            keep,
            keep.window(store, self.windows.size, self.windows.retention, self.on_close),
            StoreGetter(store),
            lambda send_old: window_operator(store, self.windows, initializer, aggregator, self.on_close, send_old),
            key_serde=windowed_serde(keep.key_serde, self.windows.size),
            grace=self.windows.grace,
        )


@dataclass(frozen=True, eq=False)
class SessionWindowedStream(Generic[K, V]):
    """Records grouped by key and session. A null key is dropped; a null value is folded in.

    Made by `GroupedStream.windowed_by(SessionWindows(...))`. A record that extends a session deletes the old one from
    the table and puts the new one in; its timestamp is the session's end.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").group_by_key().windowed_by(SessionWindows(10)).count().to_stream().to("out")
    >>> for result in run(builder, [("a", "x", 0), ("a", "y", 8)]):
    ...     print(*result)
    [a@0/0] 1 0
    [a@0/0] None 0
    [a@0/8] 2 8
    """

    grouped: GroupedStream[K, V]
    windows: SessionWindows
    on_close: bool = False

    def emit_strategy(self, strategy: EmitStrategy) -> SessionWindowedStream[K, V]:
        """Choose between a result at every update and one final result when a session closes.

        Stateful; never repartitions.

        >>> builder = StreamsBuilder()
        >>> sessions = builder.stream("in").group_by_key().windowed_by(SessionWindows(10))
        >>> sessions.emit_strategy(EmitStrategy.on_window_close()).count().to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 0), ("a", "y", 8), ("b", "z", 30)]):
        ...     print(*result)
        [a@0/8] 2 8
        """
        _check_strategy(strategy)
        return replace(self, on_close=strategy.on_close)

    def count(self, *, store: str | Materialized | None = None, name: str | None = None) -> KTable[Windowed[K], int]:
        """Count the records of each session.

        Stateful; repartitions when the key was changed; drops null keys, counts null values.

        >>> builder = StreamsBuilder()
        >>> sessions = builder.stream("in").group_by_key().windowed_by(SessionWindows(10))
        >>> sessions.count(store="sessions").to_stream().filter(lambda key, count: count is not None).to("out")
        >>> for result in run(builder, [("a", "x", 0), ("a", "y", 8), ("a", "z", 30)]):
        ...     print(*result)
        [a@0/0] 1 0
        [a@0/8] 2 8
        [a@30/30] 1 30
        """
        keep = self.grouped.count_store(store)
        return self._add(
            keep,
            "KSTREAM-AGGREGATE-",
            name,
            lambda: 0,
            lambda key, value, count: count + 1,
            lambda key, left, right: left + right,
        )

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | Materialized | None = None, name: str | None = None
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each session by `reducer(aggregate, value)`; it merges sessions, too.

        Stateful; repartitions when the key was changed; drops null keys.

        >>> builder = StreamsBuilder()
        >>> sessions = builder.stream("in").group_by_key().windowed_by(SessionWindows(10))
        >>> sessions.reduce(max).to_stream().to("out")
        >>> for result in run(builder, [("a", 3, 0), ("a", 2, 8)]):
        ...     print(*result)
        [a@0/0] 3 0
        [a@0/0] None 0
        [a@0/8] 3 8
        """
        keep = (materialized(store, "reduce") or Materialized()).or_serdes(
            self.grouped.key_serde, self.grouped.value_serde
        )
        fold = fold_of(reducer)

        def merge(key: Any, left: Any, right: Any) -> Any:
            return right if left is None else left if right is None else fold(key, right, left)

        return self._add(keep, "KSTREAM-REDUCE-", name, lambda: None, fold, merge)

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        merger: Callable[[K, A, A], A],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], A]:
        """Fold the values of each session; `merger(key, left, right)` puts two sessions together.

        Stateful; repartitions when the key was changed; drops null keys; the aggregator sees null values.

        >>> builder = StreamsBuilder()
        >>> sessions = builder.stream("in").group_by_key().windowed_by(SessionWindows(10, grace=60))
        >>> joined = sessions.aggregate(
        ...     str, lambda key, value, text: text + value, merger=lambda key, left, right: left + right
        ... )
        >>> joined.to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 0), ("a", "y", 15), ("a", "z", 7)]):
        ...     print(*result)
        [a@0/0] x 0
        [a@15/15] y 15
        [a@0/0] None 0
        [a@15/15] None 15
        [a@0/15] xyz 15
        """
        check_function(initializer, "aggregate, initializer")
        check_function(aggregator, "aggregate, aggregator")
        check_function(merger, "aggregate, merger")
        keep = (materialized(store, "aggregate") or Materialized()).or_serdes(self.grouped.key_serde)
        return self._add(keep, "KSTREAM-AGGREGATE-", name, initializer, aggregator, merger)

    def _add(
        self,
        keep: Materialized,
        prefix: str,
        name: str | None,
        initializer: Callable[[], Any],
        aggregator: Fold,
        merger: Fold,
    ) -> KTable[Any, Any]:
        graph = self.grouped.graph
        store = keep.name or graph.new_store_name(prefix)
        step = graph.new_name(prefix, name)
        return self.grouped.add_aggregate(
            step,
            keep,
            keep.session(store, self.windows.retention, self.on_close),
            StoreGetter(store),
            lambda send_old: SessionAggregate(
                store, self.windows, initializer, aggregator, merger, self.on_close, send_old
            ),
            key_serde=session_serde(keep.key_serde),
            grace=self.windows.gap + self.windows.grace,
        )


def window_operator(
    store: str,
    windows: TimeWindows | SlidingWindows,
    initializer: Callable[[], Any],
    aggregator: Fold,
    on_close: bool,
    send_old: bool,
    *,
    shared: bool = False,
) -> Operator:
    """Return the operator for that kind of windows."""
    if isinstance(windows, SlidingWindows):
        return SlidingAggregate(store, windows, initializer, aggregator, on_close, send_old)
    return WindowAggregate(store, windows, initializer, aggregator, on_close, send_old, shared)


def windowed_serde(inner: Serde[Any] | None, size: int) -> Serde[Any]:
    """Return the serde of keys with a window of that size."""
    return IncompleteSerde(lambda fill_in: WindowedSerde(fill_in(inner, "key"), size), f"Windowed({inner!r}, {size})")


def session_serde(inner: Serde[Any] | None) -> Serde[Any]:
    """Return the serde of keys with a session."""
    return IncompleteSerde(lambda fill_in: SessionWindowedSerde(fill_in(inner, "key")), f"SessionWindowed({inner!r})")


def fold_of(reducer: Callable[[Any, Any], Any]) -> Fold:
    """Return a reducer as a function of (key, value, aggregate) that takes the first value as it is."""
    check_function(reducer, "reduce")
    return lambda key, value, aggregate: value if aggregate is None else reducer(aggregate, value)


def _check_strategy(strategy: Any) -> None:
    if not isinstance(strategy, EmitStrategy):
        raise TopologyError(
            "emit_strategy: expected EmitStrategy.on_window_close() or EmitStrategy.on_window_update(), "
            f"got {type(strategy).__name__} ({strategy!r})"
        )
