"""Write records to Kafka, outside of batches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.brokers.broker import Produced
from headrace.brokers.checking import complete_record, encode_headers
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import NO_ANSWER, no_answer_error, readable_error
from headrace.brokers.kafka.patience import Patience
from headrace.brokers.kafka.settings import whole_number
from headrace.errors import HeadraceError, TopicError
from headrace.partitioning import partitions_of
from headrace.raw_records import RecordToWrite

_STEP = 0.1  # seconds between two looks at a client's errors
_LARGEST = 1_000_000  # librdkafka's default of message.max.bytes


def records_to_write(topic: str, records: Iterable[Produced], connection: Connection) -> list[RecordToWrite]:
    """Return records with timestamps and headers. Raise if one of them cannot be written."""
    now = int(time.time() * 1000)
    largest = whole_number(connection.settings, "message.max.bytes", _LARGEST)
    complete: list[RecordToWrite] = []
    for record in records:
        key, value, timestamp, headers = complete_record(topic, record, now)
        if headers:
            encode_headers(topic, headers)  # raises if they are not valid
        check_timestamps(topic, (timestamp,))
        size = len(key or b"") + len(value or b"")
        if size > largest:
            raise TopicError(f"topic '{topic}': expected a record of {largest} bytes at most, got one of {size} bytes")
        complete.append((key, value, timestamp, list(headers) if headers else None))
    return complete


def check_timestamps(topic: str, timestamps: Sequence[int]) -> None:
    """Raise if a timestamp is 0."""
    if not all(timestamps):
        raise TopicError(
            f"topic '{topic}': records with the timestamp 0 cannot be written, because Kafka's client library takes 0 "
            "for 'now'"
        )


def choose_partitions(keys: Sequence[bytes | None], partitions: int, turns: Iterator[int]) -> list[int]:
    """Return the partition of each key, as a Java client chooses it. Nulls go to the partitions in turn.

    >>> choose_partitions([b"ann", None, b"zoe", None], 2, iter(range(10)))
    [0, 0, 1, 1]
    """
    hashed = iter(partitions_of([key for key in keys if key is not None], partitions))
    return [next(turns) % partitions if key is None else next(hashed) for key in keys]


class RecordWriter:
    """Writes records to topics, one call at a time, and waits until the brokers have them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._patience = Patience(connection)
        self._producer: Producer | None = None

    def write(self, topic: str, records: Sequence[RecordToWrite], partitions: Sequence[int]) -> None:
        """Write records. If one is refused, raise an error that tells how many were written."""
        if self._producer is None:
            self._producer = self._connection.producer(error_cb=self._patience)
        reports = _Reports()
        try:
            self._send(self._producer, topic, zip(records, partitions), reports)
        except BaseException as error:
            # After some errors a producer cannot continue, and after an interruption it must not.
            producer, self._producer = self._producer, None
            producer.purge()
            producer.flush(_STEP)
            if isinstance(error, HeadraceError):
                known = f"{reports.written} of {len(records)} records are known to be written"
                raise type(error)(f"{error} ({known})") from None
            raise

    def close(self) -> None:
        """Close the connections. No record is waiting to be written."""
        self._producer = None

    def _send(
        self, producer: Producer, topic: str, addressed: Iterable[tuple[RecordToWrite, int]], reports: _Reports
    ) -> None:
        doing = f"write to topic '{topic}'"
        self._patience.begin()
        try:
            for (key, value, timestamp, headers), partition in addressed:
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
                    except BufferError:  # the client's queue is full
                        producer.poll(_STEP)
                        self._check(reports, doing)
            while producer.flush(_STEP):
                self._check(reports, doing)
            self._check(reports, doing)
        except KafkaException as error:
            raise readable_error(error.args[0], self._connection, doing, topic, "Write") from None
        except SystemError as error:
            # Ctrl-C came while the client reported on a record. The client stops, but loses the KeyboardInterrupt.
            raise KeyboardInterrupt from error

    def _check(self, reports: _Reports, doing: str) -> None:
        """Raise if a record was refused, or if none was written for too long."""
        error = reports.error
        if error is not None and error.code() in NO_ANSWER:
            raise no_answer_error(self._connection, doing, self._patience.last or error)
        if error is not None:
            raise KafkaException(error)
        if reports.has_progress():
            self._patience.renew()
        self._patience.check(doing)


class _Reports:
    """Counts the records of a call that were written. The producer calls it as `on_delivery`."""

    def __init__(self) -> None:
        self.written = 0
        self.error: KafkaError | None = None
        self._seen = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.written += 1
        elif self.error is None:
            self.error = error

    def has_progress(self) -> bool:
        """Tell whether records were written since the last call."""
        before, self._seen = self._seen, self.written
        return self.written > before
