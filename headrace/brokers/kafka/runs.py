"""Applications on Kafka: their runs, and writing each batch once.

Tasks write their outputs where they run, in transactions of their own (task_transactions.py). When all tasks have
written, the driver writes the positions and a marker that says that the batch was written. A run begins by taking over
the driver's transactional id and the membership in the application's consumer group. From then on the broker refuses
what an older run sends, and aborts what it left open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.brokers.batches import Offsets
from headrace.brokers.checking import is_whole
from headrace.brokers.kafka import topics
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.batch_producer import STEP, BatchProducer
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import not_allowed_error, readable_error
from headrace.brokers.kafka.markers import Marker, MarkerReader
from headrace.brokers.kafka.membership import join, leave_soon
from headrace.brokers.kafka.producer_errors import superseded_error
from headrace.brokers.kafka.task_transactions import KafkaPermit
from headrace.brokers.runs import NO_BATCH, Run
from headrace.brokers.writing import PartitionRecords
from headrace.errors import StreamsError
from headrace.raw_records import RecordToWrite
from headrace.topology.names import commits_topic

_NOT_YET = (  # for a moment: the broker has just started, the group is moving, or its last member has just left
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NON_EMPTY_GROUP,
)


@dataclass
class OpenRun:
    """A run of this process, with its producer and its membership in the group."""

    run: Run
    producer: BatchProducer
    group: Consumer
    """Like all consumers here it is dropped, never closed: without a broker, closing may wait for ever."""
    marker: Marker
    """The last marker that was written."""

    @property
    def exactly_once(self) -> bool:
        return self.producer.id is not None


class Runs:
    """The runs that this process has begun, and the markers of all applications."""

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._connection = connection
        self._admin = admin
        self._markers = MarkerReader(connection, admin)
        self._open_runs: dict[str, OpenRun] = {}

    def marker(self, application_id: str) -> Marker | None:
        """Return an application's last committed marker."""
        return self._markers.last(application_id)

    def is_latest(self, run: Run) -> bool:
        """Tell whether no later run has begun and the application was not forgotten."""
        known = self.marker(run.application_id)
        return known is not None and known.run == run.number

    # -- runs ---------------------------------------------------------------------------------------------------------

    def begin(self, application_id: str, lineage: str, *, exactly_once: bool, changelogs: Iterable[str]) -> Run:
        """Begin a run of an application. From now on, earlier runs cannot write."""
        self.end(application_id)
        producer = BatchProducer(self._connection, application_id, application_id if exactly_once else None)
        group = join(self._connection, application_id, commits_topic(application_id))
        marker = _next_run(self._settled(application_id), lineage, changelogs)
        run = Run(application_id, marker.run, lineage)
        open_run = OpenRun(run, producer, group, marker)
        self._write(open_run, marker, (), {}, lambda topic: 1)
        producer.errors.is_latest = lambda: self.is_latest(run)
        self._open_runs[application_id] = open_run
        return run

    def permit(self, run: Run) -> KafkaPermit:
        """Return the permit for tasks to write in place."""
        open_run = self._open_runs[run.application_id]
        member = open_run.group.consumer_group_metadata() if open_run.exactly_once else None
        return KafkaPermit(run, member, open_run.marker.batch, open_run.marker.done)

    def end(self, application_id: str, run: Run | None = None) -> None:
        """Drop the connections of an application in this process, or only those of one run."""
        open_run = self._open_runs.get(application_id)
        if open_run is not None and run in (None, open_run.run):
            del self._open_runs[application_id]

    def close(self) -> None:
        """Drop all connections."""
        self._open_runs.clear()

    def forget(self, application_id: str) -> None:
        """Forget an application: fence its runs, then delete its internal topics and its offsets.

        The topic with the names of the others is deleted last.
        """
        self.end(application_id)
        admin, commits = self._admin(), commits_topic(application_id)
        known = topics.partition_counts(admin)
        if commits in known:
            BatchProducer(self._connection, application_id, application_id)
            leave_soon(self._connection, application_id, commits)
            marker = self._settled(application_id)
            for name in (*(marker.changelogs if marker else ()), commits):
                if name in known:
                    topics.delete_topic(admin, name)
        self._delete_group(application_id)

    def _settled(self, application_id: str) -> Marker | None:
        def end(writer: str) -> None:
            BatchProducer(self._connection, application_id, writer)  # ends the open transaction of this id

        return self._markers.settled(application_id, end)

    def _delete_group(self, application_id: str) -> None:
        """Delete an application's group and its offsets, if it exists, as soon as it has no member."""
        admin, until = self._admin(), time.monotonic() + self._connection.patience
        doing = f"delete the group '{application_id}'"
        while True:
            try:
                admin.answer(admin.client.delete_consumer_groups([application_id])[application_id], doing)
                return
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.GROUP_ID_NOT_FOUND:
                    return
                if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    where = f"cannot {doing} at {self._connection.address}"
                    raise not_allowed_error(self._connection, where, f"Delete on group '{application_id}'") from None
                if code not in _NOT_YET or time.monotonic() > until:
                    raise readable_error(error.args[0], self._connection, doing) from None
            time.sleep(STEP)

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(
        self,
        run: Run,
        batch: int,
        records: Iterable[PartitionRecords],
        positions: Offsets,
        partitions: Callable[[str], int],
    ) -> bool:
        """Write a batch's marker, positions and remaining records. Return False if the batch was written before."""
        if not is_whole(batch, 0):
            raise StreamsError(f"application '{run.application_id}': expected a batch of at least 0, got {batch!r}")
        open_run = self._open_runs.get(run.application_id)
        if open_run is None:
            raise StreamsError(
                f"run {run.number} of application '{run.application_id}' has ended because a batch failed"
            )
        if open_run.run != run or not (open_run.exactly_once or self.is_latest(run)):
            raise superseded_error(run.application_id)
        if batch <= open_run.marker.batch:
            return False
        read = {topic: dict(offsets) for topic, offsets in open_run.marker.positions.items()}
        for topic, offsets in positions.items():
            read.setdefault(topic, {}).update(offsets)
        open_run.group.poll(0)
        try:
            marker = Marker(run.number, run.lineage, batch, read, changelogs=open_run.marker.changelogs)
            self._write(open_run, marker, list(records), positions, partitions)
        except BaseException:
            self.end(run.application_id)
            raise
        return True

    def _write(
        self,
        open_run: OpenRun,
        marker: Marker,
        records: Iterable[PartitionRecords],
        positions: Offsets,
        partitions: Callable[[str], int],
    ) -> None:
        """Write all of it or nothing. Without exactly once, write until all of it is written."""
        producer = open_run.producer
        producer.begin()
        with producer.aborting_on_error():
            for topic, partition, outputs in records:
                producer.send(topic, partition, outputs, partitions)
            if not open_run.exactly_once:
                producer.flush()  # otherwise the batch could be marked although a record is refused
            self._mark(open_run, marker)
            offsets = [
                TopicPartition(topic, partition, offset)
                for topic, read in positions.items()
                for partition, offset in read.items()
            ]
            if offsets and open_run.exactly_once:
                producer.send_offsets(offsets, open_run.group.consumer_group_metadata())
            elif offsets:
                producer.flush()
                open_run.group.commit(offsets=offsets, asynchronous=False)
            producer.commit()
        open_run.marker = marker

    def _mark(self, open_run: OpenRun, marker: Marker) -> None:
        application_id = open_run.run.application_id
        record: RecordToWrite = (application_id.encode(), msgspec.json.encode(marker), int(time.time() * 1000), None)
        open_run.producer.send(commits_topic(application_id), 0, [record], lambda topic: 1)


def _next_run(last: Marker | None, lineage: str, changelogs: Iterable[str]) -> Marker:
    """Return the first marker of a new run."""
    if last is None:
        return Marker(1, lineage, NO_BATCH, changelogs=tuple(sorted(changelogs)))
    made = tuple(sorted({*last.changelogs, *changelogs}))
    if last.lineage != lineage:
        return Marker(last.run + 1, lineage, NO_BATCH, last.positions, changelogs=made)
    return msgspec.structs.replace(last, run=last.run + 1, changelogs=made)
