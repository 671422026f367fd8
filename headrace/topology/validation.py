"""Checks of a topology as a whole: who reads which topic, who writes it, in how many partitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headrace.errors import TopologyError
from headrace.topology.nodes import SinkNode, SourceNode

if TYPE_CHECKING:
    from headrace.topology.topology import Topology


def validate(topology: Topology) -> None:
    """Raise a TopologyError where the topology cannot run."""
    if not topology.sources():
        raise TopologyError("the topology has no source: add one with stream(), table() or add_source()")
    _check_partitions(topology)
    _refuse_cycles(topology)


def refuse_second_reader(
    name: str, topics: tuple[str, ...], patterns: list[re.Pattern[str]], other: SourceNode
) -> None:
    """Raise when a new source would read what another one reads."""
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


def _check_partitions(topology: Topology) -> None:
    """Raise when the sides of a join were given different numbers of partitions."""
    for step, sources in topology.copartitioned:
        given: dict[str, int] = {}
        for name in sources:
            node = topology.nodes.get(name)
            for topic in node.topics if isinstance(node, SourceNode) else ():
                partitions = topology.internal_topics.get(topic)
                if partitions is not None:
                    given[topic] = partitions
        if len(set(given.values())) > 1:
            said = ", ".join(f"'{topic}' has {count}" for topic, count in sorted(given.items()))
            raise TopologyError(
                f"step '{step}': the sides of a join need as many partitions as each other, but {said}. "
                "Give both repartitions the same number"
            )


def _refuse_cycles(topology: Topology) -> None:
    """Raise when records written to a topic of the user's come back to where they were written."""
    subs = {name: sub.id for sub in topology.sub_topologies() for name in sub.nodes}
    for sink in topology.sinks():
        if sink.topic in topology.internal_topics:
            continue
        for source in _readers(topology, sink):
            where = f"sink '{sink.name}' writes to topic '{sink.topic}', which source '{source.name}'"
            if subs[sink.name] == subs[source.name]:
                raise TopologyError(
                    f"{where} of the same sub-topology reads: its records come back to where they were written. "
                    "Write to another topic"
                )
            if sink.name in _reachable(topology, source):
                raise TopologyError(
                    f"{where} reads, and from there records come back to the sink: the topology is a cycle. "
                    "Write to another topic"
                )


def _readers(topology: Topology, sink: SinkNode) -> list[SourceNode]:
    topic = sink.topic
    if not isinstance(topic, str):
        return []
    return [source for source in topology.sources() if source.reads(topic)]


def _reachable(topology: Topology, start: SourceNode) -> set[str]:
    """Return the steps that records of a source get to, through topics too."""
    found, open_ends = {start.name}, [start.name]
    while open_ends:
        node = topology.nodes[open_ends.pop()]
        after = [source.name for source in _readers(topology, node)] if isinstance(node, SinkNode) else node.children
        open_ends.extend(name for name in after if name not in found)
        found.update(after)
    return found
