"""`CogroupedStream`: several grouped streams folded into one table.

Tests: `tests/operators/test_cogroup.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from headrace.dsl import grouped as groupings
from headrace.dsl import table as tables
from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, always_materialized
from headrace.dsl.table_steps import AggregateTable, CogroupTable
from headrace.dsl.windowings import Fold, check_windows, windowing_of
from headrace.errors import TopologyError
from headrace.operators.table import TablePassThrough
from headrace.operators.window_definitions import SessionWindows
from headrace.state.builders import StoreBuilder
from headrace.topology.argument_checks import check_function, check_optional_function
from headrace.topology.nodes import Operator
from headrace.topology.topology import Topology

K = TypeVar("K")
A = TypeVar("A")
_PREFIX = "COGROUPKSTREAM-AGGREGATE-"


@dataclass(frozen=True, eq=False)
class CogroupedStream(Generic[K, A]):
    """Several grouped streams. Each has its own aggregator, and all fold into the same aggregate per key.

    `GroupedStream.cogroup` makes one.

    >>> builder = StreamsBuilder()
    >>> orders, views = builder.stream("orders").group_by_key(), builder.stream("views").group_by_key()
    >>> seen = orders.cogroup(lambda key, order, seen: [*seen, order])
    >>> seen.cogroup(views, lambda key, view, seen: [*seen, view]).aggregate(list).to_stream().to("out")
    >>> run(builder, [("views", "ann", "/tea", 0), ("orders", "ann", "tea", 5)])
    [('ann', ['/tea'], 0), ('ann', ['/tea', 'tea'], 5)]
    """

    inputs: tuple[tuple[groupings.GroupedStream[Any, Any], Callable[[Any, Any, Any], Any]], ...]
    graph: Graph
    windows: Any = None

    def cogroup(
        self, grouped: groupings.GroupedStream[K, Any], aggregator: Callable[[K, Any, A], A | None]
    ) -> CogroupedStream[K, A]:
        """Add a grouped stream with its `aggregator(key, value, aggregate)`.

        >>> builder = StreamsBuilder()
        >>> ups, downs = builder.stream("ups").group_by_key(), builder.stream("downs").group_by_key()
        >>> level = ups.cogroup(lambda key, value, level: level + 1)
        >>> level.cogroup(downs, lambda key, value, level: level - 1).aggregate(lambda: 0).to_stream().to("out")
        >>> run(builder, [("ups", "a", "x", 0), ("ups", "a", "x", 1), ("downs", "a", "x", 2)])
        [('a', 1, 0), ('a', 2, 1), ('a', 1, 2)]
        """
        if not isinstance(grouped, groupings.GroupedStream):
            raise TopologyError(f"cogroup: expected a GroupedStream, got {type(grouped).__name__} ({grouped!r})")
        if grouped.graph is not self.graph:
            raise TopologyError("cogroup: both streams must come from the same StreamsBuilder")
        check_function(aggregator, "cogroup, aggregator")
        # As in Kafka Streams, adding a group again only replaces its aggregator.
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
        return replace(self, windows=check_windows(windows))

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        merger: Callable[[K, A, A], A] | None = None,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> tables.KTable[Any, A]:
        """Fold all inputs, starting from `initializer()`. Sessions need a `merger(key, left, right)`.

        Stateful. Inputs whose key was changed are repartitioned. With windows, each input has its own stream time. Null
        keys and values are treated as by `GroupedStream.aggregate`, or with windows by `TimeWindowedStream.aggregate`.

        >>> builder = StreamsBuilder()
        >>> one = builder.stream("in").group_by_key().cogroup(lambda key, value, text: text + value)
        >>> sessions = one.windowed_by(SessionWindows(10))
        >>> sessions.aggregate(str, merger=lambda key, left, right: left + right).to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 3), ("a", "y", 30)]):
        ...     print(*result)
        [a@3/3] x 3
        [a@30/30] y 30
        """
        check_function(initializer, "aggregate, initializer")
        check_optional_function(merger, "aggregate, merger")
        self._check_merger(merger)
        self._check_repartition_names()
        graph = self.graph
        keep = always_materialized(store, "aggregate", self.inputs[0][0].key_serde)
        store_name = keep.name or graph.new_store_name(_PREFIX)
        windowing = windowing_of(self.windows, shared=len(self.inputs) > 1)
        builder, getter = windowing.store(keep, store_name), windowing.getter(store_name)
        parents: list[GraphNode] = []
        sources: list[frozenset[str]] = []
        for grouped, _ in self.inputs:
            node = grouped.repartitioned(store_name) if grouped.rekeyed else grouped.node
            parents.append(node)
            sources.append(frozenset([node.name]) if grouped.rekeyed else grouped.sources)
        folded, nodes = [], []
        for number, ((_, aggregator), above) in enumerate(zip(self.inputs, parents, strict=True)):
            step = graph.new_name(_PREFIX, name, f"-cogroup-agg-{number}")
            table = AggregateTable(getter)
            operator = partial(windowing.operator, Fold(initializer, aggregator, merger), store_name)
            write = _writer(step, builder, operator, table)
            nodes.append(graph.add(GraphNode(step, write, grace=windowing.grace, versioned=False), above))
            folded.append(table)
        merge = graph.new_name("COGROUPKSTREAM-MERGE-", name, "-cogroup-merge")
        together = graph.copartition(merge, *sources)

        def write_merge(topology: Topology, above: tuple[str, ...]) -> None:
            topology.add_operator(merge, TablePassThrough(), *above)

        node = graph.add(GraphNode(merge, write_merge, versioned=False), *nodes)
        keys, values = windowing.key_serde(keep), keep.value_serde
        return tables.KTable(merge, keys, values, together, keep.name, CogroupTable(folded), node, graph)

    def _check_merger(self, merger: Callable[..., Any] | None) -> None:
        if isinstance(self.windows, SessionWindows) and merger is None:
            raise TopologyError("aggregate: sessions need merger=f(key, left, right) to merge two of them")
        if merger is not None and not isinstance(self.windows, SessionWindows):
            raise TopologyError("aggregate: a merger is for sessions only. Add windowed_by(SessionWindows(...))")

    def _check_repartition_names(self) -> None:
        unnamed = [grouped for grouped, _ in self.inputs if grouped.rekeyed and grouped.group_name is None]
        if len(unnamed) > 1:
            raise TopologyError(
                f"aggregate: {len(unnamed)} cogrouped streams need a repartition and have no name for it. "
                "Name them: group_by_key(name=...) or group_by(..., name=...)"
            )


def _writer(
    step: str, store: StoreBuilder, make: Callable[[bool], Operator], table: AggregateTable
) -> Callable[[Topology, tuple[str, ...]], None]:
    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.add_operator(step, make(table.send_old), *parents)
        topology.add_step_store(store, step)

    return write
