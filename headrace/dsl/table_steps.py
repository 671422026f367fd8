"""What a table is made of, while calls of the DSL can still change it: is it kept, does it send old values?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.operators.value_getters import Getter, JoinGetter, MappedGetter, StoreGetter, SuppressGetter
from headrace.state.builders import StoreBuilder


class TableStep(Protocol):
    """The step that a table comes out of."""

    def enable_old_values(self, force: bool) -> bool:
        """Have old values sent; without force only where nothing more has to be kept. Tell whether they will be."""

    def getter(self) -> Getter:
        """Return how the table's current values are looked up, keeping it if need be."""


@dataclass
class SourceTable:
    """A table read from a topic or made from a stream: kept when it has a name or somebody needs it."""

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


@dataclass
class AggregateTable:
    """The result of an aggregation: always kept."""

    view: Getter
    send_old: bool = False

    def enable_old_values(self, force: bool) -> bool:
        self.send_old = True
        return True

    def getter(self) -> Getter:
        return self.view


@dataclass
class CogroupTable:
    """The results of a cogroup's inputs, brought together."""

    inputs: list[AggregateTable]

    def enable_old_values(self, force: bool) -> bool:
        for table in self.inputs:
            table.enable_old_values(True)
        return True

    def getter(self) -> Getter:
        return self.inputs[0].view


@dataclass
class MappedTable:
    """A filter or map_values: kept only under a name, otherwise worked out from the parent."""

    parent: TableStep
    compute: Callable[[Any, Any], Any]
    """From (key, value) to the value, or None where the row is filtered out."""
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
    """A table-table join: kept only under a name, otherwise worked out from both sides."""

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
    """A suppressed table: what waits does not show yet."""

    parent: TableStep
    buffer: str

    def enable_old_values(self, force: bool) -> bool:
        return self.parent.enable_old_values(force)

    def getter(self) -> Getter:
        return SuppressGetter(self.parent.getter(), self.buffer)
