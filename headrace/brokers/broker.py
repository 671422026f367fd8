"""The seam between applications and what stores their topics.

Tests: `tests/brokers/local/test_round_trip.py`.
"""

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
    """A record in a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True)
class TopicInfo:
    """The name and settings of a topic."""

    name: str
    partitions: int
    compact: bool = False
    retention_ms: int | None = None
    min_compaction_lag_ms: int | None = field(default=None, repr=False)
    """How long compaction leaves a record alone, on Kafka."""


class Broker(Protocol):
    """Topics with partitions. The calls are the same on the embedded log and on Kafka. A context manager."""

    def create_topic(
        self, name: str, partitions: int = 1, *, compact: bool = False, retention_ms: int | None = None
    ) -> TopicInfo:
        """Create a topic. Raise a TopicError if it already exists."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raise a TopicError if it does not exist."""

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics, by name."""

    def produce(self, topic: str, records: Iterable[Produced], partition: int | None = None) -> int:
        """Append records and return how many. Without a partition the key decides."""

    def records(
        self,
        topic: str,
        *,
        start: Mapping[int, int] | None = None,
        until_end: bool = True,
        read_committed: bool = True,
    ) -> Iterator[TopicRecord]:
        """Read a topic's records, in order within each partition, from the beginning or from the offsets in `start`.

        Stop at the end that the topic had at the call. With `until_end=False`, wait for new records instead.
        """

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""

    def close(self) -> None:
        """Close files and connections."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
