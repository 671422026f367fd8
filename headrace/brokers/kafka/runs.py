"""Applications on Kafka: their runs, and batches that are written once.

A batch is one transaction: its records, the offsets up to which its topics are read, and a marker, which is a record
in the topic `<application id>-commits`. The transactions of an application have one id: a new run's first act is to
take it over, and from then on the broker refuses what an older run sends, and takes back what it left half done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from headrace.brokers.broker import TopicInfo
from headrace.brokers.engine import NO_BATCH, Offsets, Run, Written, WrittenRecord
from headrace.brokers.kafka import topics
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.producing import choose
from headrace.brokers.kafka.ranges import RangeReader
from headrace.brokers.kafka.waiting import Patience
from headrace.brokers.kafka.wording import explained
from headrace.errors import StreamsError, TopicError

T = TypeVar("T")

_STEP = 0.1  # seconds between two looks at a client's errors
_MANY = 5_000
_TRANSACTION_MS = 60_000
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
_NOT_YET = (  # for a moment: the broker has just started, or the group has moved
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


class Marker(msgspec.Struct, frozen=True):
    """What is known of an application: its latest run, the last batch that was written, and what that had read."""

    run: int
    lineage: str
    batch: int
    positions: dict[str, dict[int, int]] = {}


@dataclass
class Session:
    """What a run has open."""

    run: Run
    producer: Producer
    group: Consumer
    exactly_once: bool
    batch: int
    positions: dict[str, dict[int, int]]
    failed: KafkaError | None = None
    """Why a record was not taken."""

    def note(self, error: KafkaError | None, message: Message) -> None:
        """Take note of a record that was not taken: the client's `on_delivery`."""
        if error is not None and self.failed is None:
            self.failed = error


