"""What a task puts out, by columns."""

from __future__ import annotations

from itertools import repeat
from operator import itemgetter
from typing import Any, TypeAlias

from headrace.raw_records import OutputColumns
from headrace.records import Headers

CausedOutput: TypeAlias = tuple[str, int | None, bytes | None, bytes | None, int, Headers, int]
"""(topic, partition or None to let the key decide, key, value, timestamp, headers, ordinal of what caused it)."""

_FIELDS = 7
PAGE = 10_000
"""How many outputs make a page."""
_topic = itemgetter(0)


class Outputs:
    """Outputs in their order: the fields of all of them in one list, so that none needs a tuple to itself.

    Of a large batch that list would be many megabytes, new ones for every batch. So whoever feeds a task ends pages of
    outputs on the way, which become columns while the processor has them at hand.

    >>> outputs = Outputs()
    >>> outputs.put(("out", None, b"a", b"1", 5, [], 0))
    >>> outputs.put(("log", None, b"b", b"2", 6, [], 0))
    >>> [(topic, columns.values) for topic, columns in outputs.take_by_topic()]
    [('log', [b'2']), ('out', [b'1'])]
    >>> outputs.take()
    []
    """

    __slots__ = ("_fields", "_pages", "put")

    def __init__(self) -> None:
        self._fields: list[Any] = []
        self._pages: list[tuple[str, OutputColumns]] = []
        self.put = self._fields.extend
        """Add an output, given as a tuple of all its fields."""

    def __len__(self) -> int:
        return len(self._fields) // _FIELDS + sum(len(columns.keys) for _, columns in self._pages)

    def end_page(self) -> None:
        """Turn what was put out since the last page into columns, if it is enough for a page."""
        if len(self._fields) >= PAGE * _FIELDS:
            self._to_columns()

    def _to_columns(self) -> None:
        topics, *fields = (self._fields[field::_FIELDS] for field in range(_FIELDS))
        self._fields.clear()
        columns, names = OutputColumns._make(fields), sorted(set(topics))
        for name in names:
            mine = columns if len(names) == 1 else columns.at([n for n, topic in enumerate(topics) if topic == name])
            self._pages.append((name, mine))

    def take(self) -> list[CausedOutput]:
        """Return what there is, and forget it; of outputs to several topics in a page those to one after the other."""
        fields = iter(self._fields)
        taken: list[CausedOutput] = [
            output for topic, columns in self._pages for output in zip(repeat(topic), *columns)
        ]
        taken += zip(*(fields for _ in range(_FIELDS)))
        self._fields.clear()
        self._pages.clear()
        return taken

    def take_by_topic(self) -> list[tuple[str, OutputColumns]]:
        """Return what goes to each topic, by their names and page by page, and forget it."""
        self._to_columns()
        pages, self._pages = self._pages, []
        return sorted(pages, key=_topic)
