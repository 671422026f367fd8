"""Applications on Kafka: their runs, and batches that are written once.

A batch is one transaction: its records, the offsets up to which its topics are read, and a marker, which is a record
in the topic `<application id>-commits`. The transactions of an application have one id: a new run's first act is to
take it over, and from then on the broker refuses what an older run sends, and takes back what it left half done.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

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
from headrace.brokers.checking import is_whole
from headrace.brokers.engine import NO_BATCH, Offsets, Run, Written, WrittenRecord
from headrace.brokers.kafka import topics
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.producing import choose
from headrace.brokers.kafka.ranges import RangeReader
from headrace.brokers.kafka.settings import number
from headrace.brokers.kafka.waiting import Patience
from headrace.brokers.kafka.wording import UNKNOWN_TOPIC, explained, explained_in_batch
from headrace.errors import StreamsError, SupersededError, TopicError, UnavailableError

_STEP = 0.1  # seconds between two looks at a client's errors
_MANY = 5_000
_TRANSACTION_MS = 60_000
_UNKNOWN_TOPIC_MS = 10_000  # a topic that is new may not be known everywhere yet
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
_WRONG_BEFORE = (KafkaError._STATE, KafkaError._FATAL)  # the client takes no more records, after another error
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
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
    """Never closed but let go of, like all consumers here: to close one may wait for ever while no broker is there."""
    exactly_once: bool
    batch: int
    positions: dict[str, dict[int, int]]
    turns: dict[str, Iterator[int]] = field(default_factory=lambda: defaultdict(count))
    """The partitions of records without a key, by topic."""
    begun: float = 0
    """When the transaction was begun. By the clock: a machine that sleeps sleeps on, but its transaction ends."""
    written: set[str] = field(default_factory=set)
    """The topics that were written to."""
    failed: KafkaError | None = None
    """Why a record was not taken."""
    failed_topic: str | None = None

    def note(self, error: KafkaError | None, message: Message) -> None:
        """Take note of a record that was not taken: the client's `on_delivery`."""
        if error is not None and error.code() not in _PURGED and self.failed is None:
            self.failed, self.failed_topic = error, message.topic()


