"""Applications on Kafka: their runs, and batches that are written once.

Tasks write what they put out where they run, in transactions of their own (tasks.py). When all of them have, the driver
writes the offsets up to which topics are read, and a marker that says that the batch is in. A run's first act is to
take over the driver's transactional id and the application's membership in its consumer group: from then on the broker
refuses what an older run sends, and takes back what it left half done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.brokers.batches import Offsets
from headrace.brokers.broker import TopicInfo
from headrace.brokers.checking import is_whole
from headrace.brokers.kafka import topics
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.batch_producer import STEP, Transactions, superseded
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import explained, not_allowed
from headrace.brokers.kafka.markers import Marker, Markers, commits_topic
from headrace.brokers.kafka.membership import join, leave_soon
from headrace.brokers.kafka.task_transactions import KafkaPermit
from headrace.brokers.runs import NO_BATCH, Run
from headrace.brokers.writing import PartitionRecords
from headrace.errors import StreamsError, TopicError, UnavailableError
from headrace.raw_records import RecordToWrite

_NOT_YET = (  # for a moment: the broker has just started, the group has moved, or its last member is to be given up
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NON_EMPTY_GROUP,
)


@dataclass
class Session:
    """What a run has open."""

    run: Run
    producer: Transactions
    group: Consumer
    """Never closed but let go of, like all consumers here: to close one may wait for ever while no broker is there."""
    marker: Marker
    """The last one that was written."""

    @property
    def exactly_once(self) -> bool:
        return self.producer.id is not None


class Runs:
    """The runs of applications that this process has begun, and what is known of others."""

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._connection = connection
        self._admin = admin
        self._markers = Markers(connection, admin)
        self._sessions: dict[str, Session] = {}

    def marker(self, application_id: str) -> Marker | None:
        """Return the last marker that is committed."""
        return self._markers.last(application_id)

    def is_latest(self, run: Run) -> bool:
        """Tell whether no later run has begun, and the application was not forgotten."""
        known = self.marker(run.application_id)
        return known is not None and known.run == run.number

    # -- runs ---------------------------------------------------------------------------------------------------------

    def begin(self, application_id: str, lineage: str, *, exactly_once: bool, changelogs: Iterable[str]) -> Run:
        """Begin a run of an application: from now on no earlier one can write."""
        self.end(application_id)
        producer = Transactions(self._connection, application_id, application_id if exactly_once else None)
        group = join(self._connection, application_id, commits_topic(application_id))
        marker = _next_run(self._settled(application_id), lineage, changelogs)
        run = Run(application_id, marker.run, lineage)
        session = Session(run, producer, group, marker)
        self._write(session, marker, (), {}, lambda topic: 1)
        producer.is_latest = lambda: self.is_latest(run)
        self._sessions[application_id] = session
        return run

    def permit(self, run: Run) -> KafkaPermit:
        """Return what tasks need to write where they run."""
        session = self._sessions[run.application_id]
        member = session.group.consumer_group_metadata() if session.exactly_once else None
        return KafkaPermit(run, member, session.marker.batch, session.marker.done)

    def end(self, application_id: str, run: Run | None = None) -> None:
        """Let go of what this process has open for an application, or for one run of it."""
        session = self._sessions.get(application_id)
        if session is not None and run in (None, session.run):
            del self._sessions[application_id]

    def close(self) -> None:
        """Let go of everything."""
        self._sessions.clear()

    def forget(self, application_id: str) -> None:
        """Forget an application: fence what runs of it, then delete its internal topics and its offsets.

        The one with the names of the others goes last.
        """
        self.end(application_id)
        admin, commits = self._admin(), commits_topic(application_id)
        known = topics.partition_counts(admin)
        if commits in known:
            Transactions(self._connection, application_id, application_id)
            leave_soon(self._connection, application_id, commits)
            marker = self._settled(application_id)
            for name in (*(marker.changelogs if marker else ()), commits):
                if name in known:
                    topics.delete_topic(admin, name)
        self._delete_group(application_id)

    def _settled(self, application_id: str) -> Marker | None:
        def end(writer: str) -> None:
            Transactions(self._connection, application_id, writer)  # whoever has that id now, its transaction is over

        return self._markers.settled(application_id, end)

    def _delete_group(self, application_id: str) -> None:
        """Delete an application's group with its offsets, if there is one, as soon as it has no member."""
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
                    raise not_allowed(self._connection, where, f"Delete on group '{application_id}'") from None
                if code not in _NOT_YET or time.monotonic() > until:
                    raise explained(error.args[0], self._connection, doing) from None
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
        """Say that a batch is in, with the records that no task has written; tell whether that was to be done."""
        if not is_whole(batch, 0):
            raise StreamsError(f"application '{run.application_id}': expected a batch of at least 0, got {batch!r}")
        session = self._sessions.get(run.application_id)
        if session is None:
            raise StreamsError(f"run {run.number} of application '{run.application_id}' is over: a batch of it failed")
        if session.run != run or not (session.exactly_once or self.is_latest(run)):
            raise superseded(run.application_id)
        if batch <= session.marker.batch:
            return False
        read = {topic: dict(places) for topic, places in session.marker.positions.items()}
        for topic, places in positions.items():
            read.setdefault(topic, {}).update(places)
        session.group.poll(0)
        try:
            marker = Marker(run.number, run.lineage, batch, read, changelogs=session.marker.changelogs)
            self._write(session, marker, list(records), positions, partitions)
        except BaseException:
            self.end(run.application_id)
            raise
        return True

    def _write(
        self,
        session: Session,
        marker: Marker,
        records: Iterable[PartitionRecords],
        positions: Offsets,
        partitions: Callable[[str], int],
    ) -> None:
        """Do all of it or nothing; without exactly once, until it is done."""
        producer = session.producer
        producer.begin()
        with producer.explaining():
            for topic, partition, written in records:
                producer.send(topic, partition, written, partitions)
            if not session.exactly_once:
                producer.flush()  # or else the batch could be marked, and a record of it be refused
            self._mark(session, marker)
            offsets = [
                TopicPartition(topic, partition, offset)
                for topic, places in positions.items()
                for partition, offset in places.items()
            ]
            if offsets and session.exactly_once:
                producer.send_offsets(offsets, session.group.consumer_group_metadata())
            elif offsets:
                producer.flush()
                session.group.commit(offsets=offsets, asynchronous=False)
            producer.commit()
        session.marker = marker

    def _mark(self, session: Session, marker: Marker) -> None:
        application_id = session.run.application_id
        record: RecordToWrite = (application_id.encode(), msgspec.json.encode(marker), int(time.time() * 1000), None)
        session.producer.send(commits_topic(application_id), 0, [record], lambda topic: 1)


def _next_run(last: Marker | None, lineage: str, changelogs: Iterable[str]) -> Marker:
    """Return the marker of a run that begins."""
    if last is None:
        return Marker(1, lineage, NO_BATCH, changelogs=tuple(sorted(changelogs)))
    made = tuple(sorted({*last.changelogs, *changelogs}))
    if last.lineage != lineage:
        return Marker(last.run + 1, lineage, NO_BATCH, last.positions, changelogs=made)
    return msgspec.structs.replace(last, run=last.run + 1, changelogs=made)


def make_topics(
    admin: Admin, wanted: Iterable[TopicInfo], replication_factor: int, settings: Mapping[str, str] | None = None
) -> None:
    """Create the topics that are missing."""
    known = topics.partition_counts(admin)
    for info in wanted:
        if info.name not in known:
            try:
                topics.create_topic(admin, info, replication_factor=replication_factor, settings=settings)
            except (TopicError, UnavailableError):  # it may be there: somebody was quicker, or it may not be seen
                if topics.described(admin, info.name, "Read or Write, or Create if there is none,") is None:
                    raise
