"""Sub-topologies: the pieces of a topology that only topics connect.

Tests: `tests/topology/test_topology.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from headrace.topology.nodes import Node, ProcessorNode


@dataclass(frozen=True)
class SubTopology:
    """The nodes that are connected by steps or stores: one task per partition runs them."""

    id: int
    nodes: tuple[str, ...]
    """In the order in which they were added: parents before children."""
    stores: tuple[str, ...]
    is_global: bool = False


def cut(nodes: Mapping[str, Node], store_users: Iterable[list[str]], fillers: Set[str]) -> list[SubTopology]:
    """Cut a topology into its sub-topologies.

    `store_users` has the steps of each store, which stay together; `fillers` the steps that fill global stores.
    """
    root: dict[str, str] = {name: name for name in nodes}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for node in nodes.values():
        for parent in node.parents:
            root[find(node.name)] = find(parent)
    for users in store_users:
        for user in users[1:]:
            root[find(user)] = find(users[0])
    groups: dict[str, list[str]] = {}
    for name in nodes:
        groups.setdefault(find(name), []).append(name)
    return [
        SubTopology(number, tuple(names), _stores(map(nodes.__getitem__, names)), not fillers.isdisjoint(names))
        for number, names in enumerate(groups.values())
    ]


def _stores(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the stores of nodes, each once, in the order of the nodes."""
    return tuple(dict.fromkeys(store for node in nodes if isinstance(node, ProcessorNode) for store in node.stores))
