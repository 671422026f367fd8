"""The plan: which tasks an application has, in which stage each runs, and which topics feed it.

A *unit* is a sub-topology with the global tables that it reads, and runs as one task per partition. Sub-topologies that
send records in a cycle through internal topics (a foreign-key join) are one unit with a single task for all
partitions. So a record, with everything that follows from it, is done before the next one begins. A unit's *level* is
the longest chain of stateful units before it. The stateful tasks of a level run in one stage. Tasks without state run
where their records come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.config import StreamsConfig
from headrace.engine.copartition import count_partitions, source_topics
from headrace.topology.partitioners import WindowedPartitioner
from headrace.topology.timestamps import FailOnInvalidTimestamp, LogAndSkipOnInvalidTimestamp
from headrace.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Unit:
    """Sub-topologies that run as one task per partition."""

    number: int
    subs: tuple[int, ...]
    global_subs: tuple[int, ...]
    """The sub-topologies that fill the global tables that it reads."""
    level: int
    stateful: bool
    together: bool
    """Whether one task runs all partitions."""
    partitions: int
    """The number of partitions of its widest topic."""
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
    """The partitions of every topic that is read or written by name. Internal topics have their names in the broker."""
    readers: dict[str, int]
    """The unit that reads a topic as one of its own."""
    global_readers: dict[str, tuple[int, ...]]
    """The units that read a topic into a global table."""
    internal: frozenset[str]
    widths: dict[int, int] = field(default_factory=dict)
    """How many partitions the widest topic of each sub-topology has."""
    key_suffixes: dict[str, int] = field(default_factory=dict)
    """For topics with windowed keys, how many bytes of a key are its window, which does not decide the partition."""

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
    """Plan a topology. `known` has the number of partitions of each topic in the broker."""
    subs = {sub.id: sub for sub in topology.sub_topologies()}
    sources = source_topics(topology, known)
    counts = count_partitions(topology, known, config.num_partitions)
    reads = {sub.id: {topic for name in sub.nodes for topic in sources.get(name, ())} for sub in subs.values()}
    widths = {sub: max(map(counts.__getitem__, topics)) for sub, topics in reads.items()}
    units = _units(topology, config, subs, reads, widths)

    def named(topic: str) -> str:
        return topology.topic_name(topic, config.application_id)

    global_readers: dict[str, tuple[int, ...]] = {}
    for table in subs.values():
        if table.is_global:
            users = tuple(unit.number for unit in units if table.id in unit.global_subs)
            global_readers.update(dict.fromkeys(reads[table.id], users))
    partitions = {named(topic): count for topic, count in counts.items()}
    for topic in topology.written_topics():
        partitions.setdefault(named(topic), known.get(topic, config.num_partitions))
    return Plan(
        tuple(units),
        partitions,
        {named(topic): unit.number for unit in units for sub in unit.subs for topic in reads[sub]},
        global_readers,
        frozenset(map(named, topology.internal_topics)),
        widths,
        {named(topic): size for topic, size in _key_suffixes(topology).items()},
    )


def _units(
    topology: Topology,
    config: StreamsConfig,
    subs: Mapping[int, SubTopology],
    reads: Mapping[int, set[str]],
    widths: Mapping[int, int],
) -> list[Unit]:
    """Group sub-topologies into units, in the order of their ids."""
    writes = {sub.id: set(topology.written_topics(sub)) & topology.internal_topics.keys() for sub in subs.values()}
    ordinary = [sub for sub in subs.values() if not sub.is_global]
    after = {sub.id: [other.id for other in ordinary if writes[sub.id] & reads[other.id]] for sub in ordinary}
    cycles = _strongly_connected(after)
    tables = [_global_subs(topology, [subs[sub] for sub in cycle], subs) for cycle in cycles]
    together = [len(cycle) > 1 or cycle[0] in after[cycle[0]] for cycle in cycles]
    stateful = [
        bool(table) or in_one or any(needs_state(topology, subs[sub], config) for sub in cycle)
        for cycle, table, in_one in zip(cycles, tables, together)
    ]
    levels, depths = _levels(cycles, after, stateful)
    in_order = sorted(range(len(cycles)), key=lambda cycle: min(cycles[cycle]))
    return [
        Unit(
            number=number,
            subs=tuple(sorted(cycles[cycle])),
            global_subs=tables[cycle],
            level=levels[cycle],
            stateful=stateful[cycle],
            together=together[cycle],
            partitions=max(widths[sub] for sub in cycles[cycle]),
            depth=depths[cycle],
        )
        for number, cycle in enumerate(in_order)
    ]


def _levels(
    cycles: Sequence[Sequence[int]], after: Mapping[int, Sequence[int]], stateful: Sequence[bool]
) -> tuple[list[int], list[int]]:
    """Return how many cycles with state, and how many in all, come before each cycle on the longest chain."""
    in_cycle = {sub: number for number, cycle in enumerate(cycles) for sub in cycle}
    levels, depths = [0] * len(cycles), [0] * len(cycles)
    for number, cycle in enumerate(cycles):  # in topological order: a cycle comes after the cycles that feed it
        for following in {in_cycle[other] for sub in cycle for other in after[sub]} - {number}:
            levels[following] = max(levels[following], levels[number] + stateful[number])
            depths[following] = max(depths[following], depths[number] + 1)
    return levels, depths


def needs_state(topology: Topology, sub: SubTopology, config: StreamsConfig) -> bool:
    """Tell whether a sub-topology keeps anything from one batch to the next."""
    if sub.stores:
        return True
    stateless = (FailOnInvalidTimestamp, LogAndSkipOnInvalidTimestamp)
    if any(node.supplier is not None for node in topology.processors(sub)):
        return True  # a processor may ask for the stream time, or schedule something
    extractors = (source.timestamp_extractor or config.default_timestamp_extractor for source in topology.sources(sub))
    return any(extractor not in stateless for extractor in extractors)  # others get their partition's latest time


def _global_subs(topology: Topology, cycle: list[SubTopology], subs: Mapping[int, SubTopology]) -> tuple[int, ...]:
    """Return the sub-topologies of the global tables that the steps of a cycle look into."""
    fillers = {filler: store for store, filler in topology.global_stores.items()}
    holders = {fillers[name]: sub.id for sub in subs.values() for name in sub.nodes if name in fillers}
    if not holders:
        return ()
    wanted: set[int] = set()
    for sub in cycle:
        for node in topology.processors(sub):
            if node.supplier is not None:  # a processor may ask for any global store
                wanted.update(holders.values())
            wanted.update(holders[store] for store in node.global_stores)
    return tuple(sorted(wanted))


def _key_suffixes(topology: Topology) -> dict[str, int]:
    return {
        sink.topic: sink.partitioner.window_bytes
        for sink in topology.sinks()
        if isinstance(sink.topic, str) and isinstance(sink.partitioner, WindowedPartitioner)
    }


def _strongly_connected(after: Mapping[int, list[int]]) -> list[list[int]]:
    """Return the cycles of a graph, each before the cycles that it leads to. A single node is a cycle, too."""
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
    cycles: list[list[int]] = []
    placed: set[int] = set()
    for start in reversed(finished):
        if start in placed:
            continue
        cycle, open_ends = [], [start]
        placed.add(start)
        while open_ends:
            node = open_ends.pop()
            cycle.append(node)
            for other in before[node]:
                if other not in placed:
                    placed.add(other)
                    open_ends.append(other)
        cycles.append(cycle)
    return cycles
