"""Descriptions of the nodes and sub-topologies of a topology: the parts of a `TopologyDescription`.

Tests: `tests/topology/test_description.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias


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
    """Where records go out: to a topic, or to a topic that a function names for each record."""

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


def _listed(names: tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
