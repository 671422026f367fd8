"""What a task knows about the record in hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.records import Headers, RecordMetadata

NO_HEADERS: Headers = []
"""Shared by all records without headers; user code is only ever given copies."""

NOTHING: tuple[Any, ...] = (-1, -1, None, None, None, 0)
"""What stands in a topic where there is no record."""


class CurrentRecord:
    """The record in hand: set once per source record, so that steps pass on only key, value and timestamp."""

    __slots__ = ("headers", "is_latest", "ordinal", "partition", "raw", "topic")

    def __init__(self) -> None:
        self.topic: str | None = None
        self.partition = -1
        self.headers: Headers = NO_HEADERS
        self.raw = NOTHING
        """The record as it stands in the topic."""
        self.ordinal = 0
        """Which record of the batch this is, in the order of processing."""
        self.is_latest = True
        """Whether an update of a versioned table is its key's latest."""

    @property
    def offset(self) -> int:
        return self.raw[0]  # type: ignore[no-any-return]

    @property
    def raw_key(self) -> bytes | None:
        return self.raw[2]  # type: ignore[no-any-return]

    @property
    def raw_value(self) -> bytes | None:
        return self.raw[3]  # type: ignore[no-any-return]

    def position(self) -> tuple[Any, ...]:
        """Return everything, to be restored later."""
        return self.topic, self.partition, self.headers, self.raw

    def restore(self, position: Sequence[Any]) -> None:
        """Go back to where `position` was taken."""
        self.topic, self.partition, self.headers, self.raw = position

    def clear(self) -> None:
        """Forget the record: what follows is a punctuation."""
        self.restore((None, -1, NO_HEADERS, NOTHING))

    def metadata(self) -> RecordMetadata | None:
        """Return where the record came from; None in a punctuation."""
        return None if self.topic is None else RecordMetadata(self.topic, self.partition, self.offset)
