"""How many partitions every topic of an application has. The sides of a join must have the same number.

Tests: `tests/engine/test_plan.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import TopologyError
from headrace.topology.topology import Topology


def source_topics(topology: Topology, known: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return the topics that each source reads. A pattern reads the broker's topics that match it."""
    return {
        source.name: source.topics if source.pattern is None else tuple(sorted(filter(source.reads, known)))
        for source in topology.sources()
    }


def count_partitions(topology: Topology, known: Mapping[str, int], default: int) -> dict[str, int]:
    """Return the number of partitions of all topics, internal ones included. `known` has those of the broker.

    A repartition topic without a number of its own gets that of the widest topic that feeds it, or that of the other
    side of its join. A topic that does not exist yet gets `default`.
    """
    sources = source_topics(topology, known)
    counts = {topic: known.get(topic, default) for topics in sources.values() for topic in topics}
    internal = topology.internal_topics
    given = {topic: count for topic, count in internal.items() if count is not None}
    counts.update({topic: given.get(topic, 0) for topic in internal})
    feeding = _feeding(topology, sources)
    # Each round carries the numbers past one more repartition, and there are at most as many of these as topics.
    for _ in range(len(internal) + 1):
        before = dict(counts)
        for topic in internal:
            if topic not in given:
                counts[topic] = max((counts[other] for other in feeding.get(topic, ())), default=0)
        for step, joined in topology.copartitioned:
            _align(step, {topic for source in joined for topic in sources.get(source, ())}, counts, given, internal)
        if counts == before:
            break
    return {topic: count or default for topic, count in counts.items()}


def _feeding(topology: Topology, sources: Mapping[str, tuple[str, ...]]) -> dict[str, set[str]]:
    """Return, for each internal topic, the topics that the sub-topologies writing to it read."""
    found: dict[str, set[str]] = {}
    for sub in topology.sub_topologies():
        read = {topic for name in sub.nodes for topic in sources.get(name, ())}
        for topic in topology.written_topics(sub):
            if topic in topology.internal_topics:
                found.setdefault(topic, set()).update(read - {topic})
    return found


def _align(
    step: str,
    topics: set[str],
    counts: dict[str, int],
    given: Mapping[str, int],
    internal: Mapping[str, int | None],
) -> None:
    """Give the topics of a join that have no fixed number the number of the others. Raise if these differ."""
    fixed = {topic: given.get(topic, counts[topic]) for topic in topics if topic in given or topic not in internal}
    if len(set(fixed.values())) > 1:
        said = ", ".join(f"'{topic}' has {count}" for topic, count in sorted(fixed.items()))
        raise TopologyError(
            f"step '{step}': the sides of a join must have the same number of partitions, but {said}. "
            "Repartition one side with repartition(partitions=...), or create them again with the same number"
        )
    wanted = next(iter(fixed.values())) if fixed else max((counts[topic] for topic in topics), default=0)
    for topic in topics:
        counts[topic] = wanted
