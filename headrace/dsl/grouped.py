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
from headrace.operators.value_getters import Getter, StoreGetter
from headrace.operators.window_definitions import (
    HoppingWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    UnlimitedWindows,
)
from headrace.serdes import Long, Serde
from headrace.state.builders import StoreBuilder
from headrace.topology.arguments import check_function
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
    """Records grouped by key. A null key or value is dropped by its aggregations.

    Made by `KStream.group_by_key` and `KStream.group_by`.

    >>> builder = StreamsBuilder()
    >>> grouped = builder.stream("in").group_by_key()
    >>> grouped.reduce(max).to_stream().to("out")
    >>> run(builder, [("a", 3, 0), ("a", 1, 5), ("a", 4, 6)])
    [('a', 3, 0), ('a', 3, 5), ('a', 4, 6)]
    """

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

        Stateful; repartitions when the key was changed; drops null keys and values. Counts are written as `Long`.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
        >>> run(builder, [("a", "x", 0), ("a", None, 1), ("a", "y", 5)])
        [('a', 1, 0), ('a', 2, 5)]
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

        Stateful; repartitions when the key was changed; drops null keys and values. A result of None deletes.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().reduce(lambda total, value: total + value).to_stream().to("out")
        >>> run(builder, [("a", 1, 10), ("a", 2, 4), ("a", 3, 12)])
        [('a', 1, 10), ('a', 3, 10), ('a', 6, 12)]
        """
        check_function(reducer, "reduce")
        keep = (materialized(store, "reduce") or Materialized()).or_serdes(self.key_serde, self.value_serde)
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
        aggregator: Callable[[K, V, A], A | None],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, A]:
        """Fold the values of each key by `aggregator(key, value, aggregate)`, from `initializer()`.

        Stateful; repartitions when the key was changed; drops null keys and values. An aggregate of None deletes.

        >>> builder = StreamsBuilder()
        >>> grouped = builder.stream("in").group_by_key()
        >>> grouped.aggregate(list, lambda key, value, seen: [*seen, value]).to_stream().to("out")
        >>> run(builder, [("a", "x", 0), ("a", "y", 5)])
        [('a', ['x'], 0), ('a', ['x', 'y'], 5)]
        """
        check_function(initializer, "aggregate, initializer")
        check_function(aggregator, "aggregate, aggregator")
        keep = (materialized(store, "aggregate") or Materialized()).or_serdes(self.key_serde)
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
        """Aggregate by window: tumbling, hopping, unlimited or sliding windows, or sessions.

        Gives a `TimeWindowedStream`, or for sessions a `SessionWindowedStream`.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).count().to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 3), ("a", "y", 7), ("a", "z", 12)]):
        ...     print(*result)
        [a@0/10] 1 3
        [a@0/10] 2 7
        [a@10/20] 1 12
        """
        return windowed(self, windows)

    def cogroup(self, aggregator: Callable[[K, V, A], A | None]) -> CogroupedStream[K, A]:
        """Aggregate this together with other grouped streams, each by its own `aggregator(key, value, aggregate)`.

        >>> builder = StreamsBuilder()
        >>> paid = builder.stream("paid").group_by_key()
        >>> owed = builder.stream("owed").group_by_key()
        >>> both = paid.cogroup(lambda key, value, total: total + value)
        >>> both.cogroup(owed, lambda key, value, total: total - value).aggregate(lambda: 0).to_stream().to("out")
        >>> run(builder, [("paid", "ann", 10, 0), ("owed", "ann", 3, 5)])
        [('ann', 10, 0), ('ann', 7, 5)]
        """
        from headrace.dsl.cogrouped import CogroupedStream

        return CogroupedStream(((self, check_function(aggregator, "cogroup, aggregator")),), self.graph)

    # -- for this and the windowed streams --------------------------------------------------------------------------

    def count_store(self, store: str | Materialized | None, *, takes_number: bool = True) -> Materialized:
        """Return how a count is kept."""
        keep = materialized(store, "count")
        if takes_number and keep is not None and keep.name is None:
            self.graph.new_store_name("KSTREAM-AGGREGATE-")  # as in Kafka Streams
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
            topology.add_step_store(store, step)

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
