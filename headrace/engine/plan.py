"""The plan: which tasks an application has, in which stage each runs, and what feeds it.

A *unit* is what runs as one task per partition: a sub-topology, with the global tables it reads. Sub-topologies
that send records in a circle through internal topics (a foreign-key join) are one unit with a single task for all
partitions, so that a record and all that follows from it is done before the next one. A unit's *level* is the
longest chain of stateful units before it: the stateful tasks of one level run in one stage, and tasks without state
run where their records come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.config import StreamsConfig
from headrace.engine.copartition import count_partitions, source_topics
from headrace.topology.nodes import ProcessorNode, SinkNode, SourceNode
from headrace.topology.partitioners import WindowedPartitioner
from headrace.topology.timestamps import FailOnInvalidTimestamp, LogAndSkipOnInvalidTimestamp
from headrace.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Unit:
    """What runs as one task per partition."""

    number: int
    subs: tuple[int, ...]
    global_subs: tuple[int, ...]
    """The sub-topologies that fill the global tables it reads."""
    level: int
    stateful: bool
    together: bool
    """Whether one task runs all partitions."""
    partitions: int
    """Of its widest topic."""
    depth: int
    """The longest chain of units before it."""

    @property
    def tasks(self) -> int:
        return 1 if self.together else self.partitions


@dataclass(frozen=True)
class Plan:
    """The tasks of an application and the topics between them."""

    units: tuple[Unit, ...]
    partitions: dict[str, int]
    """Of every topic the application reads or writes by name, internal ones with the application's id before them."""
    readers: dict[str, int]
    """The unit that reads a topic as one of its own."""
    global_readers: dict[str, tuple[int, ...]]
    """The units that read a topic into a global table."""
    internal: frozenset[str]
    widths: dict[int, int] = field(default_factory=dict)
    """Of every sub-topology: how many partitions its widest topic has."""
    key_suffixes: dict[str, int] = field(default_factory=dict)
    """How many bytes of a windowed key are its window: a topic's partition is chosen by the key alone."""

    def stateful_levels(self) -> list[int]:
        """Return the levels that need a stateful operator."""
        return sorted({unit.level for unit in self.units if unit.stateful})

    def task_of(self, unit: Unit, partition: int) -> int:
        """Return which task of a unit takes a partition."""
        return 0 if unit.together else partition

    def input_topics(self) -> list[str]:
        """Return the topics that are read from the broker."""
        return sorted({*self.readers, *self.global_readers} - self.internal)


def make_plan(topology: Topology, config: StreamsConfig, known: Mapping[str, int]) -> Plan:
    """Plan a topology over topics that the broker has with these numbers of partitions."""
    subs = {sub.id: sub for sub in topology.sub_topologies()}
    sources = source_topics(topology, known)
    counts = count_partitions(topology, known, config.num_partitions)
    reads = {sub.id: {topic for name in sub.nodes for topic in sources.get(name, ())} for sub in subs.values()}
    writes = {sub.id: _internal_sinks(topology, sub) for sub in subs.values()}
    ordinary = [sub for sub in subs.values() if not sub.is_global]
    after = {sub.id: [other.id for other in ordinary if writes[sub.id] & reads[other.id]] for sub in ordinary}
    circles = _strongly_connected(after)
    in_circle = {sub: number for number, circle in enumerate(circles) for sub in circle}
    tables = [_global_subs(topology, [subs[sub] for sub in circle], subs) for circle in circles]
    together = [len(circle) > 1 or circle[0] in after[circle[0]] for circle in circles]
    stateful = [
        bool(table) or in_one or any(needs_state(topology, subs[sub], config) for sub in circle)
        for circle, table, in_one in zip(circles, tables, together)
    ]
    levels, depths = [0] * len(circles), [0] * len(circles)
    for number, circle in enumerate(circles):  # in topological order: what feeds a circle comes before it
        for following in {in_circle[other] for sub in circle for other in after[sub]} - {number}:
            levels[following] = max(levels[following], levels[number] + stateful[number])
            depths[following] = max(depths[following], depths[number] + 1)
    widths = {sub: max(map(counts.__getitem__, topics)) for sub, topics in reads.items()}
    units: list[Unit] = []
    for number in sorted(range(len(circles)), key=lambda number: min(circles[number])):
        circle = circles[number]
        units.append(
            Unit(
                number=len(units),
                subs=tuple(sorted(circle)),
                global_subs=tables[number],
                level=levels[number],
                stateful=stateful[number],
                together=together[number],
                partitions=max(widths[sub] for sub in circle),
                depth=depths[number],
            )
        )

    def named(topic: str) -> str:
        return f"{config.application_id}-{topic}" if topic in topology.internal_topics else topic

    global_readers: dict[str, tuple[int, ...]] = {}
    for table in subs.values():
        if table.is_global:
            users = tuple(unit.number for unit in units if table.id in unit.global_subs)
            global_readers.update(dict.fromkeys(reads[table.id], users))
    partitions = {named(topic): count for topic, count in counts.items()}
    for node in topology.nodes.values():
        if isinstance(node, SinkNode) and isinstance(node.topic, str):
            partitions.setdefault(named(node.topic), known.get(node.topic, config.num_partitions))
    return Plan(
        tuple(units),
        partitions,
        {named(topic): unit.number for unit in units for sub in unit.subs for topic in reads[sub]},
        global_readers,
        frozenset(map(named, topology.internal_topics)),
        widths,
        {named(topic): size for topic, size in _key_suffixes(topology).items()},
    )


