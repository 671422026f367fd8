"""The nodes of a topology, and the contract of an operator with the task that runs it.

Tests: `tests/topology/test_topology.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from headrace.records import Headers
from headrace.serdes import Serde
from headrace.topology.timestamps import TimestampExtractor

Process: TypeAlias = Callable[..., None]
"""A bound step: `process(key, value, timestamp)` for a stream, `process(key, new, old, timestamp)` for a table."""

Fail: TypeAlias = Callable[[Exception, Any, Any, int], None]
"""Reports an exception of the user's function. Returns to drop the record, or raises."""


class CurrentRecord(Protocol):
    """The record that a task is processing."""

    topic: str | None
    partition: int
    headers: Headers
    is_latest: bool

    @property
    def offset(self) -> int:
        """Return where the record stands in its topic partition."""

    def saved(self) -> tuple[Any, ...]:
        """Return everything that `restore` needs to come back to this record."""

    def restore(self, saved: Sequence[Any]) -> None:
        """Come back to the record that was there when `saved` was called."""


class Cache(Protocol):
    """A cache that holds back the updates of a store until the commit."""

    put: Callable[[bytes, Any, Any, Any, int], None]
    """Take an update: put(serialized key, key, new, old, timestamp). A key's first update keeps its old value."""
    recent: dict[Any, tuple[bytes, Any]]
    """For steps: (serialized key, key) of waiting updates, under a value that is found faster. Emptied with them."""


class StepContext(Protocol):
    """What an operator can use of the task that it is bound to."""

    @property
    def step(self) -> str:
        """Return the step's name."""

    @property
    def record(self) -> CurrentRecord:
        """Return the record that the task is processing."""

    @property
    def fail(self) -> Fail:
        """Return the function that reports an exception of the user's function."""

    @property
    def children(self) -> dict[str, Process]:
        """Return the next steps by name, for an operator that chooses one."""

    def store(self, name: str) -> Any:
        """Return a store of the task."""

    def cell(self, name: str, default: Any) -> list[Any]:
        """Return a cell of this step that survives a commit."""

    def shared_cell(self, name: str, default: Any) -> list[Any]:
        """Return a cell that several steps of the task share."""

    def cache(self, store: str, forward: Process, send_old: bool) -> Cache | None:
        """Return the cache that holds back a store's updates, or None if the store is not cached."""

    def serde(self, serde: Serde[Any] | None, role: str) -> Serde[Any]:
        """Return a serde, or the configured default of the "key" or "value".

        It gets the names of topics with the application's id before them.
        """

    def partition(self) -> int:
        """Return the task's partition."""

    def dropped(self) -> None:
        """Count a dropped record: it has a null key, or is too late."""


class Operator(Protocol):
    """A step of the DSL: given its context and the next steps, it returns a function that processes a record."""

    emits_changes: bool
    """Whether `forward` takes (key, new, old, timestamp) rather than (key, value, timestamp)."""

    def bind(self, context: StepContext, forward: Process) -> Process:
        """Return the function that processes one record."""


@dataclass
class SourceNode:
    """Where records come in."""

    name: str
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None
    children: list[str] = field(default_factory=list)

    @property
    def parents(self) -> tuple[str, ...]:
        return ()

    def reads(self, topic: str) -> bool:
        """Tell whether this source takes records of a topic."""
        return topic in self.topics or (self.pattern is not None and self.pattern.fullmatch(topic) is not None)


@dataclass
class ProcessorNode:
    """A step: either an operator of the DSL or a supplier of the user's processors."""

    name: str
    parents: tuple[str, ...]
    operator: Operator | None = None
    supplier: Callable[[], Any] | None = None
    fixed_key: bool = False
    stores: list[str] = field(default_factory=list)
    global_stores: list[str] = field(default_factory=list)
    """The stores of global tables, which it only reads."""
    children: list[str] = field(default_factory=list)


@dataclass
class SinkNode:
    """Where records go out: a topic, or a function `f(key, value, record_context)` that names it."""

    name: str
    parents: tuple[str, ...]
    topic: str | Callable[[Any, Any, Any], str]
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitioner: Callable[[str, Any, Any, int], Any] | None = None
    children: list[str] = field(default_factory=list)


Node: TypeAlias = SourceNode | ProcessorNode | SinkNode
