"""`StreamsBuilder`: where a topology of the DSL begins."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, materialized
from headrace.dsl.stream import KStream, write_source_table
from headrace.dsl.table import GlobalKTable, KTable
from headrace.dsl.table_steps import SourceTable
from headrace.errors import TopologyError
from headrace.operators.table import TableSource
from headrace.serdes import Serde, as_serde
from headrace.state.builders import StoreBuilder
from headrace.topology.nodes import SourceNode
from headrace.topology.timestamps import TimestampExtractor
from headrace.topology.topology import Topology, check_name


class StreamsBuilder:
    """Begin streams and tables here, then `build` the topology."""

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
        """Read a topic, several topics, or all topics that match a pattern as a stream."""
        read: tuple[str | re.Pattern[str], ...]
        if isinstance(topics, str | re.Pattern):
            read = (topics,)
        else:
            read = tuple(topics)
        if not read:
            raise TopologyError("stream: expected at least one topic, got none")
        step = self._graph.new_name("KSTREAM-SOURCE-", name)
        keys, values = _serde(key_serde), _serde(value_serde)

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

        Kept when it has a store or a later step needs it; null keys are dropped, null values delete.
        """
        check_name(topic, "table")
        graph = self._graph
        keep = (materialized(store) or Materialized()).or_serdes(_serde(key_serde), _serde(value_serde))
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
            write_source_table(topology, step, table, (source,))

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
        store: str | Materialized | None = None,
        name: str | None = None,
    ) -> GlobalKTable[Any, Any]:
        """Read a topic as a table that every task holds as a whole."""
        check_name(topic, "global_table")
        graph = self._graph
        keep = (materialized(store) or Materialized()).or_serdes(_serde(key_serde), _serde(value_serde))
        if keep.history_retention is not None:
            raise TopologyError("global_table: a global table cannot keep versions, drop history_retention")
        store_name = keep.name or graph.new_store_name(f"{topic}-")
        source = graph.new_name("KSTREAM-SOURCE-", name, "-source")
        step = graph.new_name("KTABLE-SOURCE-", name)

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            reader = SourceNode(source, (topic,), None, keep.key_serde, keep.value_serde, timestamp_extractor)
            topology.add_global_table(reader, step, TableSource(store_name, False), keep.key_value(store_name))

        graph.add(GraphNode(step, write, versioned=False))
        return GlobalKTable(store_name, keep.name, graph)

    def add_state_store(self, store_builder: StoreBuilder) -> StreamsBuilder:
        """Add a store for processors; connect it by naming it in `process`."""
        if not isinstance(store_builder, StoreBuilder):
            raise TopologyError(
                f"add_state_store: expected a builder such as Stores.key_value(...), got {type(store_builder).__name__}"
            )

        def write(topology: Topology, parents: tuple[str, ...]) -> None:
            topology.add_state_store(store_builder)

        self._graph.add(GraphNode(store_builder.name, write))
        return self

    def build(self) -> Topology:
        """Check everything and return the topology."""
        return self._graph.build()


def _serde(serde: Any) -> Serde[Any] | None:
    return None if serde is None else as_serde(serde)
