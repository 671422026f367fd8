"""The seam between applications and the place where topics are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Protocol, Self, TypeAlias

from headrace.records import Headers

Produced: TypeAlias = (
    tuple[bytes | None, bytes | None]
    | tuple[bytes | None, bytes | None, int | None]
    | tuple[bytes | None, bytes | None, int | None, Headers]
)
"""(key, value), (key, value, timestamp) or (key, value, timestamp, headers)."""


class TopicRecord(NamedTuple):
    """A record as it stands in a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True)
class TopicInfo:
    """What is known of a topic."""

    name: str
    partitions: int
    compact: bool = False
    retention_ms: int | None = None
    min_compaction_lag_ms: int | None = field(default=None, repr=False)
    """How long every record of a compacted topic stays, on Kafka."""


class Broker(Protocol):
    """Topics with partitions; the same calls wherever they are kept. A context manager."""

    def create_topic(
        self, name: str, partitions: int = 1, *, compact: bool = False, retention_ms: int | None = None
    ) -> TopicInfo:
        """Create a topic; raise a TopicError when there is one of that name."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records; raise a TopicError when there is none."""

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics, by name."""

    def produce(self, topic: str, records: Iterable[Produced], partition: int | None = None) -> int:
        """Append records, all or none, and return how many; without a partition the key decides."""

    def records(
        self,
        topic: str,
        *,
        start: Mapping[int, int] | None = None,
        until_end: bool = True,
        read_committed: bool = True,
    ) -> Iterator[TopicRecord]:
        """Walk a topic's records, of each partition in order; from the beginning unless `start` gives offsets.

        Stops at what was the end when it began, or, without `until_end`, waits for more.
        """

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""

    def close(self) -> None:
        """Let go of files and connections."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
