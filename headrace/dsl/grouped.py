"""`GroupedStream` and what `windowed_by` makes of it: records by key, to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, materialized
from headrace.dsl.repartitions import repartition_node
from headrace.dsl.table import KTable
from headrace.dsl.table_steps import AggregateTable
from headrace.errors import TopologyError
from headrace.operators.aggregate import Aggregate, Count
from headrace.operators.getters import Getter, StoreGetter
from headrace.operators.windows import (
    HoppingWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    UnlimitedWindows,
)
from headrace.serdes import Long, Serde
from headrace.state.builders import StoreBuilder
from headrace.topology.nodes import Operator
from headrace.topology.topology import Topology

if TYPE_CHECKING:
    from headrace.dsl.cogrouped import CogroupedStream
    from headrace.dsl.windowed import SessionWindowedStream, TimeWindowedStream

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class GroupedStream(Generic[K, V]):
    """Records grouped by key. A null key or value is dropped by its aggregations."""

    name: str
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    sources: frozenset[str]
    rekeyed: bool
    group_name: str | None
    node: GraphNode
    graph: Graph
    _repartitions: list[GraphNode] = field(default_factory=list, repr=False)

    def count(self, *, store: str | Materialized | None = None, name: str | None = None) -> KTable[K, int]:
        """Count the records of each key.

        Stateful; repartitions when the key was changed; drops null keys and values.
        """
        keep = self.count_store(store)
        store_name = keep.name or self.graph.new_store_name("KSTREAM-AGGREGATE-")
        step = self.graph.new_name("KSTREAM-AGGREGATE-", name)
        return self.add_aggregate(
            step,
            keep,
            keep.key_value(store_name),
            StoreGetter(store_name),
            lambda send_old: Count(store_name, send_old),
        )

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | Materialized | None = None, name: str | None = None
    ) -> KTable[K, V]:
        """Combine the values of each key by `reducer(aggregate, value)`; the first is taken as it is.

        Stateful; repartitions when the key was changed; drops null keys and values.
        """
        keep = (materialized(store) or Materialized()).or_serdes(self.key_serde, self.value_serde)
        store_name = keep.name or self.graph.new_store_name("KSTREAM-REDUCE-")
        step = self.graph.new_name("KSTREAM-REDUCE-", name)
        return self.add_aggregate(
            step,
            keep,
            keep.key_value(store_name),
            StoreGetter(store_name),
            lambda send_old: Aggregate(
                store_name, None, lambda key, value, aggregate: reducer(aggregate, value), send_old
            ),
        )

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, A]:
        """Fold the values of each key by `aggregator(key, value, aggregate)`, from `initializer()`.

        Stateful; repartitions when the key was changed; drops null keys and values. An aggregate of None deletes.
        """
        keep = (materialized(store) or Materialized()).or_serdes(self.key_serde)
        store_name = keep.name or self.graph.new_store_name("KSTREAM-AGGREGATE-")
        step = self.graph.new_name("KSTREAM-AGGREGATE-", name)
        return self.add_aggregate(
            step,
            keep,
            keep.key_value(store_name),
            StoreGetter(store_name),
            lambda send_old: Aggregate(store_name, initializer, aggregator, send_old),
        )

    def windowed_by(self, windows: Any) -> Any:
        """Aggregate by window: tumbling, hopping, unlimited or sliding windows, or sessions."""
        return windowed(self, windows)

    def cogroup(self, aggregator: Callable[[K, V, A], A]) -> CogroupedStream[K, A]:
        """Aggregate this together with other grouped streams, each by its own `aggregator(key, value, aggregate)`."""
        from headrace.dsl.cogrouped import CogroupedStream

        return CogroupedStream(((self, aggregator),), self.graph)

    # -- for this and the windowed streams --------------------------------------------------------------------------

    def count_store(self, store: str | Materialized | None) -> Materialized:
        """Return how a count is kept."""
        keep = materialized(store)
        if keep is not None and keep.name is None:
            self.graph.new_store_name("KSTREAM-AGGREGATE-")  # takes a number, as in Kafka Streams
        return (keep or Materialized()).or_serdes(self.key_serde, Long)

    def add_aggregate(
        self,
        step: str,
        keep: Materialized,
        store: StoreBuilder,
        getter: Getter,
        operator: Callable[[bool], Operator],
        *,
        key_serde: Serde[Any] | None = None,
        grace: int | None = None,
    ) -> KTable[Any, Any]:
        """Add an aggregation, after a repartition if the key was changed."""
        graph = self.graph
        above, sources = self.node, self.sources
        if self.rekeyed:
            above = self.repartitioned(store.name)
            sources = frozenset([above.name])
        table = AggregateTable(getter)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, operator(table.send_old), *parents)
            topology.add_state_store(store, step)

        node = GraphNode(step, write, grace=grace, versioned=keep.history_retention is not None)
        graph.add(node, above)
        keys = keep.key_serde if key_serde is None else key_serde
        return KTable(step, keys, keep.value_serde, sources, keep.name, table, node, graph)

    def repartitioned(self, store: str) -> GraphNode:
        """Return the repartition before an aggregation; a named one serves several."""
        made = repartition_node(self.graph, self.group_name or store, self.key_serde, self.value_serde)
        if not self._repartitions or self.group_name is None:
            self._repartitions[:] = [self.graph.add(made, self.node)]
        return self._repartitions[0]


def windowed(
    grouped: GroupedStream[Any, Any], windows: Any
) -> TimeWindowedStream[Any, Any] | SessionWindowedStream[Any, Any]:
    """Return the windowed stream for that kind of windows."""
    from headrace.dsl.windowed import SessionWindowedStream, TimeWindowedStream

    if isinstance(windows, SessionWindows):
        return SessionWindowedStream(grouped, windows)
    if isinstance(windows, TumblingWindows | HoppingWindows | SlidingWindows | UnlimitedWindows):
        return TimeWindowedStream(grouped, windows)
    raise TopologyError(
        "windowed_by: expected TumblingWindows, HoppingWindows, SlidingWindows, SessionWindows or UnlimitedWindows, "
        f"got {type(windows).__name__} ({windows!r})"
    )


__all__ = ["GroupedStream", "windowed"]
