"""The logical graph: a node for each call of the DSL, before `build` turns them into a `Topology`.

Until then, later calls can still decide whether a table is kept, whether it sends old values, and whether a repartition
may drop records without a key. Steps get their names and numbers in the order of the calls, as in Kafka Streams, so
that descriptions can be compared line by line with Java's.

Tests: `tests/topology/test_java_descriptions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from headrace.errors import TopologyError
from headrace.topology.argument_checks import check_name
from headrace.topology.names import generated_name
from headrace.topology.topology import Topology

Write = Callable[[Topology, tuple[str, ...]], None]
"""Adds a node's steps to the topology, below the steps with these names."""


@dataclass(eq=False)
class GraphNode:
    """One call of the DSL."""

    name: str
    """The name of the step that becomes the parent of later steps."""
    write: Write
    parents: list[GraphNode] = field(default_factory=list)
    children: list[GraphNode] = field(default_factory=list)
    priority: int = -1
    takes_null_keys: bool = False
    """Whether this is a left or outer join: repartitions before it must keep records without a key."""
    grace: int | None = None
    """How long a windowed aggregation waits for late records."""
    versioned: bool | None = None
    """Whether its table keeps versions; None: it does if its parents do."""
    topics: tuple[object, ...] = ()
    """The topics that a stream source reads. Two sources with the same topics become one."""

    def parent_names(self) -> tuple[str, ...]:
        """Return the parents of this node's first step."""
        return tuple(parent.name for parent in self.parents if parent.priority >= 0)

    def is_versioned(self) -> bool:
        """Tell whether this node's table keeps versions."""
        if self.versioned is not None:
            return self.versioned
        return bool(self.parents) and all(parent.is_versioned() for parent in self.parents if parent.priority >= 0)

    def leads_to_null_keys(self) -> bool:
        """Tell whether a later step takes records without a key."""
        return any(child.takes_null_keys or child.leads_to_null_keys() for child in self.children)


class Graph:
    """The nodes of one `StreamsBuilder`."""

    def __init__(self) -> None:
        self.root = GraphNode("root", lambda topology, parents: None)
        self.copartitioned: list[tuple[str, frozenset[str]]] = []
        self.join_repartitions: dict[GraphNode, GraphNode] = {}
        self._index = 0
        self._priority = 0

    def new_name(self, prefix: str, given: str | None = None, suffix: str = "") -> str:
        """Return a step's name. A given name uses up a number, too, as in Kafka Streams."""
        number, self._index = self._index, self._index + 1
        if given is None:
            return generated_name(prefix, number)
        what = f"name of a {prefix.rstrip('-')} step"
        return check_name(check_name(given, what) + suffix, what)

    def new_store_name(self, prefix: str) -> str:
        """Return a store's name."""
        return self.new_name(f"{prefix}STATE-STORE-")

    def add(self, node: GraphNode, *parents: GraphNode) -> GraphNode:
        """Add a node below others."""
        if node.priority < 0:
            node.priority, self._priority = self._priority, self._priority + 1
        for parent in parents or (self.root,):
            if node not in parent.children:
                parent.children.append(node)
            if parent not in node.parents:
                node.parents.append(parent)
        return node

    def copartition(self, step: str, *sources: frozenset[str]) -> frozenset[str]:
        """Require sources to have the same number of partitions. Return all of them."""
        together = frozenset().union(*sources)
        self.copartitioned.append((step, together))
        return together

    def build(self) -> Topology:
        """Write all nodes into a topology, parents first, otherwise in the order of the calls."""
        self._merge_sources()
        topology = Topology()
        topology.copartitioned.extend(self.copartitioned)
        written = {self.root}
        queue: list[tuple[int, int, GraphNode]] = []
        for child in self.root.children:
            heappush(queue, (child.priority, id(child), child))
        while queue:
            _, _, node = heappop(queue)
            if node not in written and all(parent in written for parent in node.parents):
                node.write(topology, node.parent_names())
                written.add(node)
                for child in node.children:
                    heappush(queue, (child.priority, id(child), child))
        topology.validate()
        return topology

    def _merge_sources(self) -> None:
        """Make one source of stream sources that read the same topics."""
        seen: dict[object, GraphNode] = {}
        for node in list(self.root.children):
            for topic in node.topics:
                first = seen.setdefault(topic, node)
                if first is node:
                    continue
                if first.topics != node.topics:
                    raise TopologyError(
                        f"source '{node.name}': topic {topic!r} is also read by source '{first.name}', together with "
                        "others. Read it once and use that stream in both places"
                    )
                self.root.children.remove(node)
                for child in node.children:
                    child.parents = [first if parent is node else parent for parent in child.parents]
                    if child not in first.children:
                        first.children.append(child)
                node.children = []
                break


def find_grace(node: GraphNode, step: str) -> int:
    """Return the grace of the windowed aggregations above a node."""
    if node.grace is not None:
        return node.grace
    parents = [parent for parent in node.parents if parent.priority >= 0]
    if not parents:
        raise TopologyError(
            f"step '{step}': until_window_closes needs a windowed aggregation above it, and there is none. "
            "Use windowed_by(...) before count, reduce or aggregate, or Suppressed.until_time_limit(...)"
        )
    return max(find_grace(parent, step) for parent in parents)
