"""`TimeWindowedStream` and `SessionWindowedStream`: records by key and window, to be aggregated.

Tests: `tests/operators/test_windowed_aggregate.py`, `test_sliding_aggregate.py` and `test_session_aggregate.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from headrace.dsl import grouped as groupings
from headrace.dsl import table as tables
from headrace.dsl.materialized import Materialized, always_materialized
from headrace.dsl.windowings import Fold, SessionWindowing, TimeWindowing
from headrace.errors import TopologyError
from headrace.operators.window_definitions import (
    EmitStrategy,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from headrace.records import Windowed
from headrace.topology.argument_checks import check_function

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class TimeWindowedStream(Generic[K, V]):
    """Records grouped by key and window. Null keys are dropped. Null values are folded in, except by sliding windows.

    `GroupedStream.windowed_by` makes one. The result of an aggregation is a `KTable` with `Windowed` keys. A result has
    the largest timestamp of the window's records.

    >>> builder = StreamsBuilder()
    >>> hops = builder.stream("in").group_by_key().windowed_by(HoppingWindows(10, advance=5))
    >>> hops.count().to_stream().to("out")
    >>> for result in run(builder, [("a", "x", 7)]):
    ...     print(*result)
    [a@0/10] 1 7
    [a@5/15] 1 7
    """

    grouped: groupings.GroupedStream[K, V]
    windows: TimeWindows | SlidingWindows
    on_close: bool = False

    def emit_strategy(self, strategy: EmitStrategy) -> TimeWindowedStream[K, V]:
        """Choose between a result at every update and one final result when a window closes.

        Stateful. Never repartitions. See `EmitStrategy` for what is lost when stream time jumps.

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
                "emit_strategy: unlimited windows never close, so on_window_close would emit nothing. "
                "Use on_window_update or other windows"
            )
        return replace(self, on_close=strategy.on_close)

    def count(
        self, *, store: str | Materialized | None = None, name: str | None = None
    ) -> tables.KTable[Windowed[K], int]:
        """Count the records of each key and window.

        Stateful. Repartitions if the key was changed. Drops null keys. Counts null values; sliding windows drop them.

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
        return self._add(keep, "KSTREAM-AGGREGATE-", name, Fold(_zero, _count))

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | Materialized | None = None, name: str | None = None
    ) -> tables.KTable[Windowed[K], V]:
        """Combine the values of each key and window with `reducer(aggregate, value)`.

        The first value is the first aggregate. Stateful. Repartitions if the key was changed. Drops null keys. The
        reducer gets null values; sliding windows drop them.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).reduce(max).to_stream().to("out")
        >>> for result in run(builder, [("a", 3, 1), ("a", 5, 2), ("a", 4, 12)]):
        ...     print(*result)
        [a@0/10] 3 1
        [a@0/10] 5 2
        [a@10/20] 4 12
        """
        keep = always_materialized(store, "reduce", self.grouped.key_serde, self.grouped.value_serde)
        return self._add(keep, "KSTREAM-REDUCE-", name, Fold(_nothing, _first_or(reducer)))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> tables.KTable[Windowed[K], A]:
        """Fold the values of each key and window with `aggregator(key, value, aggregate)`, from `initializer()` on.

        Stateful. Repartitions if the key was changed. Drops null keys. The aggregator gets null values; sliding windows
        drop them. An aggregate of None deletes the window's row.

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
        keep = always_materialized(store, "aggregate", self.grouped.key_serde)
        return self._add(keep, "KSTREAM-AGGREGATE-", name, Fold(initializer, aggregator))

    def _add(self, keep: Materialized, prefix: str, name: str | None, fold: Fold) -> tables.KTable[Any, Any]:
        windowing = TimeWindowing(self.windows, self.on_close)
        return self.grouped.add_aggregate(keep, windowing, prefix, name, partial(windowing.operator, fold))


