"""Topics on a Kafka cluster.

Tests: `tests/brokers/kafka/test_records.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from types import TracebackType
from typing import Any, Self

from headrace.brokers.batches import Offsets
from headrace.brokers.broker import Produced, TopicInfo, TopicRecord
from headrace.brokers.checking import check_partition, start_offsets
from headrace.brokers.kafka import topics
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.batch_ends import BatchEndFinder
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.consuming import ReadRequest, TopicReader
from headrace.brokers.kafka.markers import PARTITIONS
from headrace.brokers.kafka.producing import RecordWriter, choose_partitions, records_to_write
from headrace.brokers.kafka.ranges import RangeReader
from headrace.brokers.kafka.runs import Runs
from headrace.brokers.kafka.task_transactions import KafkaPermit, KafkaTaskTransaction, TaskProducers
from headrace.brokers.kafka.topics import Topic
from headrace.brokers.runs import Run
from headrace.brokers.writing import PartitionRecords
from headrace.errors import TopicError
from headrace.raw_records import RawRecord
from headrace.topology.names import commits_topic

_VISIBLE_SECONDS = 5.0
# Timestamps belong to the state, so the cluster's default must not change them.
_INTERNAL_SETTINGS = {"message.timestamp.type": "CreateTime"}


class KafkaBroker:
    """Topics on a Kafka cluster. The threads of a process may share a broker; a forked process opens its own.

    `settings` are librdkafka's, under its names, such as `security.protocol`. Calls wait for `socket.timeout.ms`, 30
    seconds by default.
    """

    def __init__(self, address: str, **settings: Any) -> None:
        self.address = address
        self.connection = Connection(address, settings)
        self.closed = False
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._opened: Admin | None = None
        self._writer = RecordWriter(self.connection)
        self._turns: dict[str, Iterator[int]] = {}
        self._planner = BatchEndFinder(self.connection, self._admin)
        self._ranges = RangeReader(self.connection)
        self._runs = Runs(self.connection, self._admin)
        self._task_producers = TaskProducers(self.connection, self._runs.is_latest)
        self._counts: dict[str, int] = {}

    # -- topics -----------------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, *, compact: bool = False, retention_ms: int | None = None
    ) -> TopicInfo:
        """Create a topic. Raise a TopicError if it already exists.

        The cluster decides how many replicas it has and, without `retention_ms`, how long it keeps records.
        """
        return topics.create_topic(self._admin(), TopicInfo(name, partitions, bool(compact), retention_ms))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raise a TopicError if it does not exist."""
        topics.delete_topic(self._admin(), name)

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics by name, except for Kafka's own."""
        return topics.all_topics(self._admin())

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""
        return topics.end_offsets(self._admin(), self._find(topic))

    # -- records ----------------------------------------------------------------------------------------------------

    def produce(self, topic: str, records: Iterable[Produced], partition: int | None = None) -> int:
        """Append records and return how many. Without a partition the key decides.

        A record that cannot be written is found before any record is written. If the broker fails in between, the
        error says how many records it has; each of them is there once. Records without a key go to the partitions in
        turn, record by record. A record without a timestamp gets the time of this machine's clock.
        """
        written = records_to_write(topic, records, self.connection)
        found = self._find(topic, "Write")
        if partition is not None:
            check_partition(topic, partition, found.partitions)
        with self._lock:
            if partition is not None:
                partitions = [partition] * len(written)
            else:
                partitions = self._choose(found, [key for key, *_ in written])
            if written:
                self._writer.write(topic, written, partitions)
        return len(written)

    def records(
        self,
        topic: str,
        *,
        start: Mapping[int, int] | None = None,
        until_end: bool = True,
        read_committed: bool = True,
    ) -> Iterator[TopicRecord]:
        """Read a topic's records, in order within each partition, from the beginning or from the offsets in `start`.

        Stop at the end that the topic had at the call. With `until_end=False`, wait for new records instead. With
        `read_committed`, leave out records of aborted transactions, and read no further than the first open one.
        """
        found = self._find(topic, "Read")
        wanted = start_offsets(topic, start, found.partitions)
        firsts = topics.first_offsets(self._admin(), found)
        ends = topics.end_offsets(self._admin(), found, read_committed=read_committed)
        positions = {number: min(max(offset, firsts[number]), ends[number]) for number, offset in wanted.items()}
        reader = TopicReader(
            self.connection,
            ReadRequest(topic, positions, wanted, ends if until_end else None, read_committed),
            is_closed=lambda: self.closed,
            topic_exists=lambda: topics.still_exists(self._admin(), found),
        )
        return reader.records()

    # -- for an engine ----------------------------------------------------------------------------------------------

    keeps_changelogs = True

    def ensure_topics(self, wanted: Mapping[str, int], replication_factor: int = -1) -> None:
        """Create the missing topics with these numbers of partitions. Leave existing topics as they are."""
        topics.ensure_topics(self._admin(), [TopicInfo(*entry) for entry in wanted.items()], replication_factor)

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions each topic has. This is cheaper than `topics`."""
        return topics.partition_counts(self._admin())

    def topic_id(self, topic: str) -> str:
        """Return a topic's id. A topic that is deleted and created again has another one."""
        return self._find(topic).id

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return the first offset of each partition. Retention may have deleted earlier records."""
        return topics.first_offsets(self._admin(), self._find(topic))

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return the offset to continue at for each partition whose next records were deleted before they were read."""
        return self._planner.missing(start)

    def plan_batch(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where a batch ends that begins at these offsets and has at most `limit` records."""
        return self._planner.plan(start, limit)

    def read_range(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        """Read the records of a range, page by page."""
        return self._ranges.pages(topic, partition, start, end)

    def begin_run(
        self,
        application_id: str,
        lineage: str,
        *,
        exactly_once: bool = True,
        changelogs: Iterable[TopicInfo] = (),
        replication_factor: int = -1,
    ) -> Run:
        """Begin a run of an application. From now on, earlier runs cannot write."""
        commits, logs = TopicInfo(commits_topic(application_id), PARTITIONS, compact=True), list(changelogs)
        topics.ensure_topics(self._admin(), [commits], replication_factor, _INTERNAL_SETTINGS)
        names = [log.name for log in logs]  # the marker has them before they exist, so that none is ever lost
        run = self._runs.begin(application_id, lineage, exactly_once=exactly_once, changelogs=names)
        try:
            topics.ensure_topics(self._admin(), logs, replication_factor, _INTERNAL_SETTINGS)
        except BaseException:
            self.end_run(run)  # otherwise this process stays in the group
            raise
        return run

    def end_run(self, run: Run) -> None:
        """Drop the connections of a run. Its session in the group ends a while later."""
        self._runs.end(run.application_id, run)

    def run_number(self, application_id: str) -> int:
        """Return the number of an application's latest run, 0 if there is none."""
        marker = self._runs.marker(application_id)
        return 0 if marker is None else marker.run

    def last_batch(self, application_id: str) -> tuple[str, int] | None:
        """Return the lineage of an application's latest run and the last batch written in it, -1 for none."""
        marker = self._runs.marker(application_id)
        return None if marker is None else (marker.lineage, marker.batch)

    def write_batch(self, run: Run, batch: int, records: Iterable[PartitionRecords], positions: Offsets) -> bool:
        """Write a batch's records and save the positions, all or nothing; False if it was written before."""
        return self._runs.write(run, batch, records, positions, self._partition_count)

    def permit(self, run: Run) -> KafkaPermit:
        """Return the permit for tasks to write in place."""
        return self._runs.permit(run)

    def begin_task_transaction(self, permit: object, batch: int) -> KafkaTaskTransaction:
        """Begin a transaction for outputs of tasks in a batch."""
        assert isinstance(permit, KafkaPermit)
        return self._task_producers.begin(permit, batch, self._partition_count)

    def wait_until_visible(self, names: Iterable[str]) -> None:
        """Wait a moment until commits to these topics show. Others may keep transactions open, so do not wait long."""
        partitions = [(name, number) for name in names for number in range(self._partition_count(name))]
        self._planner.wait_until_settled(partitions, _VISIBLE_SECONDS)

    def positions(self, application_id: str) -> dict[str, dict[int, int]]:
        """Return the next offset to read, by topic and partition, as of the last batch that was written."""
        marker = self._runs.marker(application_id)
        return {} if marker is None else marker.positions

    def forget_application(self, application_id: str) -> None:
        """Forget an application's runs, batches and positions. A process that still runs it cannot write any more."""
        self._runs.forget(application_id)

    def _partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = self._find(topic, "Write").partitions
        return self._counts[topic]

    # -- closing ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections. Calls that read or wait raise an error."""
        self.closed = True
        if os.getpid() != self._process:
            return  # only the process that has a client's threads can close it
        self._opened = None
        self._writer.close()
        self._ranges.close()
        self._planner.close()
        self._runs.close()
        self._task_producers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _admin(self) -> Admin:
        """Return this process's client. Open it at the first call."""
        if self.closed:
            raise TopicError(f"the broker at {self.address} was closed. Call connect() again")
        if os.getpid() != self._process:
            raise TopicError(f"the broker at {self.address} was opened by another process. Call connect() in this one.")
        with self._lock:
            if self._opened is None:
                self._opened = Admin(self.connection)
            return self._opened

    def _find(self, topic: str, operation: str = "Describe") -> Topic:
        return topics.find_topic(self._admin(), topic, operation)

    def _choose(self, topic: Topic, keys: list[bytes | None]) -> list[int]:
        if topic.partitions > 1 and None in keys and topic.id not in self._turns:
            # Continue where others stopped. Otherwise a process that produces little would always begin with 0.
            self._turns[topic.id] = count(sum(topics.end_offsets(self._admin(), topic).values()))
        return choose_partitions(keys, topic.partitions, self._turns.get(topic.id, count()))
