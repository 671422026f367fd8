"""Writing records to Kafka, and telling what became of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.brokers.broker import Produced
from headrace.brokers.checking import complete_record, encode_headers
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import NO_ANSWER, explained, no_answer
from headrace.brokers.kafka.patience import Patience
from headrace.brokers.kafka.settings import number
from headrace.errors import HeadraceError, TopicError
from headrace.partitioning import partitions_of
from headrace.records import Headers

Row = tuple[bytes | None, bytes | None, int, Headers]

_STEP = 0.1  # seconds between two looks at a client's errors
_LARGEST = 1_000_000  # librdkafka's default of message.max.bytes


def rows_of(topic: str, records: Iterable[Produced], connection: Connection) -> list[Row]:
    """Return records as they are written, or raise when one of them cannot be: then none is."""
    now = int(time.time() * 1000)
    largest = number(connection.settings, "message.max.bytes", _LARGEST)
    rows = []
    for record in records:
        key, value, timestamp, headers = complete_record(topic, record, now)
        if headers:
            encode_headers(topic, headers)  # raises when they are none
        if timestamp == 0:
            raise TopicError(
                f"topic '{topic}': Kafka's client library takes the timestamp 0 for 'now', so it is refused"
            )
        size = len(key or b"") + len(value or b"")
        if size > largest:
            raise TopicError(f"topic '{topic}': expected a record of {largest} bytes at most, got one of {size} bytes")
        rows.append((key, value, timestamp, list(headers or ())))
    return rows


def choose(keys: Sequence[bytes | None], partitions: int, turns: Iterator[int]) -> list[int]:
    """Return the partition of each key as a Java client chooses it; nulls go to the partitions in turn.

    >>> choose([b"ann", None, b"zoe", None], 2, iter(range(10)))
    [0, 0, 1, 1]
    """
    hashed = iter(partitions_of([key for key in keys if key is not None], partitions))
    return [next(turns) % partitions if key is None else next(hashed) for key in keys]


class RecordWriter:
    """Writes records to topics, one call after the other, and waits until the brokers have them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._patience = Patience(connection)
        self._producer: Producer | None = None

    def write(self, topic: str, rows: Sequence[Row], partitions: Sequence[int]) -> None:
        """Write records; when one was not taken, raise an error that tells how many were."""
        if self._producer is None:
            self._producer = self._connection.producer(error_cb=self._patience)
        reports = _Reports()
        try:
            self._send(self._producer, topic, zip(rows, partitions), reports)
        except BaseException as error:
            # A producer may not go on after some errors, and must not after an interruption.
            producer, self._producer = self._producer, None
            producer.purge()
            producer.flush(_STEP)
            if isinstance(error, HeadraceError):
                known = f"{reports.written} of {len(rows)} records are known to be written"
                raise type(error)(f"{error} ({known})") from None
            raise

    def close(self) -> None:
        """Let go of the connections; nothing waits to be written."""
        self._producer = None

    def _send(self, producer: Producer, topic: str, placed: Iterable[tuple[Row, int]], reports: _Reports) -> None:
        doing = f"write to topic '{topic}'"
        self._patience.begin()
        try:
            for (key, value, timestamp, headers), partition in placed:
                while True:
                    try:
                        producer.produce(
                            topic,
                            value,
                            key,
                            partition,
                            on_delivery=reports,
                            timestamp=timestamp,
                            headers=headers,
                        )
                        break
                    except BufferError:  # its queue is full
                        producer.poll(_STEP)
                        self._check(reports, doing)
            while producer.flush(_STEP):
                self._check(reports, doing)
            self._check(reports, doing)
        except KafkaException as error:
            raise explained(error.args[0], self._connection, doing, topic, "Write") from None
        except SystemError as error:
            # Ctrl-C came while the client told of a record: it stops, but loses the exception to stop with.
            raise KeyboardInterrupt from error

    def _check(self, reports: _Reports, doing: str) -> None:
        """Raise when a record was not taken, or none for too long."""
        error = reports.error
        if error is not None and error.code() in NO_ANSWER:
            raise no_answer(self._connection, doing, self._patience.last or error)
        if error is not None:
            raise KafkaException(error)
        if reports.has_news():
            self._patience.renew()
        self._patience.check(doing)


class _Reports:
    """What became of the records of a call; given to the producer as `on_delivery`."""

    def __init__(self) -> None:
        self.written = 0
        self.error: KafkaError | None = None
        self._seen = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.written += 1
        elif self.error is None:
            self.error = error

    def has_news(self) -> bool:
        """Tell whether records were written since this was asked before."""
        before, self._seen = self._seen, self.written
        return self.written > before
