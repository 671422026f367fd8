"""A broker whose topics are lists: for thousands of small runs of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from headrace.brokers.batches import Offsets
from headrace.brokers.runs import NO_BATCH, Run
from headrace.brokers.writing import PartitionRecords
from headrace.partitioning import partition_of
from headrace.raw_records import RawRecord, RecordToWrite

PAGE_RECORDS = 7


class MemoryBroker:
    """Topics in lists; with `in_place`, tasks write where they run, as on Kafka."""

    keeps_changelogs = False
    closed = False

    def __init__(self, *, in_place: bool = False) -> None:
        self.topic_records: dict[str, list[list[RawRecord]]] = {}
        self._in_place = in_place
        self._sequence = 0
        self._batch = NO_BATCH

    # -- reading ------------------------------------------------------------------------------------------------------

    def partition_counts(self) -> dict[str, int]:
        return {topic: len(partitions) for topic, partitions in self.topic_records.items()}

    def topic_id(self, topic: str) -> str:
        return topic

    def first_offsets(self, topic: str) -> dict[int, int]:
        return dict.fromkeys(range(len(self.topic_records[topic])), 0)

    def end_offsets(self, topic: str) -> dict[int, int]:
        return {number: len(records) for number, records in enumerate(self.topic_records[topic])}

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        return {}

    def plan_batch(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Take records in the order of the lowest timestamp, then sequence, among the first of all partitions."""
        ends = {topic: dict(offsets) for topic, offsets in start.items()}
        lanes = [
            self._waiting(topic, number, first) for topic, offsets in start.items() for number, first in offsets.items()
        ]
        for _, _, topic, number in islice(merge(*lanes, key=lambda one: one[:2]), limit):
            ends[topic][number] += 1
        return ends

    def _waiting(self, topic: str, number: int, first: int) -> Iterator[tuple[int, int, str, int]]:
        for _, timestamp, _, _, _, sequence in self.topic_records[topic][number][first:]:
            yield timestamp, sequence, topic, number

    def read_range(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        records = self.topic_records[topic][partition][start:end]
        return (records[first : first + PAGE_RECORDS] for first in range(0, len(records), PAGE_RECORDS))

    # -- writing ------------------------------------------------------------------------------------------------------

    def produce_one(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Any = None
    ) -> None:
        """Append a record; the key decides, or without one the turn."""
        count = len(self.topic_records[topic])
        partition = self._sequence % count if key is None else partition_of(key, count)
        self._append(topic, partition, (key, value, timestamp, headers))

    def ensure_topics(self, wanted: Mapping[str, int], replication_factor: int = -1) -> None:
        for topic, count in wanted.items():
            self.topic_records.setdefault(topic, [[] for _ in range(count)])

    def write_batch(self, run: Run, batch: int, records: Iterable[PartitionRecords], positions: Offsets) -> bool:
        assert batch > self._batch
        self._batch = batch
        for topic, partition, mine in records:
            self.append(topic, partition, mine)
        return True

    def append(self, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> None:
        for record in records:
            if partition is None:
                self.produce_one(topic, *record)
            else:
                self._append(topic, partition, record)

    def _append(self, topic: str, partition: int, record: RecordToWrite) -> None:
        records = self.topic_records[topic][partition]
        key, value, timestamp, headers = record
        self._sequence += 1
        records.append((len(records), timestamp, key, value, headers, self._sequence))

    def permit(self, run: Run) -> object | None:
        return self if self._in_place else None

    def begin_task_transaction(self, permit: object, batch: int) -> MemoryTransaction:
        return MemoryTransaction(self)

    def wait_until_visible(self, topics: Iterable[str]) -> None: ...

    # -- runs ---------------------------------------------------------------------------------------------------------

    def begin_run(self, application_id: str, lineage: str, **settings: Any) -> Run:
        return Run(application_id, 1, lineage)


class MemoryTransaction:
    """What tasks write by themselves: all of it or nothing."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._held: list[tuple[str, int | None, Sequence[RecordToWrite]]] = []

    def send(self, task: str, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> int:
        self._held.append((topic, partition, records))
        return len(records)

    def commit(self) -> None:
        for topic, partition, records in self._held:
            self._broker.append(topic, partition, records)

    def __enter__(self) -> MemoryTransaction:
        return self

    def __exit__(self, *error: object) -> None: ...
