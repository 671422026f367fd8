"""How a join looks up the current value of a table: in its store, or worked out from its parents.

A getter is bound to a task and then gives (value, timestamp) or None for a key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from headrace.state.key_value import KeyValueStore
from headrace.state.versioned import VersionedStore
from headrace.topology.nodes import StepContext

Found: TypeAlias = tuple[Any, int] | None
Get: TypeAlias = Callable[[Any], Found]
GetAsOf: TypeAlias = Callable[[Any, int], Found]


class Getter(Protocol):
    """Looks up the current value of a table."""

    @property
    def stores(self) -> tuple[str, ...]:
        """Return the stores it reads: a step that uses the getter must be connected to them."""

    def bind(self, context: StepContext) -> Get:
        """Return the function that looks up a key."""

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        """Return the function that looks up a key as of a time; None when the table keeps no versions."""


@dataclass(frozen=True)
class StoreGetter:
    """Look a key up in a table's own store."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: StepContext) -> Get:
        store: KeyValueStore[Any, Any] | VersionedStore[Any, Any] = context.store(self.store)
        if isinstance(store, KeyValueStore):
            return store.find
        key_of, read = store.key, store.read

        def get(key: Any) -> Found:
            return read(key_of(key))

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        store = context.store(self.store)
        if not isinstance(store, VersionedStore):
            return None

        def get(key: Any, as_of: int) -> Found:
            record = store.get(key, as_of)
            return None if record is None else (record.value, record.timestamp)

        return get


@dataclass(frozen=True)
class WindowStoreGetter:
    """Look a windowed key up in a window store."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: StepContext) -> Get:
        store = context.store(self.store)

        def get(key: Any) -> Found:
            start = key.window.start
            return store.read(store.entry_key(store.key(key.key), start), start)  # type: ignore[no-any-return]

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        return None


@dataclass(frozen=True)
class SessionStoreGetter:
    """Look a session up in a session store; its timestamp is its end."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: StepContext) -> Get:
        store = context.store(self.store)

        def get(key: Any) -> Found:
            value = store.read(store.key(key.key), key.window.start, key.window.end)
            return None if value is None else (value, key.window.end)

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        return None


@dataclass(frozen=True)
class MappedGetter:
    """Look a key up in the parent and compute the value from there: a filter or map_values without a store.

    `compute(key, value)` gives the value, or None where there is none.
    """

    parent: Getter
    compute: Callable[[Any, Any], Any]

    @property
    def stores(self) -> tuple[str, ...]:
        return self.parent.stores

    def bind(self, context: StepContext) -> Get:
        parent, compute = self.parent.bind(context), self.compute

        def get(key: Any) -> Found:
            return _computed(compute, key, parent(key))

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        parent, compute = self.parent.bind_as_of(context), self.compute
        if parent is None:
            return None

        def get(key: Any, as_of: int) -> Found:
            return _computed(compute, key, parent(key, as_of))

        return get


@dataclass(frozen=True)
class JoinGetter:
    """Look a key up in both sides of a table-table join and join on the fly."""

    left: Getter
    right: Getter
    joiner: Callable[[Any, Any, Any], Any]
    """Called with (key, left, right)."""
    needs_left: bool
    needs_right: bool

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left.stores, *self.right.stores)))

    def bind(self, context: StepContext) -> Get:
        left, right, joiner = self.left.bind(context), self.right.bind(context), self.joiner
        needs_left, needs_right = self.needs_left, self.needs_right

        def get(key: Any) -> Found:
            mine, other = left(key), right(key)
            if (mine is None and (needs_left or other is None)) or (other is None and needs_right):
                return None
            timestamp = max(mine[1] if mine else -1, other[1] if other else -1)
            value = joiner(key, mine[0] if mine else None, other[0] if other else None)
            return None if value is None else (value, timestamp)

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        return None


@dataclass(frozen=True)
class SuppressGetter:
    """Give a waiting key the value before its waiting updates, any other the parent's."""

    parent: Getter
    buffer: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (*self.parent.stores, self.buffer)

    def bind(self, context: StepContext) -> Get:
        parent, buffer = self.parent.bind(context), context.store(self.buffer)

        def get(key: Any) -> Found:
            prior = buffer.prior_value(key)
            if prior is None:
                return parent(key)
            # When that value was emitted is not known.
            return None if prior[0] is None else (prior[0], -1)

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        return None


def _computed(compute: Callable[[Any, Any], Any], key: Any, found: Found) -> Found:
    if found is None:
        return None
    value = compute(key, found[0])
    return None if value is None else (value, found[1])
