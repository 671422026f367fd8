"""The values that travel through a topology: records, windowed keys, values with their timestamp.

Tests: `tests/task/test_processor_context.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Headers: TypeAlias = list[tuple[str, bytes]]
"""Names and values in the order in which they were added; a name may occur more than once."""


class Window(NamedTuple):
    """A span of time in epoch milliseconds.

    The end is exclusive for tumbling and hopping windows, inclusive for sliding windows and sessions.
    """

    start: int
    end: int


class Windowed(NamedTuple, Generic[K]):
    """A key together with the window its value belongs to.

    >>> Windowed("a", Window(0, 10)).window.end
    10
    """

    key: K
    window: Window

    def __str__(self) -> str:
        return f"[{self.key}@{self.window.start}/{self.window.end}]"


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """What a timestamped store holds for a key."""

    value: V
    timestamp: int


class RecordMetadata(NamedTuple):
    """Where the record that is being processed came from."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    """A record as a processor sees it.

    >>> record = Record("a", 1, 1000)
    >>> record.with_value(2)
    Record(key='a', value=2, timestamp=1000, headers=[])
    """

    key: K
    value: V
    timestamp: int = 0
    headers: Headers = field(default_factory=list)

    def with_key(self, key: Any) -> Record[Any, V]:
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Any) -> Record[K, Any]:
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        return Record(self.key, self.value, self.timestamp, list(headers))
