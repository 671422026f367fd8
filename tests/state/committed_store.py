"""A store with all its commits, from which it can be rebuilt. It counts the entries that it has to look at."""

from collections.abc import Iterator, Mapping
from typing import Any

from headrace import StoreBuilder
from headrace.serdes import Json, Serde, String
from headrace.state.image import Changes, MemoryImage, Space
from headrace.state.ordered_map import TimeKey
from headrace.state.small_state import SmallState


class CountingSpace:
    """A space that counts the entries that are read or changed."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.touched = 0

    def get(self, key: bytes) -> bytes | None:
        self.touched += 1
        return self._space.get(key)

    def between(self, low: bytes | None, high: bytes | None) -> list[tuple[bytes, bytes]]:
        found = self._space.between(low, high)
        self.touched += len(found)
        return found

    def iterate(self, low: bytes | None, high: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        return self._counted(self._space.iterate(low, high, reverse=reverse))

    def iterate_by_time(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._counted(self._space.iterate_by_time(low, high))

    def apply(self, changes: Changes) -> None:
        self.touched += len(changes)
        self._space.apply(changes)

    def __len__(self) -> int:
        return len(self._space)

    def _counted(self, entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for entry in entries:
            self.touched += 1
            yield entry


class CountingImage:
    """An image of counting spaces."""

    def __init__(self, entries: Mapping[str, Changes] | None = None) -> None:
        self._image = MemoryImage(entries)
        self._spaces: dict[str, CountingSpace] = {}

    def space(self, name: str, time_key: TimeKey | None = None) -> CountingSpace:
        if name not in self._spaces:
            self._spaces[name] = CountingSpace(self._image.space(name, time_key))
        return self._spaces[name]

    @property
    def touched(self) -> int:
        return sum(space.touched for space in self._spaces.values())


class CommittedStore:
    """A store and the changes of all its commits."""

    def __init__(self, builder: StoreBuilder) -> None:
        self._builder = builder
        self._entries: dict[str, Changes] = {}
        self._state: dict[str, Any] = {}
        self.store: Any = None
        self.rebuild()

    def commit(self) -> dict[str, Changes]:
        """Commit the store; return the changes, without the spaces that did not change."""
        changes: dict[str, Changes] = self.store.commit()
        for space, changed in changes.items():
            self._entries.setdefault(space, {}).update(changed)
        self._state = self._cells.values()
        return {space: dict(changed) for space, changed in changes.items() if changed}

    def rebuild(self) -> Any:
        """Make the store again from its commits. Other changes are lost."""
        self._image = CountingImage({space: dict(changes) for space, changes in self._entries.items()})
        self._cells = SmallState(self._state)
        self.store = self._builder.make(self._builder.name, _or_default, self._image, self._cells)
        return self.store

    def entries(self) -> dict[str, dict[bytes, bytes]]:
        """Return the committed entries, by space."""
        return {
            space: {key: value for key, value in changes.items() if value is not None}
            for space, changes in self._entries.items()
        }

    @property
    def touched(self) -> int:
        """Return how many committed entries were read or changed so far."""
        return self._image.touched


def _or_default(serde: Serde[Any] | None, role: str) -> Serde[Any]:
    return serde if serde is not None else (String if role == "key" else Json)