def needs_state(topology: Topology, sub: SubTopology, config: StreamsConfig) -> bool:
    """Tell whether a sub-topology keeps anything from one batch to the next."""
    if sub.stores:
        return True
    stateless = (FailOnInvalidTimestamp, LogAndSkipOnInvalidTimestamp)
    for name in sub.nodes:
        node = topology.nodes[name]
        if isinstance(node, ProcessorNode) and node.supplier is not None:
            return True  # it may ask for the stream time, or schedule something
        if isinstance(node, SourceNode) and (
            (node.timestamp_extractor or config.default_timestamp_extractor) not in stateless
        ):
            return True  # it is told the latest time of its partition
    return False


def _internal_sinks(topology: Topology, sub: SubTopology) -> set[str]:
    sinks = (topology.nodes[name] for name in sub.nodes)
    return {
        node.topic
        for node in sinks
        if isinstance(node, SinkNode) and isinstance(node.topic, str) and node.topic in topology.internal_topics
    }


def _global_subs(topology: Topology, circle: list[SubTopology], subs: Mapping[int, SubTopology]) -> tuple[int, ...]:
    """Return the sub-topologies of the global tables that a step of these looks into."""
    fillers = {filler: store for store, filler in topology.global_stores.items()}
    holders = {fillers[name]: sub.id for sub in subs.values() for name in sub.nodes if name in fillers}
    if not holders:
        return ()
    wanted: set[int] = set()
    for sub in circle:
        for name in sub.nodes:
            node = topology.nodes[name]
            if not isinstance(node, ProcessorNode):
                continue
            if node.supplier is not None:  # a processor may ask for any global store
                wanted.update(holders.values())
            wanted.update(holders[store] for store in node.global_stores)
    return tuple(sorted(wanted))


def _key_suffixes(topology: Topology) -> dict[str, int]:
    sinks = [node for node in topology.nodes.values() if isinstance(node, SinkNode)]
    return {
        sink.topic: sink.partitioner.window_bytes
        for sink in sinks
        if isinstance(sink.topic, str) and isinstance(sink.partitioner, WindowedPartitioner)
    }


def _strongly_connected(after: Mapping[int, list[int]]) -> list[list[int]]:
    """Return the circles of a graph, single nodes included, each before those it leads to."""
    finished: list[int] = []
    seen: set[int] = set()
    for start in after:
        stack = [(start, iter(after[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            node, following = stack[-1]
            for other in following:
                if other not in seen:
                    seen.add(other)
                    stack.append((other, iter(after[other])))
                    break
            else:
                finished.append(node)
                stack.pop()
    before: dict[int, list[int]] = {node: [] for node in after}
    for node, following_nodes in after.items():
        for other in following_nodes:
            before[other].append(node)
    circles: list[list[int]] = []
    placed: set[int] = set()
    for start in reversed(finished):
        if start in placed:
            continue
        circle, open_ends = [], [start]
        placed.add(start)
        while open_ends:
            node = open_ends.pop()
            circle.append(node)
            for other in before[node]:
                if other not in placed:
                    placed.add(other)
                    open_ends.append(other)
        circles.append(circle)
    return circles
