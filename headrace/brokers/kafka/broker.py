"""Topics on a Kafka cluster."""

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
from headrace.brokers.kafka.batch_ends import Planner
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.consuming import Reader, Reading
from headrace.brokers.kafka.markers import PARTITIONS, commits_topic
from headrace.brokers.kafka.producing import RecordWriter, choose, rows_of
from headrace.brokers.kafka.ranges import RangeReader
from headrace.brokers.kafka.runs import Runs, make_topics
from headrace.brokers.kafka.task_transactions import KafkaPermit, TaskWriters, TaskWriting
from headrace.brokers.kafka.topics import Topic
from headrace.brokers.runs import Run
from headrace.brokers.writing import PartitionRecords
from headrace.errors import TopicError
from headrace.raw_records import RawRecord

_VISIBLE_SECONDS = 5.0
# Whatever the cluster's default is: timestamps belong to the state.
_INTERNAL_SETTINGS = {"message.timestamp.type": "CreateTime"}


class KafkaBroker:
    """Topics on a Kafka cluster, to be shared by the threads of a process; a forked process opens its own.

    `settings` are those of librdkafka, by their names there, such as `security.protocol`. Calls wait as long as
    `socket.timeout.ms` says, 30 seconds without it.
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
        self._planner = Planner(self.connection, self._admin)
        self._ranges = RangeReader(self.connection)
        self._runs = Runs(self.connection, self._admin)
        self._tasks = TaskWriters(self.connection, self._runs.is_latest)
        self._counts: dict[str, int] = {}

    # -- topics -----------------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, *, compact: bool = False, retention_ms: int | None = None
    ) -> TopicInfo:
        """Create a topic; raise a TopicError when there is one of that name.

        The broker decides how many replicas it has, and, if nothing is said, how long records are kept.
        """
        return topics.create_topic(self._admin(), TopicInfo(name, partitions, bool(compact), retention_ms))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records; raise a TopicError when there is none."""
        topics.delete_topic(self._admin(), name)

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics, by name, except for Kafka's own."""
        return topics.all_topics(self._admin())

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""
        return topics.end_offsets(self._admin(), self._find(topic))

    # -- records ----------------------------------------------------------------------------------------------------

    def produce(self, topic: str, records: Iterable[Produced], partition: int | None = None) -> int:
        """Append records and return how many; without a partition the key decides.

        A record that is wrong is found before any is written. When the broker fails in between, the error tells how
        many records it has taken; each of these is there once. Records without a key go to the partitions in turn,
        record by record. Without a timestamp: the time of this machine's clock.
        """
        rows = rows_of(topic, records, self.connection)
        found = self._find(topic, "Write")
        if partition is not None:
            check_partition(topic, partition, found.partitions)
        with self._lock:
            chosen = [partition] * len(rows) if partition is not None else self._choose(found, [row[0] for row in rows])
            if rows:
                self._writer.write(topic, rows, chosen)
        return len(rows)

    def records(
        self,
        topic: str,
        *,
        start: Mapping[int, int] | None = None,
        until_end: bool = True,
        read_committed: bool = True,
    ) -> Iterator[TopicRecord]:
        """Walk a topic's records, of each partition in order; from the beginning unless `start` gives offsets.

        Stops at what was the end at the call, or, without `until_end`, waits for more. With `read_committed`, records
        of transactions that were aborted are left out, and what follows on an open transaction is not there yet.
        """
        found = self._find(topic, "Read")
        wanted = start_offsets(topic, start, found.partitions)
        firsts = topics.first_offsets(self._admin(), found)
        ends = topics.end_offsets(self._admin(), found, read_committed=read_committed)
        positions = {place: min(max(offset, firsts[place]), ends[place]) for place, offset in wanted.items()}
        reading = Reading(topic, positions, wanted, ends if until_end else None, read_committed)
        reader = Reader(
            self.connection,
            reading,
            is_closed=lambda: self.closed,
            is_there=lambda: topics.is_there(self._admin(), found),
        )
        return reader.records()

    # -- for an engine ----------------------------------------------------------------------------------------------

    keeps_changelogs = True

    def ensure_topics(self, wanted: Mapping[str, int], replication_factor: int = -1) -> None:
        """Create the topics that are missing, with so many partitions; leave the others as they are."""
        make_topics(self._admin(), [TopicInfo(*entry) for entry in wanted.items()], replication_factor)

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions each topic has: less to ask than `topics`."""
        return topics.partition_counts(self._admin())

    def topic_id(self, topic: str) -> str:
        """Return what tells a topic from another one of the same name, made after it was deleted."""
        return self._find(topic).id

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return where each partition begins: retention may have deleted what was before."""
        return topics.first_offsets(self._admin(), self._find(topic))

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return where to go on in the partitions whose records from these offsets on were deleted unread."""
        return self._planner.missing(start)

    def plan_batch(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where the next batch ends that begins at these offsets: so many records at most."""
        return self._planner.plan(start, limit)

    def read_range(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        """Walk one partition's records from one offset to before another, page by page."""
        return self._ranges.rows(topic, partition, start, end)

    def begin_run(
        self,
        application_id: str,
        lineage: str,
        *,
        exactly_once: bool = True,
        changelogs: Iterable[TopicInfo] = (),
        replication_factor: int = -1,
    ) -> Run:
        """Begin a run of an application: from now on no earlier one can write."""
        commits, logs = TopicInfo(commits_topic(application_id), PARTITIONS, compact=True), list(changelogs)
        make_topics(self._admin(), [commits], replication_factor, _INTERNAL_SETTINGS)
        names = [log.name for log in logs]  # kept before there are any: so that all of them are found again
        run = self._runs.begin(application_id, lineage, exactly_once=exactly_once, changelogs=names)
        try:
            make_topics(self._admin(), logs, replication_factor, _INTERNAL_SETTINGS)
        except BaseException:
            self.end_run(run)  # or this process stays in the group
            raise
        return run

    def end_run(self, run: Run) -> None:
        """Let go of what is open for a run; its session in the group is over a while later."""
        self._runs.end(run.application_id, run)

    def run_number(self, application_id: str) -> int:
        """Return the number of an application's latest run; 0 when there was none."""
        marker = self._runs.marker(application_id)
        return 0 if marker is None else marker.run

    def last_batch(self, application_id: str) -> tuple[str, int] | None:
        """Return the lineage of an application's latest run and its last batch that was written, -1 for none."""
        marker = self._runs.marker(application_id)
        return None if marker is None else (marker.lineage, marker.batch)

    def write_batch(self, run: Run, batch: int, records: Iterable[PartitionRecords], positions: Offsets) -> bool:
        """Write a batch's records and keep the positions, all or nothing; tell whether that was to be done."""
        return self._runs.write(run, batch, records, positions, self._partition_count)

    def permit(self, run: Run) -> KafkaPermit:
        """Return what tasks need to write where they run."""
        return self._runs.permit(run)

    def begin_task_transaction(self, permit: object, batch: int) -> TaskWriting:
        """Begin to write what tasks put out in a batch."""
        assert isinstance(permit, KafkaPermit)
        return self._tasks.begin(permit, batch, self._partition_count)

    def wait_until_visible(self, names: Iterable[str]) -> None:
        """Wait until what was committed to topics shows, a moment later; not for ever for what others write."""
        places = [(name, number) for name in names for number in range(self._partition_count(name))]
        self._planner.wait_until_settled(places, _VISIBLE_SECONDS)

    def positions(self, application_id: str) -> dict[str, dict[int, int]]:
        """Return the next offset to read, by topic and partition, as of the last batch that was written."""
        marker = self._runs.marker(application_id)
        return {} if marker is None else marker.positions

    def forget_application(self, application_id: str) -> None:
        """Forget an application's runs, batches and positions; what still runs of it cannot write any more."""
        self._runs.forget(application_id)

    def _partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = self._find(topic, "Write").partitions
        return self._counts[topic]

    # -- closing ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections; those who read or wait are told."""
        self.closed = True
        if os.getpid() != self._process:
            return  # clients can only be let go of where their threads are
        self._opened = None
        self._writer.close()
        self._ranges.close()
        self._planner.close()
        self._runs.close()
        self._tasks.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _admin(self) -> Admin:
        """Return the client of this process, made when it is first needed."""
        if self.closed:
            raise TopicError(f"the broker at {self.address} was closed")
        if os.getpid() != self._process:
            raise TopicError(f"the broker at {self.address} was opened by another process: connect in this one")
        with self._lock:
            if self._opened is None:
                self._opened = Admin(self.connection)
            return self._opened

    def _find(self, topic: str, operation: str = "Describe") -> Topic:
        return topics.find_topic(self._admin(), topic, operation)

    def _choose(self, topic: Topic, keys: list[bytes | None]) -> list[int]:
        if topic.partitions > 1 and None in keys and topic.id not in self._turns:
            # Go on where others ended, for a process that writes little.
            self._turns[topic.id] = count(sum(topics.end_offsets(self._admin(), topic).values()))
        return choose(keys, topic.partitions, self._turns.get(topic.id, count()))
