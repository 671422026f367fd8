"""`TimeWindowedStream` and `SessionWindowedStream`: records by key and window, to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from headrace.dsl.grouped import GroupedStream
from headrace.dsl.materialized import Materialized, materialized
from headrace.dsl.table import KTable
from headrace.errors import TopologyError
from headrace.operators.getters import SessionStoreGetter, WindowStoreGetter
from headrace.operators.session import SessionAggregate
from headrace.operators.sliding import SlidingAggregate
from headrace.operators.windowed import WindowAggregate
from headrace.operators.windows import EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from headrace.records import Windowed
from headrace.serdes import Serde
from headrace.serdes import SessionWindowed as SessionWindowedSerde
from headrace.serdes import Windowed as WindowedSerde
from headrace.serdes.deferred import Deferred
from headrace.topology.nodes import Operator

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
Fold = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, eq=False)
class TimeWindowedStream(Generic[K, V]):
    """Records grouped by key and window. A null key is dropped; a null value is folded in (sliding: dropped)."""

    grouped: GroupedStream[K, V]
    windows: TimeWindows | SlidingWindows
    on_close: bool = False

    def emit_strategy(self, strategy: EmitStrategy) -> TimeWindowedStream[K, V]:
        """Choose between a result at every update and one final result when a window closes."""
        if strategy.on_close and isinstance(self.windows, UnlimitedWindows):
            raise TopologyError("emit_strategy: unlimited windows never close, on_window_close would emit nothing")
        return replace(self, on_close=strategy.on_close)

    def count(self, *, store: str | Materialized | None = None, name: str | None = None) -> KTable[Windowed[K], int]:
        """Count the records of each key and window.

        Stateful; repartitions when the key was changed; drops null keys.
        """
        keep = self.grouped.count_store(store)
        return self._add(keep, "KSTREAM-AGGREGATE-", name, lambda: 0, lambda key, value, count: count + 1)

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | Materialized | None = None, name: str | None = None
    ) -> KTable[Windowed[K], V]:
        """Combine the values of each key and window by `reducer(aggregate, value)`; the first is taken as it is.

        Stateful; repartitions when the key was changed; drops null keys.
        """
        keep = (materialized(store) or Materialized()).or_serdes(self.grouped.key_serde, self.grouped.value_serde)
        return self._add(keep, "KSTREAM-REDUCE-", name, lambda: None, fold_of(reducer))

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], A]:
        """Fold the values of each key and window by `aggregator(key, value, aggregate)`, from `initializer()`.

        Stateful; repartitions when the key was changed; drops null keys.
        """
        keep = (materialized(store) or Materialized()).or_serdes(self.grouped.key_serde)
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
            WindowStoreGetter(store),
            lambda send_old: window_operator(store, self.windows, initializer, aggregator, self.on_close, send_old),
            key_serde=windowed_serde(keep.key_serde, self.windows.size),
            grace=self.windows.grace,
        )


@dataclass(frozen=True, eq=False)
class SessionWindowedStream(Generic[K, V]):
    """Records grouped by key and session. A null key is dropped; a null value is folded in."""

    grouped: GroupedStream[K, V]
    windows: SessionWindows
    on_close: bool = False

    def emit_strategy(self, strategy: EmitStrategy) -> SessionWindowedStream[K, V]:
        """Choose between a result at every update and one final result when a session closes."""
        return replace(self, on_close=strategy.on_close)

    def count(self, *, store: str | Materialized | None = None, name: str | None = None) -> KTable[Windowed[K], int]:
        """Count the records of each session.

        Stateful; repartitions when the key was changed; drops null keys.
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
        """
        keep = (materialized(store) or Materialized()).or_serdes(self.grouped.key_serde, self.grouped.value_serde)
        fold = fold_of(reducer)

        def merge(key: Any, left: Any, right: Any) -> Any:
            return right if left is None else left if right is None else fold(key, right, left)

        return self._add(keep, "KSTREAM-REDUCE-", name, lambda: None, fold, merge)

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        merger: Callable[[K, A, A], A],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], A]:
        """Fold the values of each session; `merger(key, left, right)` puts two sessions together.

        Stateful; repartitions when the key was changed; drops null keys.
        """
        keep = (materialized(store) or Materialized()).or_serdes(self.grouped.key_serde)
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
            SessionStoreGetter(store),
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
) -> Operator:
    """Return the operator for that kind of windows."""
    if isinstance(windows, SlidingWindows):
        return SlidingAggregate(store, windows, initializer, aggregator, on_close, send_old)
    return WindowAggregate(store, windows, initializer, aggregator, on_close, send_old)


def windowed_serde(inner: Serde[Any] | None, size: int) -> Serde[Any]:
    """Return the serde of keys with a window of that size."""
    return Deferred(lambda fill_in: WindowedSerde(fill_in(inner, "key"), size), f"Windowed({inner!r}, {size})")


def session_serde(inner: Serde[Any] | None) -> Serde[Any]:
    """Return the serde of keys with a session."""
    return Deferred(lambda fill_in: SessionWindowedSerde(fill_in(inner, "key")), f"SessionWindowed({inner!r})")


def fold_of(reducer: Callable[[Any, Any], Any]) -> Fold:
    """Return a reducer as a function of (key, value, aggregate) that takes the first value as it is."""
    if not callable(reducer):
        raise TopologyError(f"reduce: expected a function, got {type(reducer).__name__} ({reducer!r})")
    return lambda key, value, aggregate: value if aggregate is None else reducer(aggregate, value)
