"""`KStream`: a stream of records.

Tests: `tests/operators/test_stateless.py` and, for grouping and joins, the other modules there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from headrace.dsl import grouped as groupings
from headrace.dsl import joins
from headrace.dsl import table as tables
from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, always_materialized
from headrace.dsl.repartitions import repartition_node
from headrace.dsl.table_steps import SourceTable
from headrace.errors import TopologyError
from headrace.operators.stateless import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    PassThrough,
    Peek,
    SelectKey,
)
from headrace.operators.window_definitions import JoinWindows
from headrace.serdes import Serde
from headrace.topology.argument_checks import (
    check_function,
    check_name,
    check_optional_function,
    check_serdes,
    check_supplier,
)
from headrace.topology.nodes import Operator
from headrace.topology.partitioners import partitioner_for
from headrace.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
Predicate = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class KStream(Generic[K, V]):
    """A stream of records, each of which is a fact of its own.

    `StreamsBuilder.stream` makes one. Every call adds a step and returns a new stream. After a step that changes the
    key, a later grouping, join or `to_table` repartitions.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").filter(lambda key, value: value > 1).map_values(lambda value: value * 10).to("out")
    >>> run(builder, [("a", 1, 0), ("b", 2, 5)])
    [('b', 20, 5)]
    """

    name: str
    key_serde: Serde[Any] | None
    value_serde: Serde[Any] | None
    sources: frozenset[str]
    rekeyed: bool
    node: GraphNode
    graph: Graph

    # -- stateless --------------------------------------------------------------------------------------------------

    def filter(self, predicate: Predicate, *, name: str | None = None) -> KStream[K, V]:
        """Keep the records for which `predicate(key, value)` holds.

        Stateless. Never repartitions. The predicate sees null keys and values.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").filter(lambda key, value: value > 1).to("out")
        >>> run(builder, [("a", 1, 0), ("b", 2, 5)])
        [('b', 2, 5)]
        """
        return self._keep(self._step("KSTREAM-FILTER-", name, Filter(check_function(predicate, "filter"))))

    def filter_not(self, predicate: Predicate, *, name: str | None = None) -> KStream[K, V]:
        """Drop the records for which `predicate(key, value)` holds.

        Stateless. Never repartitions. The predicate sees null keys and values.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").filter_not(lambda key, value: value is None).to("out")
        >>> run(builder, [("a", 1, 0), ("a", None, 5)])
        [('a', 1, 0)]
        """
        return self._keep(
            self._step("KSTREAM-FILTER-", name, Filter(check_function(predicate, "filter_not"), negated=True))
        )

    def map(self, mapper: Callable[[K, V], tuple[K2, V2]], *, name: str | None = None) -> KStream[K2, V2]:
        """Turn each record into the pair that `mapper(key, value)` returns.

        Stateless. Changes the key, so a later grouping or join repartitions. The mapper sees null keys and values.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").map(lambda key, value: (value["user"], value["page"])).to("out")
        >>> run(builder, [(None, {"user": "ann", "page": "/tea"}, 3)])
        [('ann', '/tea', 3)]
        """
        return self._rekey(self._step("KSTREAM-MAP-", name, Map(check_function(mapper, "map"))), None)

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[K2, V2]]], *, name: str | None = None
    ) -> KStream[K2, V2]:
        """Turn each record into the pairs that `mapper(key, value)` returns.

        Stateless. Changes the key, so a later grouping or join repartitions. The mapper sees null keys and values.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").flat_map(lambda key, line: [(word, len(word)) for word in line.split()]).to("out")
        >>> run(builder, [(None, "to be", 3), (None, "", 4)])
        [('to', 2, 3), ('be', 2, 3)]
        """
        return self._rekey(self._step("KSTREAM-FLATMAP-", name, FlatMap(check_function(mapper, "flat_map"))), None)

    def select_key(self, mapper: Callable[[K, V], K2], *, name: str | None = None) -> KStream[K2, V]:
        """Give each record the key that `mapper(key, value)` returns.

        Stateless. Changes the key, so a later grouping or join repartitions. The mapper sees null keys and values.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").select_key(lambda key, order: order["user"]).to("out")
        >>> run(builder, [("order-1", {"user": "ann"}, 3)])
        [('ann', {'user': 'ann'}, 3)]
        """
        operator = SelectKey(check_function(mapper, "select_key"))
        return self._rekey(self._step("KSTREAM-KEY-SELECT-", name, operator), self.value_serde)

    def map_values(
        self, mapper: Callable[..., V2], *, with_key: bool = False, name: str | None = None
    ) -> KStream[K, V2]:
        """Give each record the value that `mapper(value)` returns (`mapper(key, value)` with `with_key`).

        Stateless. Keeps the key. The mapper sees null values.

        >>> builder = StreamsBuilder()
        >>> words = builder.stream("in").map_values(str.upper)
        >>> words.map_values(lambda key, value: f"{key}: {value}", with_key=True).to("out")
        >>> run(builder, [("a", "tea", 0)])
        [('a', 'a: TEA', 0)]
        """
        operator = MapValues(check_function(mapper, "map_values"), with_key)
        return self._revalue(self._step("KSTREAM-MAPVALUES-", name, operator))

    def flat_map_values(
        self, mapper: Callable[..., Iterable[V2]], *, with_key: bool = False, name: str | None = None
    ) -> KStream[K, V2]:
        """Turn each record into several with the same key, one for each value that `mapper(value)` returns.

        `with_key=True` makes it `mapper(key, value)`. Stateless. Keeps the key. The mapper sees null values.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").flat_map_values(str.split).to("out")
        >>> run(builder, [("a", "to be", 0)])
        [('a', 'to', 0), ('a', 'be', 0)]
        """
        operator = FlatMapValues(check_function(mapper, "flat_map_values"), with_key)
        return self._revalue(self._step("KSTREAM-FLATMAPVALUES-", name, operator))

    def peek(self, action: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Call `action(key, value)` for its effect and pass every record on.

        Stateless. Never repartitions. The action sees null keys and values. A batch that is repeated calls
        the action again.

        >>> seen = []
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").peek(lambda key, value: seen.append(value)).to("out")
        >>> run(builder, [("a", 1, 0)])
        [('a', 1, 0)]
        >>> seen
        [1]
        """
        return self._keep(self._step("KSTREAM-PEEK-", name, Peek(check_function(action, "peek"))))

    def for_each(self, action: Callable[[K, V], Any], *, name: str | None = None) -> None:
        """Call `action(key, value)` for its effect. This ends the stream.

        Stateless. Never repartitions. The action sees null keys and values. A batch that is repeated calls
        the action again.

        >>> seen = []
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").for_each(lambda key, value: seen.append((key, value)))
        >>> run(builder, [("a", 1, 0)])
        []
        >>> seen
        [('a', 1)]
        """
        self._step("KSTREAM-FOREACH-", name, Peek(check_function(action, "for_each")))

    def print(self, label: str | None = None, *, name: str | None = None) -> None:
        """Print every record as `[label]: key, value`. This ends the stream.

        Stateless. Never repartitions. The default label is the stream's name.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").print("seen")
        >>> run(builder, [("a", 1, 0), (None, None, 5)])
        [seen]: a, 1
        [seen]: None, None
        []
        """
        text = self.name if label is None else label
        self._step("KSTREAM-PRINTER-", name, Peek(lambda key, value: print(f"[{text}]: {key}, {value}")))

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Merge the records of both streams into one stream, in no particular order between the two.

        Stateless. Never repartitions by itself. The result has no serdes of its own: give them to the next step, or the
        defaults are used.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").merge(builder.stream("more")).to("out")
        >>> run(builder, [("in", "a", 1, 0), ("more", "b", 2, 5)])
        [('a', 1, 0), ('b', 2, 5)]
        """
        if not isinstance(other, KStream):
            raise TopologyError(f"merge: expected a KStream, got {type(other).__name__} ({other!r})")
        if other.graph is not self.graph:
            raise TopologyError("merge: both sides must come from the same StreamsBuilder")
        step = self.graph.new_name("KSTREAM-MERGE-", name)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, PassThrough(), *parents)

        node = self.graph.add(GraphNode(step, write), self.node, other.node)
        return KStream(step, None, None, self.sources | other.sources, self.rekeyed or other.rekeyed, node, self.graph)

    def split(
        self, branches: Mapping[str, Predicate], *, default: str | None = None, name: str | None = None
    ) -> dict[str, KStream[K, V]]:
        """Send each record to the branch of the first predicate that holds. Without a `default`, drop the rest.

        Stateless. Never repartitions. Predicates see null keys and values.

        >>> builder = StreamsBuilder()
        >>> sizes = builder.stream("in").split({"small": lambda key, value: value < 10}, default="large")
        >>> sizes["small"].to("out")
        >>> sizes["large"].map_values(lambda value: f"{value} is large").to("out")
        >>> run(builder, [("a", 1, 0), ("b", 12, 5)])
        [('a', 1, 0), ('b', '12 is large', 5)]
        """
        if not isinstance(branches, Mapping):
            raise TopologyError(
                f"split: expected a dict of predicates by branch, such as {{'small': is_small}}, "
                f"got {type(branches).__name__} ({branches!r})"
            )
        if not branches:
            raise TopologyError("split: expected at least one branch, got none")
        if default is not None and default in branches:
            raise TopologyError(f"split: the default branch needs a name of its own, got {default!r} twice")
        splitter = self.graph.new_name("KSTREAM-BRANCH-", name)
        labels = [*branches, *([] if default is None else [default])]
        steps = [splitter + check_name(label, "split, branch") for label in labels]
        tests = tuple(check_function(test, f"split, branch '{label}'") for label, test in branches.items())
        operator = Branch(tests, tuple(steps))

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(splitter, operator, *parents)

        node = self.graph.add(GraphNode(splitter, write), self.node)
        return {label: self._keep(self._branch(step, node)) for label, step in zip(labels, steps, strict=True)}

    def _branch(self, step: str, splitter: GraphNode) -> GraphNode:
        self.graph.new_name(step)  # takes a number, as in Kafka Streams

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, PassThrough(), *parents)

        return self.graph.add(GraphNode(step, write), splitter)

    # -- topics -----------------------------------------------------------------------------------------------------

    def to(
        self,
        topic: str | Callable[[K, V, Any], str],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: Callable[[str, K, V, int], Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Write every record to a topic, or to the topic that `topic(key, value, record_context)` names.

        `partitioner(topic, key, value, partitions)` returns a partition, several, or None for the default by key. Null
        keys and values are written as null. `record_context` has `topic`, `partition`, `offset`, `timestamp` and
        `headers`.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to(lambda key, value, context: f"{key}-orders")
        >>> run(builder, [("tea", 1, 0), ("milk", 2, 5)], sink="tea-orders")
        [('tea', 1, 0)]
        """
        if not callable(topic):
            check_name(topic, "to, topic")
        check_optional_function(partitioner, "to, partitioner")
        key_serde, value_serde = check_serdes(key_serde, value_serde, "to")
        step = self.graph.new_name("KSTREAM-SINK-", name)
        keys, values = key_serde or self.key_serde, value_serde or self.value_serde
        chosen = partitioner or partitioner_for(keys)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_sink(step, topic, *parents, key_serde=keys, value_serde=values, partitioner=chosen)

        self.graph.add(GraphNode(step, write), self.node)

    def repartition(
        self,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitions: int | None = None,
        partitioner: Callable[[str, K, V, int], Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Write the records to an internal topic and read them back.

        Records without a key are dropped, unless a left or outer join comes later. Null values pass.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").repartition(partitions=4, name="by-user").to("out")
        >>> run(builder, [("a", 1, 0), (None, 2, 5)])
        [('a', 1, 0)]
        """
        if partitions is not None and (type(partitions) is not int or partitions < 1):
            raise TopologyError(f"repartition, partitions: expected a whole number of at least 1, got {partitions!r}")
        check_optional_function(partitioner, "repartition, partitioner")
        key_serde, value_serde = check_serdes(key_serde, value_serde, "repartition")
        if name is None:
            prefix = self.graph.new_name("KSTREAM-REPARTITION-")
        else:
            prefix = check_name(name, "repartition, name")
        keys, values = key_serde or self.key_serde, value_serde or self.value_serde
        node = repartition_node(self.graph, prefix, keys, values, partitions=partitions, partitioner=partitioner)
        self.graph.add(node, self.node)
        return KStream(node.name, keys, values, frozenset([node.name]), False, node, self.graph)

    def to_table(
        self,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> tables.KTable[K, V]:
        """Turn the stream into a table: each record is an update of its key's row.

        Stateful if the table has a store or a later step needs it. Repartitions if the key was changed. Drops null
        keys. A null value deletes the row.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to_table(store="latest").filter(lambda key, value: value > 1).to_stream().to("out")
        >>> run(builder, [("a", 1, 0), ("a", 2, 5), ("a", 1, 6)])
        [('a', 2, 5), ('a', None, 6)]
        """
        graph = self.graph
        step = graph.new_name("KSTREAM-TOTABLE-", name)
        keys, values = check_serdes(key_serde, value_serde, "to_table")
        keep = always_materialized(store, "to_table", keys or self.key_serde, values or self.value_serde)
        store_name = keep.name or graph.new_store_name("KSTREAM-TOTABLE-")
        table = SourceTable(keep.key_value(store_name), kept=keep.name is not None)
        above, sources = self.node, self.sources
        if self.rekeyed:
            above = graph.add(repartition_node(graph, step, keep.key_serde, keep.value_serde), self.node)
            sources = frozenset([above.name])

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            table.write(topology, step, *parents)

        node = graph.add(GraphNode(step, write, versioned=keep.history_retention is not None), above)
        return tables.KTable(step, keep.key_serde, keep.value_serde, sources, keep.name, table, node, graph)

    # -- grouping ---------------------------------------------------------------------------------------------------

    def group_by_key(
        self,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> groupings.GroupedStream[K, V]:
        """Group the records by their key. Repartitions if the key was changed.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by_key().count().to_stream().to("out")
        >>> run(builder, [("a", "x", 0), ("a", "y", 5)])
        [('a', 1, 0), ('a', 2, 5)]
        """
        if name is not None:
            check_name(name, "group_by_key, name")
        keys, values = check_serdes(key_serde, value_serde, "group_by_key")
        keys, values = keys or self.key_serde, values or self.value_serde
        return groupings.GroupedStream(self.name, keys, values, self.sources, self.rekeyed, name, self.node, self.graph)

    def group_by(
        self,
        mapper: Callable[[K, V], K2],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> groupings.GroupedStream[K2, V]:
        """Group the records by the key that `mapper(key, value)` returns. Repartitions.

        A record whose new key is null is dropped. The new key is written with `key_serde`, or the default.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").group_by(lambda key, order: order["item"]).count().to_stream().to("out")
        >>> run(builder, [("ann", {"item": "tea"}, 0), ("bob", {"item": "tea"}, 5)])
        [('tea', 1, 0), ('tea', 2, 5)]
        """
        node = self._step("KSTREAM-KEY-SELECT-", name, SelectKey(check_function(mapper, "group_by")))
        keys, values = check_serdes(key_serde, value_serde, "group_by")
        return groupings.GroupedStream(
            node.name, keys, values or self.value_serde, self.sources, True, name, node, self.graph
        )

    # -- joins ------------------------------------------------------------------------------------------------------

    def join(
        self,
        other: KStream[K, Any] | tables.KTable[K, Any] | tables.GlobalKTable[Any, Any],
        joiner: Callable[..., V2],
        *,
        window: JoinWindows | None = None,
        key: Callable[[K, V], Any] | None = None,
        with_key: bool = False,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        other_value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, V2]:
        """Join each record with the other side's value for its key, with `joiner(left, right)`.

        With a stream: records of both within `window` of each other. With a table: its current row. With a global
        table: its row for `key(key, value)`. `with_key=True` makes it `joiner(key, left, right)`. Stateful with a
        stream. Repartitions if the key was changed, but not for a global table. Drops null keys and values. A result of
        two streams has the larger of both timestamps. Any other result has the timestamp of the stream's record.

        >>> builder = StreamsBuilder()
        >>> clicks = builder.stream("clicks")
        >>> shown = builder.stream("shown")
        >>> shown.join(clicks, lambda ad, click: f"{ad} {click}", window=JoinWindows(10)).to("out")
        >>> run(builder, [("shown", "k", "tea", 0), ("clicks", "k", "yes", 7), ("clicks", "k", "late", 11)])
        [('k', 'tea yes', 7)]

        With a table:

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").join(builder.table("users"), lambda page, user: f"{user}: {page}").to("out")
        >>> run(builder, [("in", "u1", "/tea", 0), ("users", "u1", "Ann", 1), ("in", "u1", "/milk", 2)])
        [('u1', 'Ann: /milk', 2)]

        With a global table:

        >>> builder = StreamsBuilder()
        >>> users = builder.global_table("users")
        >>> visits = builder.stream("in")
        >>> visits.join(users, lambda visit, user: [user, visit], key=lambda key, visit: visit["by"]).to("out")
        >>> run(builder, [("users", "u1", "Ann", 0), ("in", "v7", {"by": "u1"}, 5)])
        [('v7', ['Ann', {'by': 'u1'}], 5)]
        """
        return joins.join(
            self, other, joiner, "join", window, key, with_key, key_serde, value_serde, other_value_serde, name
        )

    def left_join(
        self,
        other: KStream[K, Any] | tables.KTable[K, Any] | tables.GlobalKTable[Any, Any],
        joiner: Callable[..., V2],
        *,
        window: JoinWindows | None = None,
        key: Callable[[K, V], Any] | None = None,
        with_key: bool = False,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        other_value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, V2]:
        """Join like `join`, and also output records without a match, with None for the other side.

        With a stream, this output comes when the window has closed. A null key is joined with None. A null value is
        dropped.

        >>> builder = StreamsBuilder()
        >>> orders = builder.stream("orders")
        >>> paid = builder.stream("paid")
        >>> orders.left_join(paid, lambda order, payment: [order, payment], window=JoinWindows(10)).to("out")
        >>> run(builder, [("orders", "k", "tea", 0), ("orders", "m", "milk", 5), ("paid", "m", 3, 11)])
        [('k', ['tea', None], 0), ('m', ['milk', 3], 11)]

        With a table, the output comes at once:

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").left_join(builder.table("users"), lambda page, user: f"{user}: {page}").to("out")
        >>> run(builder, [("in", "u1", "/tea", 0), ("in", None, "/milk", 1)])
        [('u1', 'None: /tea', 0), (None, 'None: /milk', 1)]
        """
        return joins.join(
            self, other, joiner, "left_join", window, key, with_key, key_serde, value_serde, other_value_serde, name
        )

    def outer_join(
        self,
        other: KStream[K, Any],
        joiner: Callable[..., V2],
        *,
        window: JoinWindows | None = None,
        with_key: bool = False,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        other_value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> KStream[K, V2]:
        """Join two streams, and also output records of both sides without a match, with None for the other side.

        This output comes when the window has closed. A null key is joined with None. A null value is dropped. Stateful.
        Repartitions if the key was changed.

        >>> builder = StreamsBuilder()
        >>> left = builder.stream("left")
        >>> right = builder.stream("right")
        >>> left.outer_join(right, lambda one, other: [one, other], window=JoinWindows(10)).to("out")
        >>> run(builder, [("left", "k", "A", 0), ("right", "m", "x", 2), ("left", "z", "B", 20)])
        [('k', ['A', None], 0), ('m', [None, 'x'], 2)]
        """
        return joins.join(
            self, other, joiner, "outer_join", window, None, with_key, key_serde, value_serde, other_value_serde, name
        )

    # -- the Processor API ------------------------------------------------------------------------------------------

    def process(self, supplier: Callable[[], Any], *stores: str, name: str | None = None) -> KStream[Any, Any]:
        """Run your own `Processor` with the named stores. `supplier()` makes one for each task.

        May change the key: a later grouping or join repartitions. Sees null keys and values.

        >>> class FirstOnly(Processor):
        ...     def process(self, record):
        ...         seen = self.context.state_store("seen")
        ...         if seen.put_if_absent(record.key, True) is None:
        ...             self.context.forward(record)
        >>> builder = StreamsBuilder()
        >>> _ = builder.add_state_store(Stores.key_value("seen"))
        >>> builder.stream("in").process(FirstOnly, "seen").to("out")
        >>> run(builder, [("a", 1, 0), ("a", 2, 5), ("b", 3, 6)])
        [('a', 1, 0), ('b', 3, 6)]
        """
        return self._rekey(self._processor("KSTREAM-PROCESSOR-", supplier, stores, name, fixed_key=False), None)

    def process_values(self, supplier: Callable[[], Any], *stores: str, name: str | None = None) -> KStream[K, Any]:
        """Run your own `FixedKeyProcessor` with the named stores. `supplier()` makes one for each task.

        Keeps the key: a later grouping or join does not repartition. Sees null keys and values.

        >>> class Stamp(FixedKeyProcessor):
        ...     def process(self, record):
        ...         where = self.context.record_metadata
        ...         self.context.forward(record.with_value(f"{record.value} of {where.topic}"))
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").process_values(Stamp).to("out")
        >>> run(builder, [("a", "x", 0)])
        [('a', 'x of in', 0)]
        """
        return self._revalue(self._processor("KSTREAM-PROCESSVALUES-", supplier, stores, name, fixed_key=True))

    def _processor(
        self, prefix: str, supplier: Callable[[], Any], stores: tuple[str, ...], name: str | None, *, fixed_key: bool
    ) -> GraphNode:
        what = "process_values" if fixed_key else "process"
        check_supplier(supplier, what if name is None else f"{what} '{name}'")
        for store in stores:
            check_name(store, f"{what}, store")
        step = self.graph.new_name(prefix) if name is None else check_name(name, f"{what}, name")

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            add = topology.add_fixed_key_processor if fixed_key else topology.add_processor
            add(step, supplier, *parents)
            topology.connect(step, *stores)

        return self.graph.add(GraphNode(step, write), self.node)

    # -- handles ----------------------------------------------------------------------------------------------------

    def _step(self, prefix: str, name: str | None, operator: Operator) -> GraphNode:
        step = self.graph.new_name(prefix, name)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, operator, *parents)

        return self.graph.add(GraphNode(step, write), self.node)

    def _keep(self, node: GraphNode) -> KStream[K, V]:
        return KStream(node.name, self.key_serde, self.value_serde, self.sources, self.rekeyed, node, self.graph)

    def _revalue(self, node: GraphNode) -> KStream[K, Any]:
        return KStream(node.name, self.key_serde, None, self.sources, self.rekeyed, node, self.graph)

    def _rekey(self, node: GraphNode, value_serde: Serde[Any] | None) -> KStream[Any, Any]:
        return KStream(node.name, None, value_serde, self.sources, True, node, self.graph)
