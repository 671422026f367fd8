"""Transactions: records that are there all together or not at all.

A batch is written by several producers, each with an id of its own: one in every process where tasks run, for what
they put out, and one in the process that drives them, which says in the end that the batch is in.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, repeat
from operator import length_hint
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import UNKNOWN_TOPIC, explained, explained_in_batch, no_answer
from headrace.brokers.kafka.patience import Patience, answered
from headrace.brokers.kafka.settings import number
from headrace.errors import StreamsError, SupersededError, TopicError, UnavailableError
from headrace.raw_records import RecordColumns, RecordToWrite

_OFFSETS_SECONDS = 10.0
"""How long the broker may take to commit offsets."""
STEP = 0.1  # seconds between two looks at a client's errors
_MANY = 5_000
_TRANSACTION_MS = 60_000
_UNKNOWN_TOPIC_MS = 10_000  # a topic that is new may not be known everywhere yet
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
_REPLACED = (KafkaError.FENCED_INSTANCE_ID,)
_FORGOTTEN = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.INVALID_PRODUCER_ID_MAPPING)
_WRONG_BEFORE = (KafkaError._STATE, KafkaError._FATAL)  # the client takes no more records, after another error
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_REFUSED = re.compile(r"ProduceRequest for (\S+) \[\d+\] ")  # what a transaction says of records that were not taken
_SETTINGS = {
    "partitioner": "murmur2",  # as a Java client has it
    "delivery.report.only.error": True,
}
_DEFAULTS = {
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "topic.metadata.propagation.max.ms": _UNKNOWN_TOPIC_MS,
}
"""What users may set otherwise."""
_BY_KEY = -1  # the client chooses, in a fraction of the time that it takes here


class Transactions:
    """One producer of an application's batches, for one thread. After an error it is of no more use.

    Without an id it writes without transactions: until all is there.
    """

    def __init__(self, connection: Connection, application_id: str, transactional_id: str | None) -> None:
        """Open it: whoever had that id before can write no more."""
        self.id = transactional_id
        self.is_latest: Callable[[], bool] = lambda: True
        """Tells whether no later run of the application has begun."""
        self._connection = connection
        self._application_id = application_id
        self._patience = Patience(connection)
        self._limit_ms = transaction_ms(connection)
        self._turns: dict[str, Iterator[int]] = defaultdict(count)
        """The partitions of records without a key, by topic."""
        self._begun = 0.0
        """When the transaction was begun. By the clock: a machine that sleeps sleeps on, but its transaction ends."""
        self._written: set[tuple[str, int]] = set()
        """The topics and partitions that were written to."""
        self._failed: KafkaError | None = None
        """Why a record was not taken."""
        self._failed_topic: str | None = None
        self._is_over = False
        self.producer = self._open()

    def _open(self) -> Producer:
        settings: dict[str, Any] = {**_DEFAULTS, "message.timeout.ms": self._limit_ms} if self.id else {**_DEFAULTS}
        settings |= self._connection.settings
        settings |= {"error_cb": self._patience, **_SETTINGS}
        if self.id is not None:
            settings |= {"transactional.id": self.id, "transaction.timeout.ms": self._limit_ms}
        producer = self._connection.producer(**settings)
        if self.id is not None:
            doing = "begin to write"
            try:
                self._insist(producer, doing, producer.init_transactions)
            except KafkaException as error:
                if _is_fenced(error.args[0]):
                    raise superseded(self._application_id) from None
                raise self._explained_as_a_whole(error.args[0], doing) from None
        return producer

    # -- writing ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a batch."""
        self._failed, self._begun = None, time.time()
        self._patience.renew()
        if self.id is not None:
            with self.explaining():
                self.producer.begin_transaction()

    def send(
        self,
        topic: str,
        partition: int | None,
        records: Sequence[RecordToWrite],
        partitions: Callable[[str], int],
    ) -> None:
        """Write records to a topic partition; without a partition the keys decide, or those without come in turn."""
        rows = RecordColumns.of(records)
        if not all(rows.timestamps):
            raise TopicError(
                f"topic '{topic}': Kafka's client library takes the timestamp 0 for 'now', so it is refused"
            )
        to = self._destinations(topic, partition, rows.keys, partitions)
        sent = 0
        while sent < len(rows):
            piece = slice(sent, sent + _MANY)
            keys = iter(rows.keys[piece])
            try:
                self._produce(topic, rows, piece, keys, to)
                sent = piece.stop
                self.producer.poll(0)
            except BufferError:  # its queue is full
                sent = min(piece.stop, len(rows)) - length_hint(keys) - 1
                waiting = len(self.producer)
                self.producer.poll(STEP)
                self._check(waiting)
            except KafkaException as error:
                if error.args[0].code() not in _WRONG_BEFORE:
                    self._failed, self._failed_topic = error.args[0], topic
                raise

    def _produce(
        self, topic: str, rows: RecordColumns, piece: slice, keys: Iterator[bytes | None], to: int | Sequence[int]
    ) -> None:
        """Give a piece of the records to the client, whose call is most of what writing takes.

        So there is no loop around it; no argument has a name; and it tells what became of each record only where there
        is no transaction to tell it.
        """
        produce: Any = self.producer.produce
        headers = rows.headers[piece]
        calls = map(
            produce,
            repeat(topic),
            rows.values[piece],
            keys,
            repeat(to) if isinstance(to, int) else to[piece],
            repeat(self._note if self.id is None else None),
            repeat(None),
            rows.timestamps[piece],
            [one or None for one in headers] if any(headers) else repeat(None),
        )
        deque(calls, maxlen=0)

    def _destinations(
        self, topic: str, partition: int | None, keys: Sequence[bytes | None], partitions: Callable[[str], int]
    ) -> int | Sequence[int]:
        """Return the partition of all records, or of each."""
        if partition is not None or all(keys) or None not in keys:
            self._written.add((topic, partition or 0))
            return _BY_KEY if partition is None else partition
        known, turns = partitions(topic), self._turns[topic]
        to = [next(turns) % known if key is None else _BY_KEY for key in keys]
        self._written.update((topic, max(one, 0)) for one in set(to))
        return to

    def flush(self) -> None:
        """Wait until all that was sent is with the broker."""
        self._patience.renew()
        waiting = len(self.producer)
        while self.producer.flush(STEP):
            waiting = self._check(waiting)
        self._check(waiting)

    def send_offsets(self, offsets: Iterable[TopicPartition], group: Any) -> None:
        """Have offsets of a group committed together with the records, if its member may do so still."""
        places, doing = list(offsets), "commit the offsets"

        def call(timeout: float) -> None:
            # librdkafka may never come back from this one when the group's broker was away, whatever the timeout is:
            # github.com/confluentinc/librdkafka/issues/5456 and 5511.
            if not answered(
                lambda: self.producer.send_offsets_to_transaction(places, group, timeout), _OFFSETS_SECONDS
            ):
                raise no_answer(self._connection, doing, self._patience.last)

        self._insist(self.producer, doing, call)

    def commit(self) -> None:
        """End the batch."""
        if self.id is not None:
            self._insist(self.producer, "commit", self.producer.commit_transaction)
        else:
            self.flush()

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Turn an error of the statements under it into one that helps, and take the batch back."""
        try:
            yield
        except BaseException as error:
            told = self._told(error)
            if told is error:
                raise
            raise told from None

    def give_up(self) -> None:
        """Take back what was sent, as far as the broker can be reached; the next run does the rest."""
        if self._is_over:
            return
        self._is_over = True
        self.producer.purge()
        if self.id is not None:
            with suppress(KafkaException):
                self.producer.abort_transaction(STEP * 50)

    # -- what fails ---------------------------------------------------------------------------------------------------

    def _told(self, error: BaseException) -> BaseException:
        """Give up; return the error to raise for the one that ended the batch."""
        problem = self._reason(error.args[0]) if isinstance(error, KafkaException) else None
        silent = isinstance(error, UnavailableError) and self._patience.last is None
        self.give_up()
        # A topic that was deleted is told, or tried again and again: was the application forgotten?
        gone = silent if problem is None else problem.code() in UNKNOWN_TOPIC
        if gone and not self.is_latest():
            return superseded(self._application_id)
        return error if problem is None else self._explained(problem)

    def _reason(self, problem: KafkaError) -> KafkaError:
        """Return what was wrong in the first place: to commit fails with that."""
        if self.id is not None and problem.code() in _WRONG_BEFORE:
            try:
                self.producer.commit_transaction(STEP)
            except KafkaException as error:
                return cast(KafkaError, error.args[0])
        return problem

    def _explained(self, problem: KafkaError) -> Exception:
        """Return the error to raise; a record that was not taken tells more than what came of it."""
        if problem.code() in _REPLACED:
            return superseded(self._application_id)
        if any(_is_fenced(one) or one.code() in _FORGOTTEN for one in (problem, self._failed) if one is not None):
            return self._fenced(problem)
        if self._failed is None:
            self._failed, self._failed_topic = self._refused(problem)
        if self._failed is None:
            return self._explained_as_a_whole(problem, "write a batch")
        topic = self._failed_topic
        return explained(self._failed, self._connection, f"write to topic '{topic}'", topic, "Write")

    def _refused(self, problem: KafkaError) -> tuple[KafkaError | None, str | None]:
        """Return why a record was not taken, and for which topic, if that was the problem."""
        refused = _REFUSED.match(problem.str())
        if refused is not None:
            return KafkaError(problem.code()), refused[1]
        if problem.code() == KafkaError._INCONSISTENT:  # of the client itself, which does not say more
            with suppress(KafkaException):
                known = self.producer.list_topics(timeout=self._connection.patience).topics
                for topic, partition in sorted(self._written):
                    if topic not in known:
                        return KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), topic
                    if partition not in known[topic].partitions:
                        return KafkaError(KafkaError._UNKNOWN_PARTITION), topic
        return None, None

    def _explained_as_a_whole(self, problem: KafkaError, doing: str) -> Exception:
        return explained_in_batch(
            problem, self._connection, doing, self._application_id, {topic for topic, _ in self._written}
        )

    def _fenced(self, problem: KafkaError) -> Exception:
        """Tell whether there is a newer run, or the broker has given this one up."""
        if not self.is_latest():
            return superseded(self._application_id)
        if time.time() - self._begun > self._limit_ms / 1000:
            return StreamsError(
                f"application '{self._application_id}': the broker has taken back a batch, for it was not written "
                f"within {self._limit_ms} ms. The setting transaction.timeout.ms says how long it may take"
            )
        if problem.code() in _FORGOTTEN:
            return UnavailableError(
                f"application '{self._application_id}': the broker has not heard of it for longer than its session "
                "may be silent (session.timeout.ms)"
            )
        return superseded(self._application_id)

    def _note(self, error: KafkaError | None, message: Message) -> None:
        """Take note of a record that was not taken: the client's `on_delivery`."""
        if error is not None and error.code() not in _PURGED and self._failed is None:
            self._failed, self._failed_topic = error, message.topic()

    def _check(self, waiting: int) -> int:
        if self._failed is not None:
            raise KafkaException(self._failed)
        return self._still_waiting(self.producer, waiting, "write a batch")

    def _insist(self, producer: Producer, doing: str, call: Callable[[float], object]) -> None:
        """Call until the broker has answered; a step that timed out may be taken again."""
        self._patience.renew()
        waiting = len(producer)
        while True:
            try:
                call(STEP * 10)
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


def transaction_ms(connection: Connection) -> int:
    """Return how long a transaction may take."""
    return number(connection.settings, "transaction.timeout.ms", _TRANSACTION_MS)


def superseded(application_id: str) -> SupersededError:
    """Return the error of a run that is not the latest."""
    return SupersededError(f"application '{application_id}' was started again elsewhere: this one stops")


def _is_fenced(problem: KafkaError) -> bool:
    return problem.code() in _FENCED or (problem.fatal() and "fenced" in problem.str().lower())
