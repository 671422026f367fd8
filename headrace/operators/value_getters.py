"""The current value of a table, as a join looks it up: in the table's store, or computed from its parents.

As in Kafka Streams, a table without a store has no copy of its rows. Its getter asks the tables it is made of. A getter
is bound to a task; the function it then gives takes a key and returns (value, timestamp), or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from headrace.state.key_value import KeyValueStore
from headrace.state.session import SessionStore
from headrace.state.versioned import VersionedStore
from headrace.state.window import WindowStore
from headrace.topology.nodes import StepContext

Found: TypeAlias = tuple[Any, int] | None
Get: TypeAlias = Callable[[Any], Found]
GetAsOf: TypeAlias = Callable[[Any, int], Found]


class Getter(Protocol):
    """Looks up the current value of a table."""

    @property
    def stores(self) -> tuple[str, ...]:
        """Return the stores it reads. A step that uses the getter must be connected to them."""

    def bind(self, context: StepContext) -> Get:
        """Return the function that looks up a key."""

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        """Return the function that looks up a key as of a time; None when the table keeps no versions."""


@dataclass(frozen=True)
class StoreGetter:
    """Look a key up in the table's own store, of any kind."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def bind(self, context: StepContext) -> Get:
        store = context.store(self.store)
        if isinstance(store, KeyValueStore):
            return store.find
        if isinstance(store, WindowStore):
            return _window_get(store)
        if isinstance(store, SessionStore):
            return _session_get(store)
        key_of, read = store.key, store.read

        def get(key: Any) -> Found:
            return read(key_of(key))  # type: ignore[no-any-return]

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
class MappedGetter:
    """Look a key up in the parent and compute the value from its row: a filter or map_values without a store.

    `compute(key, value)` returns the value, or None when the row is not in the table.
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
    """Look a key up on both sides of a table-table join and join the two rows."""

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
        get_left, get_right, joiner = self.left.bind(context), self.right.bind(context), self.joiner
        needs_left, needs_right = self.needs_left, self.needs_right

        def get(key: Any) -> Found:
            left, right = get_left(key), get_right(key)
            if (left is None and (needs_left or right is None)) or (right is None and needs_right):
                return None
            timestamp = max(left[1] if left else -1, right[1] if right else -1)
            value = joiner(key, left[0] if left else None, right[0] if right else None)
            return None if value is None else (value, timestamp)

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        # Kafka Streams looks up a joined table at its latest rows, even when both sides keep versions.
        return None


@dataclass(frozen=True)
class SuppressGetter:
    """Look a key up as it was before its waiting updates; a key without waiting updates has the parent's row."""

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
            # The buffer does not know when that value was emitted.
            return None if prior[0] is None else (prior[0], -1)

        return get

    def bind_as_of(self, context: StepContext) -> GetAsOf | None:
        return None


def _window_get(store: WindowStore[Any, Any]) -> Get:
    def get(key: Any) -> Found:
        start = key.window.start
        return store.read(store.entry_key(store.key(key.key), start), start)  # type: ignore[no-any-return]

    return get


def _session_get(store: SessionStore[Any, Any]) -> Get:
    def get(key: Any) -> Found:
        """Return the session's value; its timestamp is the session's end."""
        value = store.read(store.key(key.key), key.window.start, key.window.end)
        return None if value is None else (value, key.window.end)

    return get


def _computed(compute: Callable[[Any, Any], Any], key: Any, found: Found) -> Found:
    if found is None:
        return None
    value = compute(key, found[0])
    return None if value is None else (value, found[1])
