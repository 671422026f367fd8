"""What a task knows about the record in hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.records import Headers, RecordMetadata

NO_HEADERS: Headers = []
"""Shared by all records without headers; user code is only ever given copies."""


class CurrentRecord:
    """The record in hand: set once per source record, so that steps pass on only key, value and timestamp."""

    __slots__ = ("headers", "is_latest", "offset", "ordinal", "partition", "raw_key", "raw_value", "topic")

    def __init__(self) -> None:
        self.topic: str | None = None
        self.partition = -1
        self.offset = -1
        self.headers: Headers = NO_HEADERS
        self.raw_key: bytes | None = None
        self.raw_value: bytes | None = None
        self.ordinal = 0
        """Which record of the batch this is, in the order of processing."""
        self.is_latest = True
        """Whether an update of a versioned table is its key's latest."""

    def position(self) -> tuple[Any, ...]:
        """Return everything, to be restored later."""
        return self.topic, self.partition, self.offset, self.headers, self.raw_key, self.raw_value

    def restore(self, position: Sequence[Any]) -> None:
        """Go back to where `position` was taken."""
        self.topic, self.partition, self.offset, self.headers, self.raw_key, self.raw_value = position

    def clear(self) -> None:
        """Forget the record: what follows is a punctuation."""
        self.restore((None, -1, -1, NO_HEADERS, None, None))

    def metadata(self) -> RecordMetadata | None:
        """Return where the record came from; None in a punctuation."""
        return None if self.topic is None else RecordMetadata(self.topic, self.partition, self.offset)
