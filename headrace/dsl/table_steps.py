"""The steps that tables come out of. Later calls of the DSL decide whether a table is kept and sends old values.

Tests: `tests/operators/test_table_join_views.py` and `test_stream_table_join_views.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.operators.table import TableSource
from headrace.operators.value_getters import Getter, JoinGetter, MappedGetter, StoreGetter, SuppressGetter
from headrace.state.builders import StoreBuilder
from headrace.topology.topology import Topology


class TableStep(Protocol):
    """The step that a table comes out of."""

    def enable_old_values(self, force: bool) -> bool:
        """Send old values; without `force` only if no other table must be kept for this. Tell whether they are sent."""

    def getter(self) -> Getter:
        """Return the getter of the table's current values, and keep the table if the getter needs it."""


@dataclass
class SourceTable:
    """A table read from a topic or made from a stream. It is kept if it has a name or if a later step needs it."""

    store: StoreBuilder
    kept: bool
    send_old: bool = False

    def enable_old_values(self, force: bool) -> bool:
        if not force and not self.kept:
            return False
        self.send_old = self.kept = True
        return True

    def getter(self) -> Getter:
        self.kept = True
        return StoreGetter(self.store.name)

    def write(self, topology: Topology, step: str, *parents: str) -> None:
        """Write the step that takes records as updates, with its store if the table is kept."""
        topology.add_operator(step, TableSource(self.store.name if self.kept else None, self.send_old), *parents)
        if self.kept:
            topology.add_step_store(self.store, step)


@dataclass
class AggregateTable:
    """The result of an aggregation. It is always kept."""

    view: Getter
    send_old: bool = False

    def enable_old_values(self, force: bool) -> bool:
        self.send_old = True
        return True

    def getter(self) -> Getter:
        return self.view


@dataclass
class CogroupTable:
    """The results of all inputs of a cogroup."""

    inputs: list[AggregateTable]

    def enable_old_values(self, force: bool) -> bool:
        for table in self.inputs:
            table.enable_old_values(True)
        return True

    def getter(self) -> Getter:
        return self.inputs[0].view


@dataclass
class MappedTable:
    """A filter or map_values. It is kept only if it has a name; otherwise it is computed from the parent."""

    parent: TableStep
    compute: Callable[[Any, Any], Any]
    """From (key, value) to the value, or None if the row is filtered out."""
    store: StoreBuilder | None
    send_old: bool = False

    def enable_old_values(self, force: bool) -> bool:
        if self.store is not None or self.parent.enable_old_values(force):
            self.send_old = True
        return self.send_old

    def getter(self) -> Getter:
        if self.store is not None:
            return StoreGetter(self.store.name)
        return MappedGetter(self.parent.getter(), self.compute)


@dataclass
class JoinTable:
    """A table-table join. It is kept only if it has a name; otherwise it is computed from both sides."""

    left: TableStep
    right: TableStep
    view: JoinGetter
    store: StoreBuilder | None
    send_old: bool = False

    def enable_old_values(self, force: bool) -> bool:
        self.left.enable_old_values(True)
        self.right.enable_old_values(True)
        self.send_old = True
        return True

    def getter(self) -> Getter:
        return self.view if self.store is None else StoreGetter(self.store.name)


@dataclass
class SuppressTable:
    """A suppressed table. It does not show updates that are still held back."""

    parent: TableStep
    buffer: str

    def enable_old_values(self, force: bool) -> bool:
        return self.parent.enable_old_values(force)

    def getter(self) -> Getter:
        return SuppressGetter(self.parent.getter(), self.buffer)
