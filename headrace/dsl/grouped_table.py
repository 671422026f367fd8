"""`GroupedTable`: rows of a table by another key, to be aggregated.

Tests: `tests/operators/test_table_aggregate.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from headrace.dsl import table as tables
from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, always_materialized
from headrace.dsl.repartitions import table_repartition_node
from headrace.dsl.table_steps import AggregateTable
from headrace.operators.table_aggregate import ChangeSerde, TableAggregate
from headrace.operators.value_getters import StoreGetter
from headrace.serdes import Long, Serde
from headrace.serdes.incomplete import IncompleteSerde
from headrace.topology.argument_checks import check_function
from headrace.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


@dataclass(frozen=True, eq=False)
class GroupedTable(Generic[K, V]):
    """Rows of a table grouped by another key.

    `KTable.group_by` makes one. An update removes the old row from its group and adds the new row to its group.

    >>> builder = StreamsBuilder()
    >>> by_city = builder.table("in").group_by(lambda user, city: (city, user))
    >>> by_city.count().to_stream().to("out")
    >>> run(builder, [("ann", "Rome", 0), ("bob", "Rome", 1), ("ann", "Oslo", 2)])
    [('Rome', 1, 0), ('Rome', 2, 1), ('Rome', 1, 2), ('Oslo', 1, 2)]
    """

    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    group_name: str | None
    node: GraphNode
    graph: Graph
    _repartitions: list[GraphNode] = field(default_factory=list, repr=False)

    def count(self, *, store: str | Materialized | None = None, name: str | None = None) -> tables.KTable[K, int]:
        """Count the rows of each group. An empty group stays, with the count 0.

        Stateful. Repartitions.

        >>> builder = StreamsBuilder()
        >>> builder.table("in").group_by(lambda user, city: (city, user)).count().to_stream().to("out")
        >>> run(builder, [("ann", "Rome", 0), ("ann", None, 1)])
        [('Rome', 1, 0), ('Rome', 0, 1)]
        """
        return self._aggregate(
            lambda: 0,
            lambda key, value, count: count + 1,
            lambda key, value, count: count - 1,
            "KTABLE-AGGREGATE-",
            always_materialized(store, "count", self.key_serde, Long),
            name,
        )

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> tables.KTable[K, V]:
        """Combine the rows of each group with `adder(aggregate, value)`. `subtractor(aggregate, value)` removes a row.

        Stateful. Repartitions. The first row of a group is its first aggregate.

        >>> import operator
        >>> builder = StreamsBuilder()
        >>> grouped = builder.table("in").group_by(lambda account, entry: (entry["bank"], entry["sum"]))
        >>> grouped.reduce(operator.add, operator.sub).to_stream().to("out")
        >>> run(builder, [("a1", {"bank": "b", "sum": 10}, 0), ("a2", {"bank": "b", "sum": 5}, 1), ("a1", None, 2)])
        [('b', 10, 0), ('b', 15, 1), ('b', 5, 2)]
        """
        check_function(adder, "reduce, adder")
        check_function(subtractor, "reduce, subtractor")
        return self._aggregate(
            None,
            lambda key, value, aggregate: adder(aggregate, value),
            lambda key, value, aggregate: subtractor(aggregate, value),
            "KTABLE-REDUCE-",
            always_materialized(store, "reduce", self.key_serde, self.value_serde),
            name,
        )

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A | None],
        subtractor: Callable[[K, V, A], A | None],
        *,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> tables.KTable[K, A]:
        """Fold the rows of each group with `adder(key, value, aggregate)`. `subtractor` removes an old row.

        Stateful. Repartitions. The subtractor is only called for a group that has an aggregate. An aggregate of None
        deletes the group.

        >>> builder = StreamsBuilder()
        >>> by_city = builder.table("in").group_by(lambda user, city: (city, user))
        >>> users = by_city.aggregate(
        ...     list,
        ...     lambda city, user, users: [*users, user],
        ...     lambda city, user, users: [other for other in users if other != user],
        ... )
        >>> users.to_stream().to("out")
        >>> run(builder, [("ann", "Rome", 0), ("bob", "Rome", 1), ("ann", "Oslo", 2)])
        [('Rome', ['ann'], 0), ('Rome', ['ann', 'bob'], 1), ('Rome', ['bob'], 2), ('Oslo', ['ann'], 2)]
        """
        check_function(initializer, "aggregate, initializer")
        check_function(adder, "aggregate, adder")
        check_function(subtractor, "aggregate, subtractor")
        keep = always_materialized(store, "aggregate", self.key_serde)
        return self._aggregate(initializer, adder, subtractor, "KTABLE-AGGREGATE-", keep, name)

    def _aggregate(
        self,
        initializer: Callable[[], Any] | None,
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
        prefix: str,
        keep: Materialized,
        name: str | None,
    ) -> tables.KTable[Any, Any]:
        graph = self.graph
        store = keep.name or graph.new_store_name("KTABLE-AGGREGATE-")
        sink = graph.new_name("KSTREAM-SINK-", name, "-sink")
        source = graph.new_name("KSTREAM-SOURCE-", name, "-source")
        step = graph.new_name(prefix, name)
        if not self._repartitions or self.group_name is None:
            inner = self.value_serde
            changes = IncompleteSerde(lambda fill_in: ChangeSerde(fill_in(inner, "value")), f"ChangeSerde({inner!r})")
            topic = f"{self.group_name or store}-repartition"
            node = table_repartition_node(topic, sink, source, self.key_serde, changes)
            self._repartitions[:] = [graph.add(node, self.node)]
        repartition = self._repartitions[0]
        table = AggregateTable(StoreGetter(store))

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            operator = TableAggregate(store, initializer, adder, subtractor, table.send_old)
            topology.add_operator(step, operator, *parents)
            topology.add_step_store(keep.key_value(store), step)

        node = graph.add(GraphNode(step, write, versioned=keep.history_retention is not None), repartition)
        sources = frozenset([repartition.name])
        return tables.KTable(step, keep.key_serde, keep.value_serde, sources, keep.name, table, node, graph)
