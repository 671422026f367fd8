"""`TopologyDescription`: the nodes of a topology, to read, compare and draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.topology import drawing
from headrace.topology.java_order import Neighbours, hash_order, node_order
from headrace.topology.node_descriptions import (
    NodeDescription,
    ProcessorDescription,
    SinkDescription,
    SourceDescription,
    SubTopologyDescription,
)
from headrace.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headrace.topology.sub_topologies import SubTopology


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
        return drawing.mermaid(self.sub_topologies)

    def to_json(self) -> str:
        """Return the description as JSON; docs/descriptions.md has its fields."""
        return drawing.json_text(self.sub_topologies)

    def to_svg(self) -> str:
        """Return a drawing as SVG; needs Graphviz's `dot` on the PATH."""
        return drawing.svg(self.sub_topologies)

    def _repr_html_(self) -> str:
        return drawing.html(self.sub_topologies, str(self))


def describe(nodes: Mapping[str, Node], subs: Iterable[SubTopology]) -> TopologyDescription:
    """Describe the nodes of a topology, by sub-topology."""
    return TopologyDescription(tuple(_describe_sub_topology(nodes, sub) for sub in subs))


def _describe_sub_topology(nodes: Mapping[str, Node], sub: SubTopology) -> SubTopologyDescription:
    order = node_order({name: nodes[name].parents for name in sub.nodes})
    described = tuple(_describe_node(nodes[name], neighbours) for name, neighbours in order.items())
    return SubTopologyDescription(sub.id, sub.is_global, described)


def _describe_node(node: Node, neighbours: Neighbours) -> NodeDescription:
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
