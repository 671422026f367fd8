"""The record that a task has in hand.

Tests: `tests/task/test_processor_context.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.records import Headers, RecordMetadata

NO_HEADERS: Headers = []
"""All records without headers share this list. The user's code gets only copies."""

NOTHING: tuple[Any, ...] = (-1, -1, None, None, None, 0)
"""The raw record in hand while the task has none."""


class CurrentRecord:
    """The record in hand. It is set once per source record, so that steps pass on only key, value and timestamp."""

    __slots__ = ("headers", "is_latest", "ordinal", "partition", "raw", "topic")

    def __init__(self) -> None:
        self.topic: str | None = None
        self.partition = -1
        self.headers: Headers = NO_HEADERS
        self.raw = NOTHING
        """The record as it is in the topic."""
        self.ordinal = 0
        """The number of the record in the batch, in the order of processing. Its outputs carry it."""
        self.is_latest = True
        """Whether this update of a versioned table is the latest of its key."""

    @property
    def offset(self) -> int:
        return self.raw[0]  # type: ignore[no-any-return]

    @property
    def raw_key(self) -> bytes | None:
        return self.raw[2]  # type: ignore[no-any-return]

    @property
    def raw_value(self) -> bytes | None:
        return self.raw[3]  # type: ignore[no-any-return]

    def saved(self) -> tuple[Any, ...]:
        """Return everything that `restore` needs to take this record in hand again."""
        return self.topic, self.partition, self.headers, self.raw

    def restore(self, saved: Sequence[Any]) -> None:
        """Take the record in hand that was there when `saved` was called."""
        self.topic, self.partition, self.headers, self.raw = saved

    def clear(self) -> None:
        """Forget the record, before a punctuation."""
        self.restore((None, -1, NO_HEADERS, NOTHING))

    def metadata(self) -> RecordMetadata | None:
        """Return topic, partition and offset of the record; None in a punctuation."""
        return None if self.topic is None else RecordMetadata(self.topic, self.partition, self.offset)
