"""`CogroupedStream`: several grouped streams folded into one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.grouped import GroupedStream
from headrace.dsl.materialized import Materialized, materialized
from headrace.dsl.table import KTable
from headrace.dsl.table_steps import AggregateTable, CogroupTable
from headrace.dsl.windowed import session_serde, window_operator, windowed_serde
from headrace.errors import TopologyError
from headrace.operators.aggregate import Aggregate
from headrace.operators.session_aggregate import SessionAggregate
from headrace.operators.table import TablePassThrough
from headrace.operators.value_getters import Getter, StoreGetter
from headrace.operators.window_definitions import (
    HoppingWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    UnlimitedWindows,
)
from headrace.serdes import Serde
from headrace.state.builders import StoreBuilder
from headrace.topology.arguments import check_function, check_optional_function
from headrace.topology.nodes import Operator
from headrace.topology.topology import Topology

K = TypeVar("K")
A = TypeVar("A")
_PREFIX = "COGROUPKSTREAM-AGGREGATE-"


@dataclass(frozen=True, eq=False)
class CogroupedStream(Generic[K, A]):
    """Grouped streams with an aggregator each, all folding into the same aggregate per key.

    Made by `GroupedStream.cogroup`.

    >>> builder = StreamsBuilder()
    >>> orders, views = builder.stream("orders").group_by_key(), builder.stream("views").group_by_key()
    >>> seen = orders.cogroup(lambda key, order, seen: [*seen, order])
    >>> seen.cogroup(views, lambda key, view, seen: [*seen, view]).aggregate(list).to_stream().to("out")
    >>> run(builder, [("views", "ann", "/tea", 0), ("orders", "ann", "tea", 5)])
    [('ann', ['/tea'], 0), ('ann', ['/tea', 'tea'], 5)]
    """

    inputs: tuple[tuple[GroupedStream[Any, Any], Callable[[Any, Any, Any], Any]], ...]
    graph: Graph
    windows: Any = None

    def cogroup(
        self, grouped: GroupedStream[K, Any], aggregator: Callable[[K, Any, A], A | None]
    ) -> CogroupedStream[K, A]:
        """Add a grouped stream with its `aggregator(key, value, aggregate)`.

        >>> builder = StreamsBuilder()
        >>> ups, downs = builder.stream("ups").group_by_key(), builder.stream("downs").group_by_key()
        >>> level = ups.cogroup(lambda key, value, level: level + 1)
        >>> level.cogroup(downs, lambda key, value, level: level - 1).aggregate(lambda: 0).to_stream().to("out")
        >>> run(builder, [("ups", "a", "x", 0), ("ups", "a", "x", 1), ("downs", "a", "x", 2)])
        [('a', 1, 0), ('a', 2, 1), ('a', 1, 2)]
        """
        if not isinstance(grouped, GroupedStream):
            raise TopologyError(f"cogroup: expected a GroupedStream, got {type(grouped).__name__} ({grouped!r})")
        if grouped.graph is not self.graph:
            raise TopologyError("cogroup: both streams must come from the same StreamsBuilder")
        check_function(aggregator, "cogroup, aggregator")
        # As in Kafka Streams, a group that is added again only gets another aggregator.
        return replace(self, inputs=tuple({**dict(self.inputs), grouped: aggregator}.items()))

    def windowed_by(self, windows: Any) -> CogroupedStream[K, A]:
        """Aggregate by window: tumbling, hopping, unlimited or sliding windows, or sessions.

        >>> builder = StreamsBuilder()
        >>> one, two = builder.stream("one").group_by_key(), builder.stream("two").group_by_key()
        >>> def append(key, value, text):
        ...     return text + value
        >>> both = one.cogroup(append).cogroup(two, append)
        >>> both.windowed_by(TumblingWindows(10)).aggregate(str).to_stream().to("out")
        >>> for result in run(builder, [("one", "a", "x", 3), ("two", "a", "y", 7), ("two", "a", "z", 12)]):
        ...     print(*result)
        [a@0/10] x 3
        [a@0/10] xy 7
        [a@10/20] z 12
        """
        kinds = TumblingWindows | HoppingWindows | SlidingWindows | UnlimitedWindows | SessionWindows
        if not isinstance(windows, kinds):
            raise TopologyError(
                "windowed_by: expected TumblingWindows, HoppingWindows, SlidingWindows, SessionWindows or "
                f"UnlimitedWindows, got {type(windows).__name__} ({windows!r})"
            )
        return replace(self, windows=windows)

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        merger: Callable[[K, A, A], A] | None = None,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Any, A]:
        """Fold all inputs, from `initializer()`; sessions need a `merger(key, left, right)`.

        Stateful; inputs whose key was changed are repartitioned; with windows each input has its own stream time. Null
        keys and values as in `GroupedStream.aggregate`, with windows as in `TimeWindowedStream.aggregate`.

        >>> builder = StreamsBuilder()
        >>> one = builder.stream("in").group_by_key().cogroup(lambda key, value, text: text + value)
        >>> sessions = one.windowed_by(SessionWindows(10))
        >>> sessions.aggregate(str, merger=lambda key, left, right: left + right).to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 3), ("a", "y", 30)]):
        ...     print(*result)
        [a@3/3] x 3
        [a@30/30] y 30
        """
        graph = self.graph
        check_function(initializer, "aggregate, initializer")
        check_optional_function(merger, "aggregate, merger")
        if isinstance(self.windows, SessionWindows) and merger is None:
            raise TopologyError("aggregate: sessions need merger=f(key, left, right) to put two of them together")
        if merger is not None and not isinstance(self.windows, SessionWindows):
            raise TopologyError("aggregate: a merger is for sessions only. Add windowed_by(SessionWindows(...))")
        unnamed = [grouped for grouped, _ in self.inputs if grouped.rekeyed and grouped.group_name is None]
        if len(unnamed) > 1:
            raise TopologyError(
                f"aggregate: {len(unnamed)} cogrouped streams need a repartition and have no name for it. "
                "Name them: group_by_key(name=...) or group_by(..., name=...)"
            )
        keep = (materialized(store, "aggregate") or Materialized()).or_serdes(self.inputs[0][0].key_serde)
        store_name = keep.name or graph.new_store_name(_PREFIX)
        builder, getter, key_serde, grace = self._kept(keep, store_name)
        parents: list[GraphNode] = []
        sources: list[frozenset[str]] = []
        for grouped, _ in self.inputs:
            node = grouped.repartitioned(store_name) if grouped.rekeyed else grouped.node
            parents.append(node)
            sources.append(frozenset([node.name]) if grouped.rekeyed else grouped.sources)
        tables, nodes = [], []
        for number, ((_, aggregator), above) in enumerate(zip(self.inputs, parents, strict=True)):
            step = graph.new_name(_PREFIX, name, f"-cogroup-agg-{number}")
            table = AggregateTable(getter)
            make = self._operator(store_name, initializer, aggregator, merger)
            node = GraphNode(step, _writer(step, builder, make, table), grace=grace, versioned=False)
            nodes.append(graph.add(node, above))
            tables.append(table)
        merge = graph.new_name("COGROUPKSTREAM-MERGE-", name, "-cogroup-merge")
        together = graph.copartition(merge, *sources)

        def write(topology: Topology, above: tuple[str, ...]) -> None:
            topology.add_operator(merge, TablePassThrough(), *above)

        node = graph.add(GraphNode(merge, write, versioned=False), *nodes)
        return KTable(merge, key_serde, keep.value_serde, together, keep.name, CogroupTable(tables), node, graph)

    def _kept(self, keep: Materialized, store: str) -> tuple[StoreBuilder, Getter, Serde[Any] | None, int | None]:
        windows = self.windows
        if windows is None:
            return keep.key_value(store), StoreGetter(store), keep.key_serde, None
        if isinstance(windows, SessionWindows):
            builder = keep.session(store, windows.retention, False)
            return builder, StoreGetter(store), session_serde(keep.key_serde), windows.gap + windows.grace
        builder = keep.window(store, windows.size, windows.retention, False)
        return builder, StoreGetter(store), windowed_serde(keep.key_serde, windows.size), windows.grace

    def _operator(
        self, store: str, initializer: Callable[[], Any], aggregator: Any, merger: Any
    ) -> Callable[[bool], Operator]:
        windows = self.windows
        if windows is None:
            return lambda send_old: Aggregate(store, initializer, aggregator, send_old)
        if isinstance(windows, SessionWindows):
            return lambda send_old: SessionAggregate(store, windows, initializer, aggregator, merger, False, send_old)
        shared = len(self.inputs) > 1
        return lambda send_old: window_operator(store, windows, initializer, aggregator, False, send_old, shared=shared)


def _writer(
    step: str, store: StoreBuilder, make: Callable[[bool], Operator], table: AggregateTable
) -> Callable[[Topology, tuple[str, ...]], None]:
    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.add_operator(step, make(table.send_old), *parents)
        topology.add_step_store(store, step)

    return write