@dataclass(frozen=True, eq=False)
class SessionWindowedStream(Generic[K, V]):
    """Records grouped by key and session. Null keys are dropped. Null values are folded in.

    `GroupedStream.windowed_by(SessionWindows(...))` makes one. A record that extends a session deletes the old session
    from the table and adds the new one. The timestamp of a result is the session's end.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").group_by_key().windowed_by(SessionWindows(10)).count().to_stream().to("out")
    >>> for result in run(builder, [("a", "x", 0), ("a", "y", 8)]):
    ...     print(*result)
    [a@0/0] 1 0
    [a@0/0] None 0
    [a@0/8] 2 8
    """

    grouped: groupings.GroupedStream[K, V]
    windows: SessionWindows
    on_close: bool = False

    def emit_strategy(self, strategy: EmitStrategy) -> SessionWindowedStream[K, V]:
        """Choose between a result at every update and one final result when a session closes.

        Stateful. Never repartitions.

        >>> builder = StreamsBuilder()
        >>> sessions = builder.stream("in").group_by_key().windowed_by(SessionWindows(10))
        >>> sessions.emit_strategy(EmitStrategy.on_window_close()).count().to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 0), ("a", "y", 8), ("b", "z", 30)]):
        ...     print(*result)
        [a@0/8] 2 8
        """
        _check_strategy(strategy)
        return replace(self, on_close=strategy.on_close)

    def count(
        self, *, store: str | Materialized | None = None, name: str | None = None
    ) -> tables.KTable[Windowed[K], int]:
        """Count the records of each session.

        Stateful. Repartitions if the key was changed. Drops null keys. Counts null values.

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
        fold = Fold(_zero, _count, lambda key, left, right: left + right)
        return self._add(keep, "KSTREAM-AGGREGATE-", name, fold)

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | Materialized | None = None, name: str | None = None
    ) -> tables.KTable[Windowed[K], V]:
        """Combine the values of each session with `reducer(aggregate, value)`. The reducer merges sessions, too.

        Stateful. Repartitions if the key was changed. Drops null keys.

        >>> builder = StreamsBuilder()
        >>> sessions = builder.stream("in").group_by_key().windowed_by(SessionWindows(10))
        >>> sessions.reduce(max).to_stream().to("out")
        >>> for result in run(builder, [("a", 3, 0), ("a", 2, 8)]):
        ...     print(*result)
        [a@0/0] 3 0
        [a@0/0] None 0
        [a@0/8] 3 8
        """
        keep = always_materialized(store, "reduce", self.grouped.key_serde, self.grouped.value_serde)
        reduced = _first_or(reducer)

        def merge(key: Any, left: Any, right: Any) -> Any:
            return right if left is None else left if right is None else reduced(key, right, left)

        return self._add(keep, "KSTREAM-REDUCE-", name, Fold(_nothing, reduced, merge))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        merger: Callable[[K, A, A], A],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> tables.KTable[Windowed[K], A]:
        """Fold the values of each session. `merger(key, left, right)` merges two sessions.

        Stateful. Repartitions if the key was changed. Drops null keys. The aggregator gets null values.

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
        keep = always_materialized(store, "aggregate", self.grouped.key_serde)
        return self._add(keep, "KSTREAM-AGGREGATE-", name, Fold(initializer, aggregator, merger))

    def _add(self, keep: Materialized, prefix: str, name: str | None, fold: Fold) -> tables.KTable[Any, Any]:
        windowing = SessionWindowing(self.windows, self.on_close)
        return self.grouped.add_aggregate(keep, windowing, prefix, name, partial(windowing.operator, fold))


def _first_or(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Return a reducer as an aggregator. The first value is the first aggregate."""
    check_function(reducer, "reduce")
    return lambda key, value, aggregate: value if aggregate is None else reducer(aggregate, value)


def _zero() -> int:
    return 0


def _nothing() -> None:
    return None


def _count(key: Any, value: Any, count: int) -> int:
    return count + 1


def _check_strategy(strategy: Any) -> None:
    if not isinstance(strategy, EmitStrategy):
        raise TopologyError(
            "emit_strategy: expected EmitStrategy.on_window_close() or EmitStrategy.on_window_update(), "
            f"got {type(strategy).__name__} ({strategy!r})"
        )
