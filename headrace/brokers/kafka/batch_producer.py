"""A producer that writes an application's batches, each of them all or nothing.

Several producers write a batch, each with an id of its own: one in every process where tasks run, for the tasks'
outputs, and one in the driver, which says in the end that the batch was written.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, repeat
from operator import length_hint
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import UNKNOWN_TOPIC, no_answer_error
from headrace.brokers.kafka.patience import Patience, returns_in_time
from headrace.brokers.kafka.producer_errors import ProducerErrors, is_fenced, superseded_error
from headrace.brokers.kafka.producing import check_timestamps
from headrace.brokers.kafka.settings import whole_number
from headrace.errors import UnavailableError
from headrace.raw_records import RecordColumns, RecordToWrite

_OFFSETS_SECONDS = 10.0
"""How long the broker may take to commit offsets."""
STEP = 0.1  # seconds between two looks at a client's errors
_AT_ONCE = 5_000  # records between two looks at the client's events
_TRANSACTION_MS = 60_000
_UNKNOWN_TOPIC_MS = 10_000  # brokers may hear of a new topic late
_WRONG_BEFORE = (KafkaError._STATE, KafkaError._FATAL)  # the client takes no more records, after an earlier error
_SETTINGS = {
    "partitioner": "murmur2",  # as in Java clients
    "delivery.report.only.error": True,
}
_DEFAULTS = {
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "topic.metadata.propagation.max.ms": _UNKNOWN_TOPIC_MS,
}
"""Settings that users may change."""
_BY_KEY = -1
"""Lets librdkafka choose the partition by the key. It does so in C, while it takes the record."""


class BatchProducer:
    """A producer of an application's batches, for one thread. After an error it cannot be used any more.

    Without a transactional id it writes without transactions, and a commit waits until the brokers have all records.
    """

    def __init__(self, connection: Connection, application_id: str, transactional_id: str | None) -> None:
        """Open the producer. From then on, an older one with the same transactional id cannot write."""
        self.id = transactional_id
        self._connection = connection
        self._application_id = application_id
        self._patience = Patience(connection)
        self._limit_ms = transaction_ms(connection)
        self.errors = ProducerErrors(connection, application_id, self._limit_ms)
        self._turns: dict[str, Iterator[int]] = defaultdict(count)
        """By topic, the partition that the next record without a key goes to."""
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
                if is_fenced(error.args[0]):
                    raise superseded_error(self._application_id) from None
                raise self.errors.readable_as_a_whole(error.args[0], doing) from None
        return producer

    # -- writing ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a batch."""
        self.errors.begin()
        self._patience.renew()
        if self.id is not None:
            with self.aborting_on_error():
                self.producer.begin_transaction()

    def send(
        self,
        topic: str,
        partition: int | None,
        records: Sequence[RecordToWrite],
        partitions: Callable[[str], int],
    ) -> None:
        """Write records to a topic partition. Without a partition the key decides; records without a key take turns."""
        columns = RecordColumns.of(records)
        check_timestamps(topic, columns.timestamps)
        destinations = self._destinations(topic, partition, columns.keys, partitions)
        sent = 0
        while sent < len(columns):
            piece = slice(sent, sent + _AT_ONCE)
            keys = iter(columns.keys[piece])
            try:
                self._produce(topic, columns, piece, keys, destinations)
                sent = piece.stop
                self.producer.poll(0)
            except BufferError:  # the client's queue is full
                # A call takes its key before it fails. So the iterator tells how many records come after the one that
                # the client did not take, and `- 1` counts this record as not sent either. Counting the records
                # themselves would need a loop around the calls.
                sent = min(piece.stop, len(columns)) - length_hint(keys) - 1
                waiting = len(self.producer)
                self.producer.poll(STEP)
                self._check(waiting)
            except KafkaException as error:
                if error.args[0].code() not in _WRONG_BEFORE:
                    self.errors.note_refused(error.args[0], topic)
                raise

    def _produce(
        self,
        topic: str,
        columns: RecordColumns,
        piece: slice,
        keys: Iterator[bytes | None],
        destinations: int | Sequence[int],
    ) -> None:
        """Pass a piece of the records to the client.

        These calls are most of the time that writing takes, so `map` makes them, by position: 0.30 µs a call. A loop
        that counts the calls takes 0.34, a call with two arguments by name 0.6. The client reports on single records
        only without a transaction: the commit of a transaction reports their errors.
        """
        produce: Any = self.producer.produce
        headers = columns.headers[piece]
        calls = map(
            produce,
            repeat(topic),
            columns.values[piece],
            keys,
            repeat(destinations) if isinstance(destinations, int) else destinations[piece],
            repeat(self.errors.note if self.id is None else None),  # callback
            repeat(None),  # on_delivery, another name of callback
            columns.timestamps[piece],
            [one or None for one in headers] if any(headers) else repeat(None),
        )
        deque(calls, maxlen=0)  # makes the calls and keeps no results

    def _destinations(
        self, topic: str, partition: int | None, keys: Sequence[bytes | None], partitions: Callable[[str], int]
    ) -> int | Sequence[int]:
        """Return one partition for all records, or a partition for each."""
        if partition is not None or all(keys) or None not in keys:
            self.errors.written.add((topic, partition or 0))
            return _BY_KEY if partition is None else partition
        known, turns = partitions(topic), self._turns[topic]
        destinations = [next(turns) % known if key is None else _BY_KEY for key in keys]
        self.errors.written.update((topic, max(one, 0)) for one in set(destinations))
        return destinations

    def flush(self) -> None:
        """Wait until the brokers have all records."""
        self._patience.renew()
        waiting = len(self.producer)
        while self.producer.flush(STEP):
            waiting = self._check(waiting)
        self._check(waiting)

    def send_offsets(self, offsets: Iterable[TopicPartition], group: Any) -> None:
        """Commit offsets of a group together with the records, if the group's member may still do so."""
        to_commit, doing = list(offsets), "commit the offsets"

        def call(timeout: float) -> None:
            # If the group's broker was away, this call of librdkafka may never return, in spite of its timeout:
            # github.com/confluentinc/librdkafka/issues/5456 and 5511.
            if not returns_in_time(
                lambda: self.producer.send_offsets_to_transaction(to_commit, group, timeout), _OFFSETS_SECONDS
            ):
                raise no_answer_error(self._connection, doing, self._patience.last)

        self._insist(self.producer, doing, call)

    def commit(self) -> None:
        """Commit the batch."""
        if self.id is not None:
            self._insist(self.producer, "commit", self.producer.commit_transaction)
        else:
            self.flush()

    @contextmanager
    def aborting_on_error(self) -> Iterator[None]:
        """Abort the batch if the block fails, and raise a readable error."""
        try:
            yield
        except BaseException as error:
            readable = self._abort(error)
            if readable is error:
                raise
            raise readable from None

    def abort(self) -> None:
        """Abort the batch, if the broker can be reached. If not, the next run does it."""
        if self._is_over:
            return
        self._is_over = True
        self.producer.purge()
        if self.id is not None:
            with suppress(KafkaException):
                self.producer.abort_transaction(STEP * 50)

    def _abort(self, error: BaseException) -> BaseException:
        """Abort the batch. Return the error to raise for the one that ended it."""
        problem = self._first_problem(error.args[0]) if isinstance(error, KafkaException) else None
        silent = isinstance(error, UnavailableError) and self._patience.last is None
        self.abort()
        # If a topic was deleted, the client says so, or tries again and again. Was the application forgotten?
        gone = silent if problem is None else problem.code() in UNKNOWN_TOPIC
        if gone and not self.errors.is_latest():
            return superseded_error(self._application_id)
        return error if problem is None else self.errors.readable(problem, self.producer)

    def _first_problem(self, problem: KafkaError) -> KafkaError:
        """Return the first problem, because a commit fails with that one."""
        if self.id is not None and problem.code() in _WRONG_BEFORE:
            try:
                self.producer.commit_transaction(STEP)
            except KafkaException as error:
                return cast(KafkaError, error.args[0])
        return problem

    def _check(self, waiting: int) -> int:
        if self.errors.refused is not None:
            raise KafkaException(self.errors.refused)
        return self._still_waiting(self.producer, waiting, "write a batch")

    def _insist(self, producer: Producer, doing: str, call: Callable[[float], object]) -> None:
        """Call until the broker has answered. A call that timed out may be repeated."""
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
        """Return how many records still wait to be written. Raise if none was written for too long."""
        producer.poll(0)  # reports errors of its connections
        waiting = len(producer)
        if waiting < before:
            self._patience.renew()
        self._patience.check(doing)
        return waiting


def transaction_ms(connection: Connection) -> int:
    """Return how long a transaction may take."""
    return whole_number(connection.settings, "transaction.timeout.ms", _TRANSACTION_MS)
