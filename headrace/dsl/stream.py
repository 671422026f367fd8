"""`KStream`: a stream of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headrace.dsl import joins
from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, materialized
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
from headrace.operators.table import TableSource
from headrace.operators.windows import JoinWindows
from headrace.serdes import Serde, as_serde
from headrace.topology.nodes import Operator
from headrace.topology.topology import Topology

if TYPE_CHECKING:
    from headrace.dsl.grouped import GroupedStream
    from headrace.dsl.table import GlobalKTable, KTable

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
Predicate = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class KStream(Generic[K, V]):
    """A stream of records: each is a fact of its own.

    Made by `StreamsBuilder.stream`; every call adds a step and gives a new stream. A step that changes the key makes a
    later grouping, join or `to_table` repartition.
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

        Stateless; never repartitions; the predicate sees null keys and values.
        """
        return self._keep(self._step("KSTREAM-FILTER-", name, Filter(_callable(predicate, "filter"))))

    def filter_not(self, predicate: Predicate, *, name: str | None = None) -> KStream[K, V]:
        """Drop the records for which `predicate(key, value)` holds.

        Stateless; never repartitions; the predicate sees null keys and values.
        """
        return self._keep(self._step("KSTREAM-FILTER-", name, Filter(_callable(predicate, "filter_not"), negated=True)))

    def map(self, mapper: Callable[[K, V], tuple[K2, V2]], *, name: str | None = None) -> KStream[K2, V2]:
        """Turn each record into the pair that `mapper(key, value)` gives.

        Stateless; changes the key; the mapper sees null keys and values.
        """
        return self._rekey(self._step("KSTREAM-MAP-", name, Map(_callable(mapper, "map"))), None)

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[K2, V2]]], *, name: str | None = None
    ) -> KStream[K2, V2]:
        """Turn each record into the pairs that `mapper(key, value)` gives.

        Stateless; changes the key; the mapper sees null keys and values.
        """
        return self._rekey(self._step("KSTREAM-FLATMAP-", name, FlatMap(_callable(mapper, "flat_map"))), None)

    def select_key(self, mapper: Callable[[K, V], K2], *, name: str | None = None) -> KStream[K2, V]:
        """Give each record the key that `mapper(key, value)` gives.

        Stateless; changes the key; the mapper sees null keys and values.
        """
        operator = SelectKey(_callable(mapper, "select_key"))
        return self._rekey(self._step("KSTREAM-KEY-SELECT-", name, operator), self.value_serde)

    def map_values(
        self, mapper: Callable[..., V2], *, with_key: bool = False, name: str | None = None
    ) -> KStream[K, V2]:
        """Give each record the value that `mapper(value)` gives (`mapper(key, value)` with `with_key`).

        Stateless; keeps the key; the mapper sees null values.
        """
        operator = MapValues(_callable(mapper, "map_values"), with_key)
        return self._revalue(self._step("KSTREAM-MAPVALUES-", name, operator))

    def flat_map_values(
        self, mapper: Callable[..., Iterable[V2]], *, with_key: bool = False, name: str | None = None
    ) -> KStream[K, V2]:
        """Turn each record into one for every value that `mapper(value)` gives, all of the same key.

        Stateless; keeps the key; the mapper sees null values.
        """
        operator = FlatMapValues(_callable(mapper, "flat_map_values"), with_key)
        return self._revalue(self._step("KSTREAM-FLATMAPVALUES-", name, operator))

    def peek(self, action: Callable[[K, V], Any], *, name: str | None = None) -> KStream[K, V]:
        """Call `action(key, value)` for its effect and pass every record on.

        Stateless; never repartitions. What the action does may be done again when a batch is repeated.
        """
        return self._keep(self._step("KSTREAM-PEEK-", name, Peek(_callable(action, "peek"))))

    def for_each(self, action: Callable[[K, V], Any], *, name: str | None = None) -> None:
        """Call `action(key, value)` for its effect; nothing comes after it."""
        self._step("KSTREAM-FOREACH-", name, Peek(_callable(action, "for_each")))

    def print(self, label: str | None = None, *, name: str | None = None) -> None:
        """Print every record as `[label]: key, value`; nothing comes after it."""
        text = self.name if label is None else label
        self._step("KSTREAM-PRINTER-", name, Peek(lambda key, value: print(f"[{text}]: {key}, {value}")))

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Put the records of both streams into one, in no particular order between them.

        Stateless; never repartitions by itself.
        """
        _same_builder(self, other, "merge")
        step = self.graph.new_name("KSTREAM-MERGE-", name)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_operator(step, PassThrough(), *parents)

        node = self.graph.add(GraphNode(step, write), self.node, other.node)
        return KStream(step, None, None, self.sources | other.sources, self.rekeyed or other.rekeyed, node, self.graph)

    def split(
        self, branches: Mapping[str, Predicate], *, default: str | None = None, name: str | None = None
    ) -> dict[str, KStream[K, V]]:
        """Send each record to the branch of the first predicate that holds; `default` takes the rest, or it is dropped.

        Stateless; never repartitions; predicates see null keys and values.
        """
        if not branches:
            raise TopologyError("split: expected at least one branch, got none")
        if default is not None and default in branches:
            raise TopologyError(f"split: the default branch needs a name of its own, got {default!r} twice")
        splitter = self.graph.new_name("KSTREAM-BRANCH-", name)
        labels = [*branches, *([] if default is None else [default])]
        steps = [splitter + label for label in labels]
        operator = Branch(tuple(_callable(test, "split") for test in branches.values()), tuple(steps))

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
        """Write every record to a topic, or to the one that `topic(key, value, record_context)` names.

        `partitioner(topic, key, value, partitions)` gives a partition, several, or None for the default by key.
        """
        step = self.graph.new_name("KSTREAM-SINK-", name)
        keys, values = key_serde or self.key_serde, value_serde or self.value_serde

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_sink(step, topic, *parents, key_serde=keys, value_serde=values, partitioner=partitioner)

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
        """Write the records to an internal topic and go on from there.

        Records without a key are dropped, unless a left or outer join comes later.
        """
        if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
            raise TopologyError(f"repartition: expected at least 1 partition, got {partitions!r}")
        prefix = self.graph.new_name("KSTREAM-REPARTITION-") if name is None else name
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
    ) -> KTable[K, V]:
        """Take the records as updates of a table.

        Stateful when the table is needed later or has a store; repartitions when the key was changed; drops null keys;
        a null value deletes.
        """
        from headrace.dsl.table import KTable

        graph = self.graph
        step = graph.new_name("KSTREAM-TOTABLE-", name)
        keep = (materialized(store) or Materialized()).or_serdes(
            _serde(key_serde) or self.key_serde, _serde(value_serde) or self.value_serde
        )
        store_name = keep.name or graph.new_store_name("KSTREAM-TOTABLE-")
        table = SourceTable(keep.key_value(store_name), kept=keep.name is not None)
        above, sources = self.node, self.sources
        if self.rekeyed:
            above = graph.add(repartition_node(graph, step, keep.key_serde, keep.value_serde), self.node)
            sources = frozenset([above.name])

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            write_source_table(topology, step, table, parents)

        node = graph.add(GraphNode(step, write, versioned=keep.history_retention is not None), above)
        return KTable(step, keep.key_serde, keep.value_serde, sources, keep.name, table, node, graph)

    # -- grouping ---------------------------------------------------------------------------------------------------

    def group_by_key(
        self,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> GroupedStream[K, V]:
        """Group the records by their key; repartitions when the key was changed."""
        from headrace.dsl.grouped import GroupedStream

        keys, values = _serde(key_serde) or self.key_serde, _serde(value_serde) or self.value_serde
        return GroupedStream(self.name, keys, values, self.sources, self.rekeyed, name, self.node, self.graph)

    def group_by(
        self,
        mapper: Callable[[K, V], K2],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        name: str | None = None,
    ) -> GroupedStream[K2, V]:
        """Group the records by the key that `mapper(key, value)` gives; repartitions."""
        from headrace.dsl.grouped import GroupedStream

        node = self._step("KSTREAM-KEY-SELECT-", name, SelectKey(_callable(mapper, "group_by")))
        values = _serde(value_serde) or self.value_serde
        return GroupedStream(node.name, _serde(key_serde), values, self.sources, True, name, node, self.graph)

    # -- joins ------------------------------------------------------------------------------------------------------

    def join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
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
        """Join each record with what the other side has for its key, by `joiner(left, right)`.

        With a stream: records of both within `window` of each other. With a table: its current row. With a global
        table: its row for `key(key, value)`. Stateful with a stream; repartitions (not for a global table) when the key
        was changed; drops null keys and values.
        """
        return joins.join(
            self, other, joiner, "join", window, key, with_key, key_serde, value_serde, other_value_serde, name
        )

    def left_join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
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
        """Join as `join` does, and give each record without a match a result with None for the other side.

        With a stream, that result comes when the window has closed. A null key is joined with None; a null value is
        dropped.
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
        """Join two streams, and give the records of both sides without a match a result with None for the other."""
        return joins.join(
            self, other, joiner, "outer_join", window, None, with_key, key_serde, value_serde, other_value_serde, name
        )

    # -- the Processor API ------------------------------------------------------------------------------------------

    def process(self, supplier: Callable[[], Any], *stores: str, name: str | None = None) -> KStream[Any, Any]:
        """Run a `Processor` of your own, made by `supplier()` for each task, with access to the named stores.

        May change the key: a later grouping or join repartitions.
        """
        return self._rekey(self._processor("KSTREAM-PROCESSOR-", supplier, stores, name, fixed_key=False), None)

    def process_values(self, supplier: Callable[[], Any], *stores: str, name: str | None = None) -> KStream[K, Any]:
        """Run a `FixedKeyProcessor` of your own, made by `supplier()` for each task, with the named stores."""
        return self._revalue(self._processor("KSTREAM-PROCESSVALUES-", supplier, stores, name, fixed_key=True))

    def _processor(
        self, prefix: str, supplier: Callable[[], Any], stores: tuple[str, ...], name: str | None, *, fixed_key: bool
    ) -> GraphNode:
        step = self.graph.new_name(prefix) if name is None else name
        _callable(supplier, "process")

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


def write_source_table(topology: Topology, step: str, table: SourceTable, parents: tuple[str, ...]) -> None:
    """Write the step that takes a stream of updates as a table, with its store if it is kept."""
    store = table.store if table.kept else None
    topology.add_operator(step, TableSource(None if store is None else store.name, table.send_old), *parents)
    if store is not None:
        topology.add_state_store(store, step)


def _callable(function: Any, what: str) -> Any:
    if not callable(function):
        raise TopologyError(f"{what}: expected a function, got {type(function).__name__} ({function!r})")
    return function


def _serde(serde: Any) -> Serde[Any] | None:
    return None if serde is None else as_serde(serde)


def _same_builder(one: Any, other: Any, what: str) -> None:
    if one.graph is not other.graph:
        raise TopologyError(f"{what}: both sides must come from the same StreamsBuilder")