class Runs:
    """The runs of applications that this process has begun, and what is known of others."""

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._connection = connection
        self._admin = admin
        self._patience = Patience(connection)
        self._sessions: dict[str, Session] = {}

    # -- what is known ------------------------------------------------------------------------------------------------

    def marker(self, application_id: str) -> Marker | None:
        """Return the last marker that was committed; wait for what is still open."""
        admin, name = self._admin(), commits_topic(application_id)
        try:
            found = topics.find_topic(admin, name)
        except TopicError:
            return None
        end = self._settled_end(admin, found)
        first = topics.first_offsets(admin, found)[0]
        reader = RangeReader(self._connection)
        try:
            back = 64
            while True:
                start = max(first, end - back)
                last = None
                for page in reader.rows(name, 0, start, end):
                    last = page[-1]
                if last is not None and last[3] is not None:
                    return msgspec.json.decode(last[3], type=Marker)
                if start == first:
                    return None
                back *= 8
        finally:
            reader.close()

    def _settled_end(self, admin: Admin, topic: topics.Topic) -> int:
        """Return the end of a topic when no transaction is open there any more."""
        until = time.monotonic() + self._connection.patience + _TRANSACTION_MS / 1000
        while True:
            committed = topics.end_offsets(admin, topic, read_committed=True)[0]
            if committed == topics.end_offsets(admin, topic)[0]:
                return committed
            if time.monotonic() > until:
                raise StreamsError(f"topic '{topic.name}': a transaction has been open for too long")
            time.sleep(_STEP)

    # -- runs ---------------------------------------------------------------------------------------------------------

    def begin(self, application_id: str, lineage: str, *, exactly_once: bool) -> Run:
        """Begin a run of an application: from now on no earlier one can write."""
        self.end(application_id)
        producer = self._open(application_id, exactly_once)
        known = self.marker(application_id)
        number = 1 if known is None else known.run + 1
        batch = known.batch if known is not None and known.lineage == lineage else NO_BATCH
        run = Run(application_id, number, lineage)
        group = self._connection.consumer(**{"group.id": application_id, "error_cb": self._patience})
        positions = known.positions if known is not None else {}
        session = Session(run, producer, group, exactly_once, batch, positions)
        self._in_transaction(session, lambda: self._mark(session, batch))
        self._sessions[application_id] = session
        return run

    def end(self, application_id: str) -> None:
        """Let go of what this process has open for an application."""
        session = self._sessions.pop(application_id, None)
        if session is not None:
            session.group.close()

    def close(self) -> None:
        """Let go of everything."""
        for application_id in list(self._sessions):
            self.end(application_id)

    def forget(self, application_id: str) -> None:
        """Forget an application: fence what runs of it, then delete its internal topics and its offsets."""
        self.end(application_id)
        admin = self._admin()
        known = topics.all_topics(admin)
        mine = internal_topics(application_id, known)
        if commits_topic(application_id) in mine:
            self._open(application_id, exactly_once=True)
        for name in sorted(mine):
            topics.delete_topic(admin, name)
        self._about_group(application_id, "delete", lambda client: client.delete_consumer_groups([application_id]))

    def _about_group(self, application_id: str, doing: str, ask: Callable[[AdminClient], dict[str, Any]]) -> Any:
        """Ask for something about an application's group; return None when there is no such group."""
        admin, until = self._admin(), time.monotonic() + self._connection.patience
        while True:
            try:
                return admin.answer(ask(admin.client)[application_id], f"{doing} the group '{application_id}'")
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.GROUP_ID_NOT_FOUND:
                    return None
                if code not in _NOT_YET or time.monotonic() > until:
                    doing = f"{doing} the group '{application_id}'"
                    raise explained(error.args[0], self._connection, doing) from None
            time.sleep(_STEP)

    def _open(self, application_id: str, exactly_once: bool) -> Producer:
        settings: dict[str, Any] = {
            "error_cb": self._patience,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 256 << 10,
            "delivery.report.only.error": True,
        }
        if exactly_once:
            timeout = self._connection.settings.get("transaction.timeout.ms", _TRANSACTION_MS)
            settings |= {
                "transactional.id": application_id,
                "transaction.timeout.ms": timeout,
                "message.timeout.ms": timeout,
            }
        producer = self._connection.producer(**settings)
        if exactly_once:
            self._insist(application_id, "begin to write", producer.init_transactions)
        return producer

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(
        self, run: Run, batch: int, records: Iterable[Written], positions: Offsets, partitions: Callable[[str], int]
    ) -> bool:
        """Write a batch in one transaction; tell whether that was to be done."""
        session = self._sessions.get(run.application_id)
        if session is None or session.run != run:
            raise _superseded(run.application_id)
        if batch <= session.batch:
            return False
        parts = list(records)
        for topic, places in positions.items():
            session.positions.setdefault(topic, {}).update(places)

        def write() -> None:
            for topic, partition, written in parts:
                self._send(session, topic, partition, written, partitions)
            self._mark(session, batch)
            offsets = [
                TopicPartition(topic, number, offset)
                for topic, places in positions.items()
                for number, offset in places.items()
            ]
            if not session.exactly_once:
                self._flush(session)
            if offsets and session.exactly_once:
                group = session.group.consumer_group_metadata()
                self._insist(
                    run.application_id,
                    "commit the offsets",
                    lambda timeout: session.producer.send_offsets_to_transaction(offsets, group, timeout),
                )
            elif offsets:
                session.group.commit(offsets=offsets, asynchronous=False)

        self._in_transaction(session, write)
        session.batch = batch
        return True

    def _in_transaction(self, session: Session, write: Callable[[], None]) -> None:
        """Do all of it or nothing; without exactly once, until it is done."""
        producer, application_id = session.producer, session.run.application_id
        session.failed = None
        try:
            if session.exactly_once:
                producer.begin_transaction()
            write()
            if session.exactly_once:
                self._insist(application_id, "commit", producer.commit_transaction)
            else:
                self._flush(session)
        except BaseException as error:
            self._give_up(session)
            if session.failed is not None:
                raise explained(session.failed, self._connection, "write a batch") from None
            if isinstance(error, KafkaException):
                raise self._explained(application_id, "write a batch", error.args[0]) from None
            raise

    def _give_up(self, session: Session) -> None:
        """Take back what was sent, as far as the broker can be reached; the next run does the rest."""
        self._sessions.pop(session.run.application_id, None)
        session.producer.purge()
        if session.exactly_once:
            try:
                session.producer.abort_transaction(_STEP * 50)
            except KafkaException:
                return

    def _send(
        self,
        session: Session,
        topic: str,
        partition: int | None,
        records: Sequence[WrittenRecord],
        partitions: Callable[[str], int],
    ) -> None:
        if any(record[2] == 0 for record in records):
            raise TopicError(
                f"topic '{topic}': Kafka's client library takes the timestamp 0 for 'now', so it is refused"
            )
        if partition is None:
            chosen = choose([record[0] for record in records], partitions(topic), iter(range(len(records))))
            for number in sorted(set(chosen)):
                mine = [record for record, place in zip(records, chosen) if place == number]
                self._send(session, topic, number, mine, partitions)
            return
        produce, note = session.producer.produce, session.note
        for number, (key, value, timestamp, headers) in enumerate(records):
            said: Any = headers or None
            while True:
                try:
                    produce(topic, value, key, partition, on_delivery=note, timestamp=timestamp, headers=said)
                    break
                except BufferError:  # its queue is full
                    session.producer.poll(_STEP)
                    self._check(session)
            if number % _MANY == 0:
                session.producer.poll(0)

    def _mark(self, session: Session, batch: int) -> None:
        run = session.run
        value = msgspec.json.encode(Marker(run.run, run.lineage, batch, session.positions))
        record: WrittenRecord = (run.application_id.encode(), value, int(time.time() * 1000), None)
        self._send(session, commits_topic(run.application_id), 0, [record], lambda topic: 1)

    def _flush(self, session: Session) -> None:
        self._patience.begin()
        while session.producer.flush(_STEP):
            self._check(session)
        self._check(session)

    def _check(self, session: Session) -> None:
        if session.failed is not None:
            raise KafkaException(session.failed)
        self._patience.check("write a batch")

    def _insist(self, application_id: str, doing: str, call: Callable[..., T]) -> T:
        """Call until the broker has answered; a step that timed out may be taken again."""
        self._patience.renew()
        while True:
            try:
                return call(_STEP * 10)
            except KafkaException as error:
                problem = error.args[0]
                if not problem.retriable():
                    raise self._explained(application_id, doing, problem) from None
                self._patience.check(doing)

    def _explained(self, application_id: str, doing: str, problem: KafkaError) -> Exception:
        if problem.code() in _FENCED or (problem.fatal() and "fenced" in problem.str().lower()):
            return _superseded(application_id)
        return explained(problem, self._connection, doing)


