"""Stores as tests and users see them: plain values, whether or not the store keeps timestamps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.errors import InvalidStateStoreError
from headrace.records import ValueAndTimestamp, Windowed
from headrace.state.builders import Store
from headrace.state.key_value import KeyValueStore
from headrace.state.window import WindowStore

_NO_TIMESTAMP = -1
_WRITES = frozenset(("put", "put_if_absent", "put_all", "delete", "write", "commit"))


class PlainKeyValueView:
    """A timestamped key-value store without its timestamps. A put sets the timestamp -1."""

    def __init__(self, store: KeyValueStore[Any, ValueAndTimestamp[Any]]) -> None:
        self._store = store
        self.name = store.name

    def get(self, key: Any) -> Any:
        """Return the value of a key, or None."""
        return _value(self._store.get(key))

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None deletes it."""
        self._store.put(key, None if value is None else ValueAndTimestamp(value, _NO_TIMESTAMP))

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value of a key unless it has one. Return the value that it had, or None."""
        entry = None if value is None else ValueAndTimestamp(value, _NO_TIMESTAMP)
        return _value(self._store.put_if_absent(key, entry))

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Put several entries."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Any) -> Any:
        """Delete a key. Return the value that it had, or None."""
        return _value(self._store.delete(key))

    def range(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]:
        """Walk the entries from low to high, both included. None means no bound on that side."""
        return _values(self._store.range(low, high))

    def reverse_range(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]:
        """Walk the entries from high to low, both included."""
        return _values(self._store.reverse_range(low, high))

    def prefix_scan(self, prefix: Any, serialize: Callable[[Any], bytes] | None = None) -> Iterator[tuple[Any, Any]]:
        """Walk the entries whose serialized key starts with a prefix."""
        return _values(self._store.prefix_scan(prefix, serialize))

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Walk all entries."""
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """Walk all entries, last key first."""
        return self.reverse_range()

    def approximate_num_entries(self) -> int:
        """Return how many entries there are, approximately."""
        return self._store.approximate_num_entries()


class PlainWindowView:
    """A timestamped window store without its timestamps. A put sets the timestamp -1."""

    def __init__(self, store: WindowStore[Any, ValueAndTimestamp[Any]]) -> None:
        self._store = store
        self.name = store.name

    def put(self, key: Any, value: Any, start: int) -> None:
        """Set the value of a key's window; None deletes it."""
        self._store.put(key, None if value is None else ValueAndTimestamp(value, _NO_TIMESTAMP), start)

    def fetch(self, key: Any, start: int, latest: int | None = None) -> Any:
        """Return the value of the window with that start, or walk the windows that start from `start` to `latest`."""
        if latest is None:
            return _value(self._store.fetch(key, start))
        return _values(self._store.fetch(key, start, latest))

    def fetch_all(self, earliest: int, latest: int) -> Iterator[tuple[Windowed[Any], Any]]:
        """Walk the windows of all keys that start from earliest to latest."""
        return _values(self._store.fetch_all(earliest, latest))

    def all(self) -> Iterator[tuple[Windowed[Any], Any]]:
        """Walk all windows of all keys."""
        return _values(self._store.all())


class ReadOnlyView:
    """A global store as processors see it. Only its topic can change it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in _WRITES:
            raise InvalidStateStoreError(
                f"store '{self._store.name}' is global: a processor can only read it. Write to its topic instead"
            )
        return getattr(self._store, name)


def plain_view(store: Store) -> Any:
    """Return a view of a store with plain values."""
    if isinstance(store, KeyValueStore) and store.timestamped:
        return PlainKeyValueView(store)
    if isinstance(store, WindowStore) and store.timestamped:
        return PlainWindowView(store)
    return store


def _value(entry: ValueAndTimestamp[Any] | None) -> Any:
    return None if entry is None else entry[0]


def _values(entries: Iterator[tuple[Any, ValueAndTimestamp[Any]]]) -> Iterator[tuple[Any, Any]]:
    for key, entry in entries:
        yield key, entry[0]
