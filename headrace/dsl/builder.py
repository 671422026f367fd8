"""`StreamsBuilder`: where a topology of the DSL begins.

Tests: the doctests here, `tests/operators` and `tests/topology/test_bad_arguments.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, always_materialized
from headrace.dsl.stream import KStream
from headrace.dsl.table import GlobalKTable, KTable
from headrace.dsl.table_steps import SourceTable
from headrace.errors import TopologyError
from headrace.operators.table import TableSource
from headrace.serdes import Serde
from headrace.state.builders import StoreBuilder
from headrace.topology.argument_checks import check_name, check_offset_reset, check_serdes
from headrace.topology.nodes import SourceNode
from headrace.topology.timestamps import TimestampExtractor
from headrace.topology.topology import Topology


class StreamsBuilder:
    """Begin streams and tables here, then `build` the topology.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").map_values(str.upper).to("out")
    >>> run(builder, [("a", "tea", 0)])
    [('a', 'TEA', 0)]
    """

    def __init__(self) -> None:
        self._graph = Graph()

    def stream(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        name: str | None = None,
    ) -> KStream[Any, Any]:
        """Read a topic, several topics, or all topics that match a pattern as a stream.

        Null keys and values pass unchanged.

        >>> import re
        >>> builder = StreamsBuilder()
        >>> builder.stream(re.compile("orders-.*"), value_serde=serdes.Long).to("out")
        >>> run(builder, [("orders-eu", "a", 1, 0), ("orders-us", "b", 2, 5)])
        [('a', 1, 0), ('b', 2, 5)]

        The time of a record can come from its value:

        >>> builder = StreamsBuilder()
        >>> builder.stream("in", timestamp_extractor=lambda record, partition_time: record.value["at"]).to("out")
        >>> run(builder, [("a", {"at": 42}, 0)])
        [('a', {'at': 42}, 42)]
        """
        read: tuple[str | re.Pattern[str], ...]
        if isinstance(topics, str | re.Pattern):
            read = (topics,)
        elif isinstance(topics, Iterable) and not isinstance(topics, Mapping | bytes):
            read = tuple(topics)
        else:
            raise TopologyError(
                f"stream: expected a topic, several topics or a pattern, got {type(topics).__name__} ({topics!r})"
            )
        if not read:
            raise TopologyError("stream: expected at least one topic, got none")
        for topic in read:
            if not isinstance(topic, re.Pattern):
                check_name(topic, "stream, topic")
        step = self._graph.new_name("KSTREAM-SOURCE-", name)
        keys, values = check_serdes(key_serde, value_serde, "stream")

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_source(
                step,
                *read,
                key_serde=keys,
                value_serde=values,
                timestamp_extractor=timestamp_extractor,
                offset_reset=offset_reset,
            )

        node = self._graph.add(GraphNode(step, write, topics=read))
        return KStream(step, keys, values, frozenset([step]), False, node, self._graph)

    def table(
        self,
        topic: str,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """Read a topic as a table: the latest value of every key.

        The table is kept if it has a store or if a later step needs it. Null keys are dropped. A null value deletes the
        row.

        >>> builder = StreamsBuilder()
        >>> builder.table("in", store="latest").to_stream().to("out")
        >>> run(builder, [("a", 1, 0), (None, 2, 5), ("a", None, 6)])
        [('a', 1, 0), ('a', None, 6)]
        """
        check_name(topic, "table, topic")
        graph = self._graph
        keys, values = check_serdes(key_serde, value_serde, "table")
        keep = always_materialized(store, "table", keys, values)
        store_name = keep.name or graph.new_store_name(f"{topic}-")
        source = graph.new_name("KSTREAM-SOURCE-", name, "-source")
        step = graph.new_name("KTABLE-SOURCE-", name)
        table = SourceTable(keep.key_value(store_name), kept=keep.name is not None)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_source(
                source,
                topic,
                key_serde=keep.key_serde,
                value_serde=keep.value_serde,
                timestamp_extractor=timestamp_extractor,
                offset_reset=offset_reset,
            )
            table.write(topology, step, source)

        node = graph.add(GraphNode(step, write, versioned=keep.history_retention is not None))
        sources = frozenset([source])
        return KTable(step, keep.key_serde, keep.value_serde, sources, keep.name, table, node, graph)

    def global_table(
        self,
        topic: str,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> GlobalKTable[Any, Any]:
        """Read a topic as a table of which every task holds a full copy.

        A stream joins it by any key, without repartitioning. Null keys are dropped. A null value deletes the row. The
        topic is always read from the beginning, as in Kafka Streams, even if `offset_reset` says otherwise.

        >>> builder = StreamsBuilder()
        >>> prices = builder.global_table("prices")
        >>> orders = builder.stream("in")
        >>> orders.join(prices, lambda order, price: price * order["n"], key=lambda key, order: order["of"]).to("out")
        >>> run(builder, [("prices", "tea", 3, 0), ("in", "o1", {"of": "tea", "n": 2}, 5)])
        [('o1', 6, 5)]
        """
        check_name(topic, "global_table, topic")
        check_offset_reset(offset_reset, "global_table")
        graph = self._graph
        keys, values = check_serdes(key_serde, value_serde, "global_table")
        keep = always_materialized(store, "global_table", keys, values)
        if keep.history_retention is not None:
            raise TopologyError("global_table: a global table cannot keep versions. Drop history_retention")
        store_name = keep.name or graph.new_store_name(f"{topic}-")
        source = graph.new_name("KSTREAM-SOURCE-", name, "-source")
        step = graph.new_name("KTABLE-SOURCE-", name)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            reader = SourceNode(source, (topic,), None, keep.key_serde, keep.value_serde, timestamp_extractor)
            topology.add_global_table(reader, step, TableSource(store_name, False), keep.key_value(store_name))

        graph.add(GraphNode(step, write, versioned=False))
        return GlobalKTable(store_name, keep.name, graph)

    def add_state_store(self, store_builder: StoreBuilder) -> StreamsBuilder:
        """Add a store for processors. To connect it, name it in `process`.

        >>> class Running(Processor):
        ...     def process(self, record):
        ...         sums = self.context.state_store("sums")
        ...         sums.put(record.key, (sums.get(record.key) or 0) + record.value)
        ...         self.context.forward(record.with_value(sums.get(record.key)))
        >>> builder = StreamsBuilder()
        >>> _ = builder.add_state_store(Stores.key_value("sums", serdes.String, serdes.Long))
        >>> builder.stream("in").process(Running, "sums").to("out")
        >>> run(builder, [("a", 1, 0), ("a", 2, 5)])
        [('a', 1, 0), ('a', 3, 5)]
        """
        if not isinstance(store_builder, StoreBuilder):
            raise TopologyError(
                f"add_state_store: expected a builder such as Stores.key_value(...), got {type(store_builder).__name__}"
            )

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_state_store(store_builder)

        self._graph.add(GraphNode(store_builder.name, write))
        return self

    def build(self) -> Topology:
        """Check everything and return the topology.

        >>> builder = StreamsBuilder()
        >>> builder.stream("in").to("out")
        >>> builder.build().sub_topologies()[0].nodes
        ('KSTREAM-SOURCE-0000000000', 'KSTREAM-SINK-0000000001')
        """
        return self._graph.build()
