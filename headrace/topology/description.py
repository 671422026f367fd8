"""`TopologyDescription`: what a topology is made of, to read, to compare and to draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from headrace.topology import drawing
from headrace.topology.java_order import Neighbours, hash_order, node_order
from headrace.topology.nodes import ProcessorNode, SinkNode, SourceNode

if TYPE_CHECKING:
    from headrace.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class SourceDescription:
    """Where records come in: from topics, or from the topics that match a pattern."""

    kind: ClassVar[Literal["source"]] = "source"
    name: str
    topics: tuple[str, ...]
    pattern: str | None
    successors: tuple[str, ...]

    def __str__(self) -> str:
        topics = _listed(self.topics) if self.pattern is None else self.pattern
        return f"Source: {self.name} (topics: {topics})\n      --> {_names(self.successors)}"


@dataclass(frozen=True)
class ProcessorDescription:
    """A step, with the stores it can use."""

    kind: ClassVar[Literal["processor"]] = "processor"
    name: str
    stores: tuple[str, ...]
    successors: tuple[str, ...]
    predecessors: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Processor: {self.name} (stores: {_listed(self.stores)})\n"
            f"      --> {_names(self.successors)}\n"
            f"      <-- {_names(self.predecessors)}"
        )


@dataclass(frozen=True)
class SinkDescription:
    """Where records go out: to a topic, or to the one that a function names for each record."""

    kind: ClassVar[Literal["sink"]] = "sink"
    name: str
    topic: str | None
    extractor: str | None
    """The name of that function."""
    predecessors: tuple[str, ...]

    def __str__(self) -> str:
        target = f"topic: {self.topic}" if self.extractor is None else f"extractor class: {self.extractor}"
        return f"Sink: {self.name} ({target})\n      <-- {_names(self.predecessors)}"


NodeDescription: TypeAlias = SourceDescription | ProcessorDescription | SinkDescription


@dataclass(frozen=True)
class SubTopologyDescription:
    """Nodes that run together: one task per partition, or, for a global store, one copy in every process."""

    id: int
    is_global: bool
    nodes: tuple[NodeDescription, ...]

    def __str__(self) -> str:
        nodes = "".join(f"    {node}\n" for node in self.nodes)
        if self.is_global:
            return f"Sub-topology: {self.id} for global store (will not generate tasks)\n{nodes}"
        return f"Sub-topology: {self.id}\n{nodes}\n"


@dataclass(frozen=True)
class TopologyDescription:
    """The sub-topologies of a topology with their nodes, in the order of Kafka Streams.

    `str()` gives the text that Kafka Streams prints for the same topology.

    >>> from headrace import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> builder.stream("lines").filter(lambda key, value: value).to("kept")
    >>> print(builder.build().describe())
    Topologies:
       Sub-topology: 0
        Source: KSTREAM-SOURCE-0000000000 (topics: [lines])
          --> KSTREAM-FILTER-0000000001
        Processor: KSTREAM-FILTER-0000000001 (stores: [])
          --> KSTREAM-SINK-0000000002
          <-- KSTREAM-SOURCE-0000000000
        Sink: KSTREAM-SINK-0000000002 (topic: kept)
          <-- KSTREAM-FILTER-0000000001
    <BLANKLINE>
    <BLANKLINE>
    """

    sub_topologies: tuple[SubTopologyDescription, ...]

    def __str__(self) -> str:
        return "Topologies:\n " + "".join(f"  {sub}" for sub in self.sub_topologies)

    def to_mermaid(self) -> str:
        """Return a Mermaid flowchart: sub-topologies as boxes, with their steps and stores, and topics between them."""
        return drawing.mermaid(self)

    def to_json(self) -> str:
        """Return the description as JSON; docs/descriptions.md has its fields."""
        return drawing.json_text(self)

    def to_svg(self) -> str:
        """Return a drawing as SVG; needs Graphviz's `dot` on the PATH."""
        return drawing.svg(self)

    def _repr_html_(self) -> str:
        return drawing.html(self)


def describe(topology: Topology) -> TopologyDescription:
    """Describe a topology."""
    return TopologyDescription(tuple(_describe_sub_topology(topology, sub) for sub in topology.sub_topologies()))


def _describe_sub_topology(topology: Topology, sub: SubTopology) -> SubTopologyDescription:
    order = node_order({name: topology.nodes[name].parents for name in sub.nodes})
    nodes = tuple(_describe_node(topology.nodes[name], neighbours) for name, neighbours in order.items())
    return SubTopologyDescription(sub.id, sub.is_global, nodes)


def _describe_node(node: SourceNode | ProcessorNode | SinkNode, neighbours: Neighbours) -> NodeDescription:
    match node:
        case SourceNode():
            pattern = None if node.pattern is None else node.pattern.pattern
            topics = tuple(hash_order(node.topics, copied=True))
            return SourceDescription(node.name, topics, pattern, neighbours.successors)
        case ProcessorNode():
            stores = tuple(hash_order(hash_order(node.stores), copied=True))
            return ProcessorDescription(node.name, stores, neighbours.successors, neighbours.predecessors)
        case SinkNode(topic=str(topic)):
            return SinkDescription(node.name, topic, None, neighbours.predecessors)
        case _:
            return SinkDescription(node.name, None, _function_name(node.topic), neighbours.predecessors)


def _function_name(function: str | Callable[..., Any]) -> str:
    """Return a name that stays the same from run to run, unlike the repr of most functions."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _listed(names: tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
