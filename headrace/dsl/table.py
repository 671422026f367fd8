"""`KTable` and `GlobalKTable`: the latest value of every key.

Tests: `tests/operators/test_table.py`, `test_suppress.py` and `test_table_join.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace.dsl import foreign_key_join, grouped_table, joins
from headrace.dsl import stream as streams
from headrace.dsl.graph import Graph, GraphNode, find_grace
from headrace.dsl.materialized import Materialized, materialized
from headrace.dsl.table_steps import JoinTable, MappedTable, SuppressTable, TableStep
from headrace.errors import TopologyError
from headrace.operators.suppress import UNBOUNDED, Suppress, Suppressed
from headrace.operators.table import TableFilter, TableMapValues, ToStream
from headrace.operators.table_aggregate import Regrouping
from headrace.operators.table_join import TableJoinMerge, TableTableJoinSide
from headrace.operators.value_getters import Getter, JoinGetter, StoreGetter
from headrace.serdes import Serde
from headrace.state.builders import suppress_buffer
from headrace.topology.argument_checks import check_function, check_name, check_optional_function, check_serdes
from headrace.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")
VR = TypeVar("VR")


@dataclass(frozen=True, eq=False)
class KTable(Generic[K, V]):
    """The latest value of every key. A record is an update of its key's row. A null value deletes the row.

    `StreamsBuilder.table`, aggregations and joins make one. Every call adds a step and returns a new table.
    `queryable_store_name` is the name of the store to read the table from outside; None if it has no name.

    >>> builder = StreamsBuilder()
    >>> counts = builder.stream("in").group_by_key().count(store="counts")
    >>> counts.queryable_store_name
    'counts'
    >>> counts.filter(lambda key, count: count > 1).to_stream().to("out")
    >>> run(builder, [("a", "x", 0), ("a", "y", 5), ("b", "z", 6)])
    [('a', 2, 5)]
    """

    name: str
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    sources: frozenset[str]
    queryable_store_name: str | None
    """The store to read the table from outside; None when it has no name."""
    step: TableStep
    node: GraphNode
    graph: Graph

    def filter(
        self, predicate: Callable[[K, V], Any], *, store: str | Materialized | None = None, name: str | None = None
    ) -> KTable[K, V]:
        """Keep the rows for which `predicate(key, value)` holds. The others are deleted downstream.

        Stateless unless it has a store. Never repartitions. The predicate is not called for deletes. If the table above
        is kept, a delete goes downstream only for a row that passed before. Otherwise it goes downstream for every row
        that does not pass.

        >>> builder = StreamsBuilder()
        >>> builder.table("in", store="all").filter(lambda key, value: value > 5).to_stream().to("out")
        >>> run(builder, [("a", 1, 0), ("a", 9, 1), ("a", 2, 2), ("a", 3, 3)])
        [('a', 9, 1), ('a', None, 2)]
        """
        return self._filter(predicate, False, store, name)

    def filter_not(
        self, predicate: Callable[[K, V], Any], *, store: str | Materialized | None = None, name: str | None = None
    ) -> KTable[K, V]:
        """Drop the rows for which `predicate(key, value)` holds.

        Stateless unless it has a store. Never repartitions. The predicate is not called for deletes.

        >>> builder = StreamsBuilder()
        >>> builder.table("in").filter_not(lambda key, value: value > 5, store="small").to_stream().to("out")
        >>> run(builder, [("a", 1, 0), ("a", 9, 1), ("a", 10, 2)])
        [('a', 1, 0), ('a', None, 1)]
        """
        return self._filter(predicate, True, store, name)

    def _filter(
        self, predicate: Callable[[K, V], Any], negated: bool, store: str | Materialized | None, name: str | None
    ) -> KTable[K, V]:
        what = "filter_not" if negated else "filter"
        check_function(predicate, what)
        keep = self._materialized(store, what, "KTABLE-FILTER-", self.value_serde)
        step = self.graph.new_name("KTABLE-FILTER-", name)
        builder = None if keep is None or keep.name is None else keep.key_value(keep.name)

        def passing(key: Any, value: Any) -> Any:
            return value if bool(predicate(key, value)) is not negated else None

        table = MappedTable(self.step, passing, builder, send_old=self.step.enable_old_values(False))

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            store_name = None if builder is None else builder.name
            operator = TableFilter(predicate, negated, store_name, table.send_old, node.parents[0].is_versioned())
            topology.add_operator(step, operator, *parents)
            if builder is not None:
                topology.add_step_store(builder, step)

        node = GraphNode(step, write, versioned=_versioned(keep))
        value_serde = self.value_serde if keep is None else keep.value_serde
        return self._derived(step, node, table, keep, value_serde)

    def map_values(
        self,
        mapper: Callable[..., V2],
        *,
        with_key: bool = False,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V2]:
        """Give each row the value that `mapper(value)` returns (`mapper(key, value)` with `with_key`).

        Stateless unless it has a store. Never repartitions. The mapper is not called for deletes. A mapper that returns
        None deletes the row.

        >>> builder = StreamsBuilder()
        >>> builder.table("in").map_values(lambda value: value * 2).to_stream().to("out")
        >>> run(builder, [("a", 1, 0), ("a", None, 1)])
        [('a', 2, 0), ('a', None, 1)]
        """
        check_function(mapper, "map_values")
        keep = self._materialized(store, "map_values", "KTABLE-MAPVALUES-", None)
        step = self.graph.new_name("KTABLE-MAPVALUES-", name)
        builder = None if keep is None or keep.name is None else keep.key_value(keep.name)
        keyed = mapper if with_key else lambda key, value: mapper(value)
        table = MappedTable(self.step, keyed, builder)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            store_name = None if builder is None else builder.name
            topology.add_operator(step, TableMapValues(keyed, store_name, table.send_old), *parents)
            if builder is not None:
                topology.add_step_store(builder, step)

        node = GraphNode(step, write, versioned=_versioned(keep))
        return self._derived(step, node, table, keep, None if keep is None else keep.value_serde)

    def to_stream(
        self, key: Callable[[K, V], Any] | None = None, *, name: str | None = None
    ) -> streams.KStream[Any, V]:
        """Turn the updates into a stream. If `key` is given, `key(key, value)` returns the new key.

        Stateless. With `key`, a later grouping or join repartitions. Deletes are records with the value None.

        >>> builder = StreamsBuilder()
        >>> builder.table("in").to_stream(lambda key, value: key.upper()).to("out")
        >>> run(builder, [("a", 1, 0), ("a", None, 1)])
        [('A', 1, 0), ('A', None, 1)]
        """
        check_optional_function(key, "to_stream, key")
        step = self.graph.new_name("KTABLE-TOSTREAM-", name)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, ToStream(), *parents)

        node = self.graph.add(GraphNode(step, write, versioned=False), self.node)
        stream: streams.KStream[Any, V] = streams.KStream(
            step, self.key_serde, self.value_serde, self.sources, False, node, self.graph
        )
        return stream if key is None else stream.select_key(key)

    def suppress(self, suppressed: Suppressed, *, name: str | None = None) -> KTable[K, V]:
        """Hold back updates: until their window closes, or for a time.

        Stateful. Never repartitions. Only updates that reach this step move its stream time, so nothing comes out until
        a later update arrives.

        >>> builder = StreamsBuilder()
        >>> counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).count()
        >>> counts.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 1), ("a", "y", 2), ("a", "z", 12)]):
        ...     print(*result)
        [a@0/10] 2 2
        """
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(
                "suppress: expected Suppressed.until_window_closes(...) or Suppressed.until_time_limit(...), "
                f"got {type(suppressed).__name__} ({suppressed!r})"
            )
        if self.node.is_versioned():
            raise TopologyError("suppress: a versioned table cannot be suppressed. Drop history_retention above it")
        graph = self.graph
        step = graph.new_name("KTABLE-SUPPRESS-") if name is None else check_name(name, "suppress, name")
        wait = suppressed.wait
        window_closes = wait is None
        if wait is None:
            wait = find_grace(self.node, step)
        store = graph.new_store_name("KTABLE-SUPPRESS-") if name is None else f"{name}-store"
        limits = suppressed.buffer
        builder = suppress_buffer(store, self.key_serde, self.value_serde, count_bytes=limits.bytes < UNBOUNDED)
        self.step.enable_old_values(True)
        operator = Suppress(
            store, wait, window_closes, limits.records, limits.bytes, emits_early=limits.emits_early is not False
        )

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, operator, *parents)
            topology.add_step_store(builder, step)

        node = graph.add(GraphNode(step, write, versioned=False), self.node)
        table = SuppressTable(self.step, store)
        return KTable(step, self.key_serde, self.value_serde, self.sources, None, table, node, graph)

    def group_by(
        self,
        mapper: Callable[[K, V], tuple[Any, Any]],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> grouped_table.GroupedTable[Any, Any]:
        """Group the rows by the (key, value) pair that `mapper(key, value)` returns. Always repartitions.

        An update removes the old row from its group and adds the new row to its group. A row whose new key is null is
        in no group. The mapper is not called for deletes.

        >>> builder = StreamsBuilder()
        >>> users = builder.table("in")
        >>> users.group_by(lambda user, city: (city, user)).count().to_stream().to("out")
        >>> run(builder, [("ann", "Rome", 0), ("bob", "Rome", 1), ("ann", "Oslo", 2)])
        [('Rome', 1, 0), ('Rome', 2, 1), ('Rome', 1, 2), ('Oslo', 1, 2)]
        """
        check_function(mapper, "group_by")
        keys, values = check_serdes(key_serde, value_serde, "group_by")
        step = self.graph.new_name("KTABLE-SELECT-", name)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, Regrouping(mapper), *parents)

        node = self.graph.add(GraphNode(step, write), self.node)
        self.step.enable_old_values(True)
        return grouped_table.GroupedTable(keys, values, name, node, self.graph)

    def join(
        self,
        other: KTable[Any, Any],
        joiner: Callable[..., VR],
        *,
        foreign_key: Callable[..., Any] | None = None,
        with_key: bool = False,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Join with another table by key, or by the key that `foreign_key(value)` returns.

        Stateful: both tables are kept. A join by key needs co-partitioned topics; a join by foreign key repartitions as
        needed. A delete on either side deletes the result. `with_key=True` makes it `joiner(key, left, right)`.

        >>> builder = StreamsBuilder()
        >>> names = builder.table("names")
        >>> names.join(builder.table("cities"), lambda name, city: f"{name}, {city}").to_stream().to("out")
        >>> run(builder, [("names", "u1", "Ann", 0), ("cities", "u1", "Rome", 5), ("names", "u1", None, 6)])
        [('u1', 'Ann, Rome', 5), ('u1', None, 6)]

        By foreign key, an update of one row on the right updates every row that refers to it:

        >>> builder = StreamsBuilder()
        >>> users, cities = builder.table("users"), builder.table("cities")
        >>> home = users.join(cities, lambda user, city: city, foreign_key=lambda user: user["city"])
        >>> home.to_stream().to("out")
        >>> run(builder, [
        ...     ("users", "ann", {"city": "R"}, 0), ("users", "bob", {"city": "R"}, 1), ("cities", "R", "Rome", 5)
        ... ])
        [('ann', 'Rome', 5), ('bob', 'Rome', 5)]
        """
        return self._join("join", other, joiner, foreign_key, with_key, store, name)

    def left_join(
        self,
        other: KTable[Any, Any],
        joiner: Callable[..., VR],
        *,
        foreign_key: Callable[..., Any] | None = None,
        with_key: bool = False,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Join like `join`, and also output left rows without a match, with None for the other side.

        Stateful: both tables are kept. Only a delete on the left deletes the result.

        >>> builder = StreamsBuilder()
        >>> names = builder.table("names")
        >>> names.left_join(builder.table("cities"), lambda name, city: [name, city]).to_stream().to("out")
        >>> run(builder, [("names", "u1", "Ann", 0), ("cities", "u1", "Rome", 5), ("cities", "u1", None, 6)])
        [('u1', ['Ann', None], 0), ('u1', ['Ann', 'Rome'], 5), ('u1', ['Ann', None], 6)]
        """
        return self._join("left_join", other, joiner, foreign_key, with_key, store, name)

    def outer_join(
        self,
        other: KTable[K, Any],
        joiner: Callable[..., VR],
        *,
        with_key: bool = False,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Join by key, and also output rows of both tables without a match, with None for the other side.

        Stateful: both tables are kept. The result is deleted when neither side has a row any more.

        >>> builder = StreamsBuilder()
        >>> names = builder.table("names")
        >>> names.outer_join(builder.table("cities"), lambda name, city: [name, city]).to_stream().to("out")
        >>> run(builder, [("cities", "u1", "Rome", 0), ("names", "u1", "Ann", 5), ("cities", "u1", None, 6)])
        [('u1', [None, 'Rome'], 0), ('u1', ['Ann', 'Rome'], 5), ('u1', ['Ann', None], 6)]
        """
        return self._join("outer_join", other, joiner, None, with_key, store, name)

    def _join(
        self,
        kind: str,
        other: KTable[Any, Any],
        joiner: Callable[..., VR],
        foreign_key: Callable[..., Any] | None,
        with_key: bool,
        store: str | Materialized | None,
        name: str | None,
    ) -> KTable[K, VR]:
        if not isinstance(other, KTable):
            raise TopologyError(f"{kind} of a table: expected a KTable, got {type(other).__name__}")
        if other.graph is not self.graph:
            raise TopologyError(f"{kind}: both sides must come from the same StreamsBuilder")
        keyed = joins.with_key_first(joiner, with_key, kind)
        if foreign_key is not None:
            return foreign_key_join.join(self, other, keyed, foreign_key, kind == "left_join", store, name)
        graph = self.graph
        keep = materialized(store, kind)
        if keep is not None:
            keep = keep.or_serdes(self.key_serde)
        store_name = None if keep is None else keep.name or graph.new_store_name("KTABLE-MERGE-")
        merge = graph.new_name("KTABLE-MERGE-", name)
        sources = graph.copartition(merge, self.sources, other.sources)
        left_outer, right_outer = kind != "join", kind == "outer_join"
        if left_outer:
            self.step.enable_old_values(True)
        if right_outer:
            other.step.enable_old_values(True)
        left_step = graph.new_name("KTABLE-JOINTHIS-", name, "-join-this")
        right_step = graph.new_name("KTABLE-JOINOTHER-", name, "-join-other")
        left, right = self.step.getter(), other.step.getter()
        builder = None if keep is None or store_name is None else keep.key_value(store_name)
        view = JoinGetter(left, right, keyed, needs_left=not right_outer, needs_right=not left_outer)
        table = JoinTable(self.step, other.step, view, builder)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            send_old = table.send_old
            this = TableTableJoinSide(right, keyed, not right_outer, not left_outer, send_old)
            that = TableTableJoinSide(
                left, lambda key, mine, found: keyed(key, found, mine), not left_outer, not right_outer, send_old
            )
            topology.add_operator(left_step, this, self.name)
            topology.add_operator(right_step, that, other.name)
            operator = TableJoinMerge(None if builder is None else builder.name, send_old)
            topology.add_operator(merge, operator, left_step, right_step)
            if builder is not None:
                topology.add_step_store(builder, merge)
            topology.connect(left_step, *right.stores)
            topology.connect(right_step, *left.stores)

        node = GraphNode(merge, write, versioned=keep is not None and keep.history_retention is not None)
        graph.add(node, self.node, other.node)
        keys = self.key_serde if keep is None else keep.key_serde
        values = None if keep is None else keep.value_serde
        return KTable(merge, keys, values, sources, None if builder is None else builder.name, table, node, graph)

    def _materialized(
        self, store: str | Materialized | None, what: str, prefix: str, value_serde: Serde[Any] | None
    ) -> Materialized | None:
        keep = materialized(store, what)
        if keep is None:
            return None
        if keep.name is None:
            self.graph.new_store_name(prefix)  # takes a number, as in Kafka Streams
        return keep.or_serdes(self.key_serde, value_serde)

    def _derived(
        self, step: str, node: GraphNode, table: TableStep, keep: Materialized | None, value_serde: Serde[Any] | None
    ) -> KTable[K, Any]:
        self.graph.add(node, self.node)
        keys = self.key_serde if keep is None else keep.key_serde
        name = None if keep is None else keep.name
        return KTable(step, keys, value_serde, self.sources, name, table, node, self.graph)


@dataclass(frozen=True, eq=False)
class GlobalKTable(Generic[K, V]):
    """A table of which every task holds a full copy, so joins with it need no co-partitioning.

    `StreamsBuilder.global_table` makes one. A stream joins it with `join` or `left_join` and `key=`. It has no steps of
    its own.

    >>> StreamsBuilder().global_table("prices", store="prices").queryable_store_name
    'prices'
    """

    store: str
    queryable_store_name: str | None
    """The store to read the table from outside; None when it has no name."""
    graph: Graph

    def getter(self) -> Getter:
        """Return how its current values are looked up."""
        return StoreGetter(self.store)


def _versioned(keep: Materialized | None) -> bool | None:
    return None if keep is None else keep.history_retention is not None
