"""What a task puts out, by columns."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from headrace.records import Headers

CausedOutput: TypeAlias = tuple[str, int | None, bytes | None, bytes | None, int, Headers, int]
"""(topic, partition or None to let the key decide, key, value, timestamp, headers, ordinal of what caused it)."""

_FIELDS = 7


class Columns(NamedTuple):
    """Outputs to one topic."""

    partitions: Sequence[int | None]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps: Sequence[int]
    headers: Sequence[Headers | None]
    ordinals: Sequence[int]

    def at(self, places: Sequence[int]) -> Columns:
        """Return those at some places."""
        if len(places) == len(self.keys):
            return self
        if len(places) == 1:
            alone = slice(places[0], places[0] + 1)
            return Columns._make(column[alone] for column in self)
        return Columns._make(map(itemgetter(*places), self))


class Outputs:
    """Outputs in their order: the fields of all of them in one list, so that none needs a tuple to itself.

    >>> outputs = Outputs()
    >>> outputs.put(("out", None, b"a", b"1", 5, [], 0))
    >>> outputs.put(("log", None, b"b", b"2", 6, [], 0))
    >>> [(topic, columns.values) for topic, columns in outputs.take_by_topic()]
    [('log', [b'2']), ('out', [b'1'])]
    >>> outputs.take()
    []
    """

    __slots__ = ("_fields", "put")

    def __init__(self) -> None:
        self._fields: list[Any] = []
        self.put = self._fields.extend
        """Add an output, given as a tuple of all its fields."""

    def __len__(self) -> int:
        return len(self._fields) // _FIELDS

    def take(self) -> list[CausedOutput]:
        """Return what there is, and forget it."""
        fields = iter(self._fields)
        taken: list[CausedOutput] = list(zip(*(fields for _ in range(_FIELDS))))
        self._fields.clear()
        return taken

    def take_by_topic(self) -> list[tuple[str, Columns]]:
        """Return what goes to each topic, by their names, and forget it."""
        topics, *columns = (self._fields[field::_FIELDS] for field in range(_FIELDS))
        self._fields.clear()
        whole = Columns._make(columns)
        names = sorted(set(topics))
        if len(names) == 1:
            return [(names[0], whole)]
        return [(name, whole.at([place for place, topic in enumerate(topics) if topic == name])) for name in names]
