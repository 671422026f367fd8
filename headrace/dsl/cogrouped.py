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
from headrace.operators.getters import Getter, SessionStoreGetter, StoreGetter, WindowStoreGetter
from headrace.operators.session import SessionAggregate
from headrace.operators.table import TablePassThrough
from headrace.operators.windows import (
    HoppingWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    UnlimitedWindows,
)
from headrace.serdes import Serde
from headrace.state.builders import StoreBuilder
from headrace.topology.nodes import Operator
from headrace.topology.topology import Topology

K = TypeVar("K")
A = TypeVar("A")
_PREFIX = "COGROUPKSTREAM-AGGREGATE-"


@dataclass(frozen=True, eq=False)
class CogroupedStream(Generic[K, A]):
    """Grouped streams with an aggregator each, all folding into the same aggregate per key."""

    inputs: tuple[tuple[GroupedStream[Any, Any], Callable[[Any, Any, Any], Any]], ...]
    graph: Graph
    windows: Any = None

    def cogroup(self, grouped: GroupedStream[K, Any], aggregator: Callable[[K, Any, A], A]) -> CogroupedStream[K, A]:
        """Add a grouped stream with its `aggregator(key, value, aggregate)`."""
        if not isinstance(grouped, GroupedStream):
            raise TopologyError(f"cogroup: expected a GroupedStream, got {type(grouped).__name__} ({grouped!r})")
        if grouped.graph is not self.graph:
            raise TopologyError("cogroup: both streams must come from the same StreamsBuilder")
        return replace(self, inputs=(*self.inputs, (grouped, aggregator)))

    def windowed_by(self, windows: Any) -> CogroupedStream[K, A]:
        """Aggregate by window: tumbling, hopping, unlimited or sliding windows, or sessions."""
        kinds = TumblingWindows | HoppingWindows | SlidingWindows | UnlimitedWindows | SessionWindows
        if not isinstance(windows, kinds):
            raise TopologyError(f"windowed_by: expected windows, got {type(windows).__name__} ({windows!r})")
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

        Stateful; inputs whose key was changed are repartitioned; with windows each input has its own stream time.
        """
        graph = self.graph
        if isinstance(self.windows, SessionWindows) and merger is None:
            raise TopologyError("aggregate: sessions need merger=f(key, left, right) to put two of them together")
        keep = (materialized(store) or Materialized()).or_serdes(self.inputs[0][0].key_serde)
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
            return builder, SessionStoreGetter(store), session_serde(keep.key_serde), windows.gap + windows.grace
        builder = keep.window(store, windows.size, windows.retention, False)
        return builder, WindowStoreGetter(store), windowed_serde(keep.key_serde, windows.size), windows.grace

    def _operator(
        self, store: str, initializer: Callable[[], Any], aggregator: Any, merger: Any
    ) -> Callable[[bool], Operator]:
        windows = self.windows
        if windows is None:
            return lambda send_old: Aggregate(store, initializer, aggregator, send_old)
        if isinstance(windows, SessionWindows):
            return lambda send_old: SessionAggregate(store, windows, initializer, aggregator, merger, False, send_old)
        return lambda send_old: window_operator(store, windows, initializer, aggregator, False, send_old)


def _writer(
    step: str, store: StoreBuilder, make: Callable[[bool], Operator], table: AggregateTable
) -> Callable[[Topology, tuple[str, ...]], None]:
    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.add_operator(step, make(table.send_old), *parents)
        topology.add_state_store(store, step)

    return write
