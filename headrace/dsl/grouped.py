"""`GroupedStream`: records by key, to be aggregated.

Tests: `tests/operators/test_aggregate.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from headrace.dsl import cogrouped as cogroups
from headrace.dsl import table as tables
from headrace.dsl import windowed as windowed_streams
from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, always_materialized, materialized
from headrace.dsl.repartitions import repartition_node
from headrace.dsl.table_steps import AggregateTable
from headrace.dsl.windowings import Fold, NoWindowing, Windowing, check_windows
from headrace.operators.aggregate import Aggregate, Count
from headrace.operators.window_definitions import SessionWindows
from headrace.serdes import Long, Serde
from headrace.topology.argument_checks import check_function
from headrace.topology.nodes import Operator
from headrace.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class GroupedStream(Generic[K, V]):
    """Records grouped by key. Aggregations drop null keys and null values.

    `KStream.group_by_key` and `KStream.group_by` make one.

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

    def count(self, *, store: str | Materialized | None = None, name: str | None = None) -> tables.KTable[K, int]:
        """Count the records of each key.

        Stateful. Repartitions if the key was changed. Drops null keys and values. Counts are written as `Long`.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
        >>> run(builder, [("a", "x", 0), ("a", None, 1), ("a", "y", 5)])
        [('a', 1, 0), ('a', 2, 5)]
        """
        keep = self.count_store(store)
        return self.add_aggregate(keep, NoWindowing(), "KSTREAM-AGGREGATE-", name, Count)

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | Materialized | None = None, name: str | None = None
    ) -> tables.KTable[K, V]:
        """Combine the values of each key with `reducer(aggregate, value)`. The first value is the first aggregate.

        Stateful. Repartitions if the key was changed. Drops null keys and values. A result of None deletes the row.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().reduce(lambda total, value: total + value).to_stream().to("out")
        >>> run(builder, [("a", 1, 10), ("a", 2, 4), ("a", 3, 12)])
        [('a', 1, 10), ('a', 3, 10), ('a', 6, 12)]
        """
        check_function(reducer, "reduce")
        keep = always_materialized(store, "reduce", self.key_serde, self.value_serde)

        def operator(kept: str, send_old: bool) -> Operator:
            return Aggregate(kept, None, lambda key, value, aggregate: reducer(aggregate, value), send_old)

        return self.add_aggregate(keep, NoWindowing(), "KSTREAM-REDUCE-", name, operator)

    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A | None],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> tables.KTable[K, A]:
        """Fold the values of each key with `aggregator(key, value, aggregate)`, starting from `initializer()`.

        Stateful. Repartitions if the key was changed. Drops null keys and values. An aggregate of None deletes the row.

        >>> builder = StreamsBuilder()
        >>> grouped = builder.stream("in").group_by_key()
        >>> grouped.aggregate(list, lambda key, value, seen: [*seen, value]).to_stream().to("out")
        >>> run(builder, [("a", "x", 0), ("a", "y", 5)])
        [('a', ['x'], 0), ('a', ['x', 'y'], 5)]
        """
        check_function(initializer, "aggregate, initializer")
        check_function(aggregator, "aggregate, aggregator")
        keep = always_materialized(store, "aggregate", self.key_serde)
        operator = partial(NoWindowing().operator, Fold(initializer, aggregator))
        return self.add_aggregate(keep, NoWindowing(), "KSTREAM-AGGREGATE-", name, operator)

    def windowed_by(self, windows: Any) -> Any:
        """Aggregate by window: tumbling, hopping, unlimited or sliding windows, or sessions.

        Returns a `TimeWindowedStream`, or for sessions a `SessionWindowedStream`.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).count().to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 3), ("a", "y", 7), ("a", "z", 12)]):
        ...     print(*result)
        [a@0/10] 1 3
        [a@0/10] 2 7
        [a@10/20] 1 12
        """
        check_windows(windows)
        if isinstance(windows, SessionWindows):
            return windowed_streams.SessionWindowedStream(self, windows)
        return windowed_streams.TimeWindowedStream(self, windows)

    def cogroup(self, aggregator: Callable[[K, V, A], A | None]) -> cogroups.CogroupedStream[K, A]:
        """Aggregate this and other grouped streams together, each with its own `aggregator(key, value, aggregate)`.

        >>> builder = StreamsBuilder()
        >>> paid = builder.stream("paid").group_by_key()
        >>> owed = builder.stream("owed").group_by_key()
        >>> both = paid.cogroup(lambda key, value, total: total + value)
        >>> both.cogroup(owed, lambda key, value, total: total - value).aggregate(lambda: 0).to_stream().to("out")
        >>> run(builder, [("paid", "ann", 10, 0), ("owed", "ann", 3, 5)])
        [('ann', 10, 0), ('ann', 7, 5)]
        """
        check_function(aggregator, "cogroup, aggregator")
        return cogroups.CogroupedStream(((self, aggregator),), self.graph)

    # -- for this and the windowed streams --------------------------------------------------------------------------

    def count_store(self, store: str | Materialized | None, *, takes_number: bool = True) -> Materialized:
        """Return how a count is kept."""
        keep = materialized(store, "count")
        if takes_number and keep is not None and keep.name is None:
            self.graph.new_store_name("KSTREAM-AGGREGATE-")  # as in Kafka Streams
        return (keep or Materialized()).or_serdes(self.key_serde, Long)

    def add_aggregate(
        self,
        keep: Materialized,
        windowing: Windowing,
        prefix: str,
        name: str | None,
        operator: Callable[[str, bool], Operator],
    ) -> tables.KTable[Any, Any]:
        """Add an aggregation, after a repartition if the key was changed.

        `operator(store, send_old)` makes its operator when it is known whether a later step needs old values.
        """
        graph = self.graph
        store_name = keep.name or graph.new_store_name(prefix)
        step = graph.new_name(prefix, name)
        store = windowing.store(keep, store_name)
        above, sources = self.node, self.sources
        if self.rekeyed:
            above = self.repartitioned(store_name)
            sources = frozenset([above.name])
        table = AggregateTable(windowing.getter(store_name))

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, operator(store_name, table.send_old), *parents)
            topology.add_step_store(store, step)

        node = GraphNode(step, write, grace=windowing.grace, versioned=keep.history_retention is not None)
        graph.add(node, above)
        keys = windowing.key_serde(keep)
        return tables.KTable(step, keys, keep.value_serde, sources, keep.name, table, node, graph)

    def repartitioned(self, store: str) -> GraphNode:
        """Return the repartition before an aggregation. Several aggregations share a named one."""
        made = repartition_node(self.graph, self.group_name or store, self.key_serde, self.value_serde)
        if not self._repartitions or self.group_name is None:
            self._repartitions[:] = [self.graph.add(made, self.node)]
        return self._repartitions[0]
