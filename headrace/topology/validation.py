"""Checks of a topology as a whole: who reads which topic, who writes it, in how many partitions.

Tests: `tests/topology/test_bad_topologies.py`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

from headrace.errors import TopologyError
from headrace.topology.nodes import Node, SinkNode, SourceNode
from headrace.topology.sub_topologies import SubTopology


def refuse_second_reader(
    name: str, topics: tuple[str, ...], patterns: list[re.Pattern[str]], other: SourceNode
) -> None:
    """Raise if a new source would read a topic that another source reads."""
    way_out = "Read it once and use that stream or table in both places"
    for topic in topics:
        if other.reads(topic):
            how = "is already read by" if topic in other.topics else "matches the pattern of"
            raise TopologyError(f"source '{name}': topic '{topic}' {how} source '{other.name}'. {way_out}")
    for topic in other.topics:
        if any(pattern.fullmatch(topic) for pattern in patterns):
            raise TopologyError(
                f"source '{name}': its pattern matches topic '{topic}', read by source '{other.name}'. {way_out}"
            )


def check_join_partitions(
    joins: Iterable[tuple[str, frozenset[str]]], nodes: Mapping[str, Node], internal_topics: Mapping[str, int | None]
) -> None:
    """Raise if the sides of a join were given different numbers of partitions.

    `joins` has the steps that join or cogroup, each with the sources of all its sides.
    """
    for step, sources in joins:
        given: dict[str, int] = {}
        for name in sources:
            node = nodes.get(name)
            for topic in node.topics if isinstance(node, SourceNode) else ():
                partitions = internal_topics.get(topic)
                if partitions is not None:
                    given[topic] = partitions
        if len(set(given.values())) > 1:
            said = ", ".join(f"'{topic}' has {count}" for topic, count in sorted(given.items()))
            raise TopologyError(
                f"step '{step}': the sides of a join must have the same number of partitions, but {said}. "
                "Give both repartitions the same number"
            )


def refuse_cycles(
    nodes: Mapping[str, Node], sub_topologies: Iterable[SubTopology], internal_topics: Container[object]
) -> None:
    """Raise if records that a sink writes to one of the user's topics come back to this sink."""
    subs = {name: sub.id for sub in sub_topologies for name in sub.nodes}
    for sink in nodes.values():
        if not isinstance(sink, SinkNode) or sink.topic in internal_topics:
            continue
        for source in _readers(nodes, sink):
            where = f"sink '{sink.name}' writes to topic '{sink.topic}', which source '{source.name}'"
            if subs[sink.name] == subs[source.name]:
                raise TopologyError(
                    f"{where} of the same sub-topology reads: its records come back to where they were written. "
                    "Write to another topic"
                )
            if sink.name in _reachable(nodes, source):
                raise TopologyError(
                    f"{where} reads, and from there records come back to the sink: the topology is a cycle. "
                    "Write to another topic"
                )


def _readers(nodes: Mapping[str, Node], sink: SinkNode) -> list[SourceNode]:
    topic = sink.topic
    if not isinstance(topic, str):
        return []
    return [node for node in nodes.values() if isinstance(node, SourceNode) and node.reads(topic)]


def _reachable(nodes: Mapping[str, Node], start: SourceNode) -> set[str]:
    """Return the steps that records of a source reach, also through topics."""
    found, open_ends = {start.name}, [start.name]
    while open_ends:
        node = nodes[open_ends.pop()]
        after = [source.name for source in _readers(nodes, node)] if isinstance(node, SinkNode) else node.children
        open_ends.extend(name for name in after if name not in found)
        found.update(after)
    return found