class Runs:
    """The runs of applications that this process has begun, and what is known of others."""

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._connection = connection
        self._admin = admin
        self._patience = Patience(connection)
        self._transaction_ms = number(connection.settings, "transaction.timeout.ms", _TRANSACTION_MS)
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
        until = time.monotonic() + self._connection.patience + self._transaction_ms / 1000
        while True:
            committed = topics.end_offsets(admin, topic, read_committed=True)[0]
            if committed == topics.end_offsets(admin, topic)[0]:
                return committed
            if time.monotonic() > until:
                raise StreamsError(
                    f"topic '{topic.name}': a transaction has been open for too long, and its producer is gone. Hint: "
                    "Kafka's kafka-transactions.sh shows it (find-hanging) and ends it (abort)"
                )
            time.sleep(_STEP)

    # -- runs ---------------------------------------------------------------------------------------------------------

    def begin(self, application_id: str, lineage: str, *, exactly_once: bool) -> Run:
        """Begin a run of an application: from now on no earlier one can write."""
        self.end(application_id)
        producer = self._open(application_id, exactly_once)
        known = self.marker(application_id)
        batch = known.batch if known is not None and known.lineage == lineage else NO_BATCH
        run = Run(application_id, 1 if known is None else known.run + 1, lineage)
        group = self._connection.consumer(**{"group.id": application_id, "error_cb": self._patience})
        positions = known.positions if known is not None else {}
        session = Session(run, producer, group, exactly_once, batch, positions)
        self._in_transaction(session, lambda: self._mark(session, batch))
        self._sessions[application_id] = session
        return run

    def end(self, application_id: str) -> None:
        """Let go of what this process has open for an application."""
        self._sessions.pop(application_id, None)

    def close(self) -> None:
        """Let go of everything."""
        self._sessions.clear()

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
            "topic.metadata.propagation.max.ms": _UNKNOWN_TOPIC_MS,
        }
        if exactly_once:
            settings |= {
                "transactional.id": application_id,
                "transaction.timeout.ms": self._transaction_ms,
                "message.timeout.ms": self._transaction_ms,
            }
        producer = self._connection.producer(**settings)
        if exactly_once:
            doing = "begin to write"
            try:
                self._insist(producer, doing, producer.init_transactions)
            except KafkaException as error:
                if _is_fenced(error.args[0]):
                    raise _superseded(application_id) from None
                raise explained_in_batch(error.args[0], self._connection, doing, application_id, ()) from None
        return producer

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(
        self, run: Run, batch: int, records: Iterable[Written], positions: Offsets, partitions: Callable[[str], int]
    ) -> bool:
        """Write a batch in one transaction; tell whether that was to be done."""
        if not is_whole(batch, 0):
            raise StreamsError(f"application '{run.application_id}': expected a batch of at least 0, got {batch!r}")
        session = self._sessions.get(run.application_id)
        if session is None:
            raise StreamsError(f"run {run.run} of application '{run.application_id}' is over: a batch of it failed")
        if session.run != run or not (session.exactly_once or self._is_latest(run)):
            raise _superseded(run.application_id)
        if batch <= session.batch:
            return False
        parts = list(records)
        for topic, places in positions.items():
            session.positions.setdefault(topic, {}).update(places)
        offsets = [
            TopicPartition(topic, partition, offset)
            for topic, places in positions.items()
            for partition, offset in places.items()
        ]

        def write() -> None:
            for topic, partition, written in parts:
                self._send(session, topic, partition, written, partitions)
            if not session.exactly_once:
                self._flush(session)  # or else the batch could be marked, and a record of it be refused
            self._mark(session, batch)
            if offsets and session.exactly_once:
                group = session.group.consumer_group_metadata()
                self._insist(
                    session.producer,
                    "commit the offsets",
                    lambda timeout: session.producer.send_offsets_to_transaction(offsets, group, timeout),
                )
            elif offsets:
                self._flush(session)
                session.group.commit(offsets=offsets, asynchronous=False)

        self._in_transaction(session, write)
        session.batch = batch
        return True

    def _is_latest(self, run: Run) -> bool:
        """Tell whether no later run has begun. With transactions the broker sees to that."""
        known = self.marker(run.application_id)
        return known is not None and known.run == run.run

    def _in_transaction(self, session: Session, write: Callable[[], None]) -> None:
        """Do all of it or nothing; without exactly once, until it is done."""
        producer = session.producer
        session.failed, session.begun = None, time.time()
        self._patience.renew()
        try:
            if session.exactly_once:
                producer.begin_transaction()
            write()
            if session.exactly_once:
                self._insist(producer, "commit", producer.commit_transaction)
            else:
                self._flush(session)
        except BaseException as error:
            begun = session.run.application_id in self._sessions
            problem = _reason(session, error.args[0]) if isinstance(error, KafkaException) else None
            silent = isinstance(error, UnavailableError) and self._patience.last is None
            self._give_up(session)
            # A topic that was deleted is told, or tried again and again: was the application forgotten?
            gone = silent if problem is None else problem.code() in UNKNOWN_TOPIC
            if gone and begun and not self._is_latest(session.run):
                raise _superseded(session.run.application_id) from None
            if problem is not None:
                raise self._explained(session, problem) from None
            raise

    def _give_up(self, session: Session) -> None:
        """Take back what was sent, as far as the broker can be reached; the next run does the rest."""
        self._sessions.pop(session.run.application_id, None)
        session.producer.purge()
        if session.exactly_once:
            with suppress(KafkaException):
                session.producer.abort_transaction(_STEP * 50)

    def _send(
        self,
        session: Session,
        topic: str,
        partition: int | None,
        records: Sequence[WrittenRecord],
        partitions: Callable[[str], int],
    ) -> None:
        session.written.add(topic)
        if any(record[2] == 0 for record in records):
            raise TopicError(
                f"topic '{topic}': Kafka's client library takes the timestamp 0 for 'now', so it is refused"
            )
        if partition is None:
            chosen = choose([record[0] for record in records], partitions(topic), session.turns[topic])
            for one in sorted(set(chosen)):
                mine = [record for record, place in zip(records, chosen) if place == one]
                self._send(session, topic, one, mine, partitions)
            return
        produce, note = session.producer.produce, session.note
        for sent, (key, value, timestamp, headers) in enumerate(records):
            said: Any = headers or None
            while True:
                try:
                    produce(topic, value, key, partition, on_delivery=note, timestamp=timestamp, headers=said)
                    break
                except BufferError:  # its queue is full
                    waiting = len(session.producer)
                    session.producer.poll(_STEP)
                    self._check(session, waiting)
                except KafkaException as error:
                    if error.args[0].code() not in _WRONG_BEFORE:
                        session.failed, session.failed_topic = error.args[0], topic
                    raise
            if sent % _MANY == 0:
                session.producer.poll(0)

    def _mark(self, session: Session, batch: int) -> None:
        run = session.run
        value = msgspec.json.encode(Marker(run.run, run.lineage, batch, session.positions))
        record: WrittenRecord = (run.application_id.encode(), value, int(time.time() * 1000), None)
        self._send(session, commits_topic(run.application_id), 0, [record], lambda topic: 1)

    def _flush(self, session: Session) -> None:
        self._patience.renew()
        waiting = len(session.producer)
        while session.producer.flush(_STEP):
            waiting = self._check(session, waiting)
        self._check(session, waiting)

    def _check(self, session: Session, waiting: int) -> int:
        if session.failed is not None:
            raise KafkaException(session.failed)
        return self._still_waiting(session.producer, waiting, "write a batch")

    def _insist(self, producer: Producer, doing: str, call: Callable[[float], object]) -> None:
        """Call until the broker has answered; a step that timed out may be taken again."""
        self._patience.renew()
        waiting = len(producer)
        while True:
            try:
                call(_STEP * 10)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                waiting = self._still_waiting(producer, waiting, doing)

    def _still_waiting(self, producer: Producer, before: int, doing: str) -> int:
        """Return how many records still wait to be written; raise when none was for too long."""
        producer.poll(0)  # errors of its connections are told then
        waiting = len(producer)
        if waiting < before:
            self._patience.renew()
        self._patience.check(doing)
        return waiting

    def _explained(self, session: Session, problem: KafkaError) -> Exception:
        """Return the error to raise; a record that was not taken tells more than what came of it."""
        if _is_fenced(problem) or (session.failed is not None and _is_fenced(session.failed)):
            return self._fenced(session)
        if session.failed is None:
            application_id = session.run.application_id
            return explained_in_batch(problem, self._connection, "write a batch", application_id, session.written)
        topic = session.failed_topic
        return explained(session.failed, self._connection, f"write to topic '{topic}'", topic, "Write")

    def _fenced(self, session: Session) -> StreamsError:
        """Tell whether there is a newer run, or the broker has taken back a transaction that was open too long."""
        run = session.run
        if time.time() - session.begun > self._transaction_ms / 1000 and self._is_latest(run):
            return StreamsError(
                f"application '{run.application_id}': the broker has taken back a batch, for it was not written "
                f"within {self._transaction_ms} ms. The setting transaction.timeout.ms says how long it may take"
            )
        return _superseded(run.application_id)


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


def _reason(session: Session, problem: KafkaError) -> KafkaError:
    """Return what was wrong in the first place: to commit fails with that."""
    if session.exactly_once and problem.code() in _WRONG_BEFORE:
        try:
            session.producer.commit_transaction(_STEP)
        except KafkaException as error:
            return cast(KafkaError, error.args[0])
    return problem


def _is_fenced(problem: KafkaError) -> bool:
    return problem.code() in _FENCED or (problem.fatal() and "fenced" in problem.str().lower())


def _superseded(application_id: str) -> SupersededError:
    return SupersededError(f"application '{application_id}' was started again elsewhere: this one stops")
