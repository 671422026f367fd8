"""The outputs of a task, by columns.

Tests: `tests/task/test_task.py`.
"""

from __future__ import annotations

from itertools import repeat
from operator import itemgetter
from typing import Any

from headrace.raw_records import OutputColumns, RawOutput

_FIELDS = 7
"""How many fields a RawOutput has."""
PAGE = 10_000
"""How many outputs make a page."""
_topic = itemgetter(0)


class Outputs:
    """Outputs in order, until they are written or sent. Kafka Streams' RecordCollector plays this role.

    The fields of all outputs are in one list, so that no output needs its own tuple. A large batch would need many
    megabytes for this list, and every batch would ask for them again. So the task ends a page of outputs after each
    page of records, and the page becomes columns while it is in the processor's cache.

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
        """Add an output, given as a `RawOutput`. This is the list's own method, which saves a call for each output."""

    def __len__(self) -> int:
        return len(self._fields) // _FIELDS + sum(len(columns.keys) for _, columns in self._pages)

    def end_page(self) -> None:
        """Turn the outputs since the last page into columns, if there are enough for a page."""
        if len(self._fields) >= PAGE * _FIELDS:
            self._to_columns()

    def _to_columns(self) -> None:
        topics, *fields = (self._fields[field::_FIELDS] for field in range(_FIELDS))
        self._fields.clear()
        columns, names = OutputColumns._make(fields), sorted(set(topics))
        for name in names:
            mine = columns if len(names) == 1 else columns.at([n for n, topic in enumerate(topics) if topic == name])
            self._pages.append((name, mine))

    def take(self) -> list[RawOutput]:
        """Return the outputs and forget them. The outputs of an ended page are in the order of their topics."""
        taken: list[RawOutput] = [output for topic, columns in self._pages for output in zip(repeat(topic), *columns)]
        fields = iter(self._fields)
        taken += zip(*(fields for _ in range(_FIELDS)))  # the same iterator seven times: seven fields an output
        self._fields.clear()
        self._pages.clear()
        return taken

    def take_by_topic(self) -> list[tuple[str, OutputColumns]]:
        """Return the outputs by topic, in the order of the topics' names and page by page, and forget them."""
        self._to_columns()
        pages, self._pages = self._pages, []
        return sorted(pages, key=_topic)