def make_topics(admin: Admin, wanted: Iterable[TopicInfo], replication_factor: int) -> None:
    """Create the topics that are missing."""
    known = topics.all_topics(admin)
    for info in wanted:
        if info.name not in known:
            try:
                topics.create_topic(admin, info, replication_factor=replication_factor)
            except TopicError:
                if info.name not in topics.all_topics(admin):  # else somebody else was quicker
                    raise


def commits_topic(application_id: str) -> str:
    """Name the topic that holds an application's markers."""
    return f"{application_id}-commits"


def internal_topics(application_id: str, known: Iterable[str]) -> list[str]:
    """Return the topics that belong to an application and to nobody else.

    >>> internal_topics("a", ["a-commits", "a-x-changelog", "a-b-commits", "a-b-x-changelog", "a-out"])
    ['a-commits', 'a-x-changelog']
    """
    names = set(known)
    mine = {name for name in names if name.startswith(f"{application_id}-") and name.endswith("-changelog")}
    others = {name.removesuffix("commits") for name in names if name.endswith("-commits")}
    longer = tuple(other for other in others if len(other) > len(application_id) + 1)
    mine = {name for name in mine if not name.startswith(longer)}
    return sorted(mine | ({commits_topic(application_id)} & names))


def _superseded(application_id: str) -> StreamsError:
    return StreamsError(f"application '{application_id}' was started again elsewhere: this one stops")
