"""Repartitions: a topic between two sub-topologies, so that records of a key meet in one partition.

Tests: `tests/topology/test_java_descriptions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.dsl.graph import Graph, GraphNode
from headrace.operators.stateless import NullKeyFilter, PassThrough
from headrace.serdes import Serde
from headrace.topology.names import names_repartition_steps
from headrace.topology.timestamps import FailOnInvalidTimestamp
from headrace.topology.topology import Topology


def repartition_node(
    graph: Graph,
    prefix: str,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    *,
    partitions: int | None = None,
    partitioner: Callable[[str, Any, Any, int], Any] | None = None,
) -> GraphNode:
    """Make the node of a repartition: drop null keys (unless a later join needs them), write a topic, read it back."""
    topic = prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"
    sink = graph.new_name("KSTREAM-SINK-")
    keys = graph.new_name("KSTREAM-FILTER-")
    source = graph.new_name("KSTREAM-SOURCE-")
    if names_repartition_steps(prefix):
        sink, keys, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"

    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.internal_topics[topic] = partitions
        topology.add_operator(keys, PassThrough() if node.leads_to_null_keys() else NullKeyFilter(), *parents)
        topology.add_sink(sink, topic, keys, key_serde=key_serde, value_serde=value_serde, partitioner=partitioner)
        add_internal_source(topology, source, topic, key_serde, value_serde)

    node = GraphNode(source, write)
    return node


def table_repartition_node(
    topic: str, sink: str, source: str, key_serde: Serde[Any] | None, value_serde: Serde[Any]
) -> GraphNode:
    """Make the node of a regrouped table's repartition. Its records have a key and carry new and old values."""

    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.internal_topics[topic] = None
        topology.add_sink(sink, topic, *parents, key_serde=key_serde, value_serde=value_serde)
        add_internal_source(topology, source, topic, key_serde, value_serde)

    return GraphNode(source, write)


def add_internal_source(
    topology: Topology, source: str, topic: str, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None
) -> None:
    """Read an internal topic back, with the timestamps that were written to it."""
    topology.add_source(
        source, topic, key_serde=key_serde, value_serde=value_serde, timestamp_extractor=FailOnInvalidTimestamp
    )
