"""`Topology`: the graph of sources, processors, stores and sinks that an application runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import TopologyError
from headrace.serdes import Serde
from headrace.state.builders import StoreBuilder
from headrace.topology.argument_checks import (
    check_name,
    check_offset_reset,
    check_optional_function,
    check_serde,
    check_step_name,
    check_supplier,
)
from headrace.topology.description import TopologyDescription, describe
from headrace.topology.names import own_topic
from headrace.topology.nodes import Node, Operator, ProcessorNode, SinkNode, SourceNode
from headrace.topology.sub_topologies import SubTopology, cut
from headrace.topology.timestamps import TimestampExtractor
from headrace.topology.validation import check_join_partitions, refuse_cycles, refuse_second_reader

__all__ = ["SubTopology", "Topology"]


class Topology:
    """Sources, processors, stores and sinks, by name.

    >>> topology = Topology()
    >>> _ = topology.add_source("lines", "lines-topic").add_sink("out", "out-topic", "lines")
    >>> [sub.nodes for sub in topology.sub_topologies()]
    [('lines', 'out')]
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.stores: dict[str, StoreBuilder] = {}
        self.internal_topics: dict[str, int | None] = {}
        """Repartition topics, without the application's prefix, and the number of partitions that they were given."""
        self.global_stores: dict[str, str] = {}
        """The processor that fills each global store."""
        self.copartitioned: list[tuple[str, frozenset[str]]] = []
        """Steps that join or cogroup, with the sources that must have the same number of partitions."""
        self._store_users: dict[str, list[str]] = {}

    # -- the Processor API ------------------------------------------------------------------------------------------

    def add_source(
        self,
        name: str,
        *topics: str | re.Pattern[str],
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
    ) -> Topology:
        """Add a source that reads topics, or the topics that match a pattern."""
        self._new_name(name, "source")
        if not topics:
            raise TopologyError(f"source '{name}': expected at least one topic, got none")
        patterns = [topic for topic in topics if isinstance(topic, re.Pattern)]
        if patterns and len(topics) > 1:
            raise TopologyError(
                f"source '{name}': expected either topics or one pattern, got a pattern and {len(topics) - 1} more"
            )
        names = tuple(
            check_name(topic, f"source '{name}', topic") for topic in topics if not isinstance(topic, re.Pattern)
        )
        for source in self.sources():
            refuse_second_reader(name, names, patterns, source)
        check_offset_reset(offset_reset, f"source '{name}'")
        self.nodes[name] = SourceNode(
            name,
            names,
            patterns[0] if patterns else None,
            check_serde(key_serde, f"source '{name}', key_serde"),
            check_serde(value_serde, f"source '{name}', value_serde"),
            check_optional_function(timestamp_extractor, f"source '{name}', timestamp_extractor"),
            offset_reset,
        )
        return self

    def add_processor(self, name: str, supplier: Callable[[], Any], *parents: str) -> Topology:
        """Add a processor; `supplier()` makes one for each task.

        A supplier may have a method `stores` that returns the builders of the stores it uses.
        """
        check_supplier(supplier, f"processor '{name}'")
        self._add_processor(ProcessorNode(name, parents, supplier=supplier))
        self.connect_supplied_stores(name, supplier)
        return self

    def add_state_store(self, builder: StoreBuilder, *processors: str) -> Topology:
        """Add a store and connect it to processors; adding an equal builder again only connects it."""
        if not isinstance(builder, StoreBuilder):
            raise TopologyError(
                f"add_state_store: expected a builder such as Stores.key_value(...), got {type(builder).__name__}"
            )
        known = self.stores.get(builder.name)
        if known is not None and known != builder:
            raise TopologyError(
                f"there is already a store '{builder.name}' with other settings ({known.kind}, {dict(known.options)}). "
                "Give each store its own name"
            )
        self.stores.setdefault(builder.name, builder)
        self._store_users.setdefault(builder.name, [])
        for processor in processors:
            self.connect(processor, builder.name)
        return self

    def connect(self, processor: str, *stores: str) -> Topology:
        """Give a processor access to stores."""
        node = self.nodes.get(processor)
        if not isinstance(node, ProcessorNode):
            known = ", ".join(node.name for node in self.processors())
            raise TopologyError(
                f"store '{', '.join(stores)}': there is no processor '{processor}' to connect it to. Add it first "
                f"(known processors: {known or 'none'})"
            )
        for store in stores:
            if store not in self.stores:
                raise TopologyError(
                    f"step '{processor}': there is no store '{store}'. Add it first with add_state_store "
                    f"(known stores: {', '.join(sorted(self.stores)) or 'none'})"
                )
            if store in self.global_stores:
                node.global_stores.append(store)
                continue
            if store not in node.stores:
                node.stores.append(store)
                self._store_users[store].append(processor)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | Callable[[Any, Any, Any], str],
        *parents: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: Callable[[str, Any, Any, int], Any] | None = None,
    ) -> Topology:
        """Add a sink that writes to a topic, or to the topic that `f(key, value, record_context)` names."""
        self._new_name(name, "sink")
        if not callable(topic):
            check_name(topic, f"sink '{name}', topic")
        sink = SinkNode(
            name,
            parents,
            topic,
            check_serde(key_serde, f"sink '{name}', key_serde"),
            check_serde(value_serde, f"sink '{name}', value_serde"),
            check_optional_function(partitioner, f"sink '{name}', partitioner"),
        )
        self._attach(sink, "sink")
        return self

    # -- for the DSL ------------------------------------------------------------------------------------------------

    def add_operator(self, name: str, operator: Operator, *parents: str, stores: Iterable[str] = ()) -> Topology:
        """Add a step of the DSL."""
        self._add_processor(ProcessorNode(name, parents, operator=operator))
        return self.connect(name, *stores)

    def add_fixed_key_processor(self, name: str, supplier: Callable[[], Any], *parents: str) -> Topology:
        """Add a processor that may not change the key."""
        check_supplier(supplier, f"processor '{name}'")
        self._add_processor(ProcessorNode(name, parents, supplier=supplier, fixed_key=True))
        self.connect_supplied_stores(name, supplier)
        return self

    def add_global_table(self, source: SourceNode, name: str, operator: Operator, store: StoreBuilder) -> Topology:
        """Add a source whose records fill a store that every task can read."""
        self.add_source(
            source.name,
            *source.topics,
            key_serde=source.key_serde,
            value_serde=source.value_serde,
            timestamp_extractor=source.timestamp_extractor,
        )
        self.add_operator(name, operator, source.name)
        self.add_step_store(store, name)
        self.global_stores[store.name] = name
        return self

    def add_step_store(self, builder: StoreBuilder, *steps: str) -> Topology:
        """Add the store of a step of the DSL: no other step may have a store of this name."""
        known = self.stores.get(builder.name)
        if known is not None and known is not builder:
            users = ", ".join(f"'{user}'" for user in self._store_users[builder.name]) or "no step"
            raise TopologyError(
                f"step '{', '.join(steps)}': there is already a store '{builder.name}', used by {users}. "
                "Give each store its own name"
            )
        return self.add_state_store(builder, *steps)

    def connect_supplied_stores(self, name: str, supplier: Any) -> None:
        """Add the stores that a supplier has in its `stores`."""
        stores = getattr(supplier, "stores", None)
        for builder in (stores() if callable(stores) else stores) or ():
            self.add_state_store(builder, name)

    # -- look-ups ----------------------------------------------------------------------------------------------

    def nodes_of(self, sub: SubTopology | None = None) -> list[Node]:
        """Return the nodes of a sub-topology, or all of them: parents before children."""
        return list(self.nodes.values()) if sub is None else [self.nodes[name] for name in sub.nodes]

    def sources(self, sub: SubTopology | None = None) -> list[SourceNode]:
        """Return the sources of a sub-topology, or all of them."""
        return [node for node in self.nodes_of(sub) if isinstance(node, SourceNode)]

    def processors(self, sub: SubTopology | None = None) -> list[ProcessorNode]:
        """Return the steps between the sources and sinks of a sub-topology, or all of them."""
        return [node for node in self.nodes_of(sub) if isinstance(node, ProcessorNode)]

    def sinks(self, sub: SubTopology | None = None) -> list[SinkNode]:
        """Return the sinks of a sub-topology, or all of them."""
        return [node for node in self.nodes_of(sub) if isinstance(node, SinkNode)]

    def written_topics(self, sub: SubTopology | None = None) -> list[str]:
        """Return the topics that sinks write, without topics that a function chooses for each record."""
        return list(dict.fromkeys(sink.topic for sink in self.sinks(sub) if isinstance(sink.topic, str)))

    def named_topics(self) -> list[str]:
        """Return the user's topics that sources and sinks name: neither internal ones, nor those a pattern matches."""
        read = [topic for source in self.sources() for topic in source.topics]
        named = dict.fromkeys(read + self.written_topics())
        return [topic for topic in named if topic not in self.internal_topics]

    def topic_name(self, topic: str, application_id: str) -> str:
        """Return the name of a topic in the broker: an internal one has the application's id before its own."""
        return own_topic(application_id, topic) if topic in self.internal_topics else topic

    def internal_names(self, application_id: str) -> frozenset[str]:
        """Return the names that the internal topics have in the broker."""
        return frozenset(own_topic(application_id, topic) for topic in self.internal_topics)

    def sub_topologies(self) -> list[SubTopology]:
        """Cut the topology into the pieces that only topics connect."""
        return cut(self.nodes, self._store_users.values(), set(self.global_stores.values()))

    def validate(self) -> None:
        """Raise a TopologyError when the topology cannot run."""
        if not self.sources():
            raise TopologyError("the topology has no source: add one with stream(), table() or add_source()")
        check_join_partitions(self.copartitioned, self.nodes, self.internal_topics)
        refuse_cycles(self.nodes, self.sub_topologies(), self.internal_topics)

    def describe(self) -> TopologyDescription:
        """Describe the topology: `str()` prints it as Kafka Streams does."""
        return describe(self.nodes, self.sub_topologies())

    # -- checks -----------------------------------------------------------------------------------------------------

    def _new_name(self, name: str, what: str) -> None:
        check_step_name(name, what)
        if name in self.nodes:
            raise TopologyError(f"{what} '{name}': there is already a step with this name. Give each step its own name")

    def _add_processor(self, node: ProcessorNode) -> None:
        self._new_name(node.name, "processor")
        self._attach(node, "processor")

    def _attach(self, node: ProcessorNode | SinkNode, what: str) -> None:
        if not node.parents:
            raise TopologyError(
                f"{what} '{node.name}': expected at least one parent, got none. Name the step before it"
            )
        for parent in node.parents:
            if not isinstance(parent, str):
                raise TopologyError(f"{what} '{node.name}': expected the names of its parents, got {parent!r}")
            if parent == node.name:
                raise TopologyError(f"{what} '{node.name}': a step cannot be its own parent. Name the step before it")
            above = self.nodes.get(parent)
            if above is None:
                raise TopologyError(
                    f"{what} '{node.name}': there is no step '{parent}'. Add a step's parents before it "
                    f"(known steps: {', '.join(self.nodes) or 'none'})"
                )
            if isinstance(above, SinkNode):
                raise TopologyError(
                    f"{what} '{node.name}': sink '{parent}' cannot be a parent, because nothing comes after a sink. "
                    f"Name the step before the sink, or read its topic with a source"
                )
        self.nodes[node.name] = node
        for parent in node.parents:
            self.nodes[parent].children.append(node.name)
