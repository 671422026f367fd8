"""Read ranges of topic partitions over connections that stay open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import UNKNOWN_TOPIC, readable_error
from headrace.brokers.kafka.patience import Patience
from headrace.errors import HeadraceError, RecordsGoneError, UnavailableError
from headrace.raw_records import RawRecord

_STEP = 0.1  # seconds between two looks at a client's errors
_PAGE = 1_000  # records, so few that they and everything made of them stay in the processor's cache
_SETTINGS = {
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 5,  # the end of a partition is known only after this time
    "fetch.message.max.bytes": 4 << 20,
    "fetch.queue.backoff.ms": 10,  # how long to rest when the queue is full
    "queued.max.messages.kbytes": 32 << 10,
    "topic.metadata.propagation.max.ms": 5_000,  # the topic existed when the batch was planned: if not, it was deleted
}


class RangeReader:
    """Reads committed records for the threads of a process. Each client reads one range at a time."""

    def __init__(self, connection: Connection, **settings: Any) -> None:
        self._connection = connection
        self._settings = {**_SETTINGS, **settings}
        self._idle: list[tuple[Consumer, Patience]] = []

    def pages(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        """Read the records of a range, page by page."""
        if start >= end:
            return
        try:
            consumer, patience = self._idle.pop()
        except IndexError:
            consumer, patience = self._open()
        in_progress = _RangeInProgress(self._connection, consumer, patience, topic, partition, start, end)
        try:
            consumer.assign([TopicPartition(topic, partition, start)])
            patience.renew()
            while not in_progress.is_complete:
                page = in_progress.next_page()
                if page:
                    yield page
                    patience.renew()  # the caller may have worked on the page for long
        except KafkaException as error:
            raise in_progress.readable(error.args[0]) from None
        finally:
            with suppress(KafkaException, RuntimeError):
                consumer.unassign()
            self._idle.append((consumer, patience))

    def close(self) -> None:
        """Close the connections."""
        self._idle.clear()

    def _open(self) -> tuple[Consumer, Patience]:
        patience = Patience(self._connection)
        return self._connection.consumer(error_cb=patience, **self._settings), patience


class _RangeInProgress:
    """A range that a client is reading.

    Transactions and compaction leave gaps in the offsets. So a range is complete when its last record has come, or a
    record after its end, or the message that there are no more.
    """

    def __init__(
        self,
        connection: Connection,
        consumer: Consumer,
        patience: Patience,
        topic: str,
        partition: int,
        start: int,
        end: int,
    ) -> None:
        self._connection, self._consumer, self._patience = connection, consumer, patience
        self._topic, self._partition, self._start, self._end = topic, partition, start, end
        self._doing = f"read topic '{topic}', partition {partition}"
        self._ends_early = False
        """Whether the partition was said to end before the range does."""
        self.is_complete = False

    def next_page(self) -> list[RawRecord]:
        """Return the records that have arrived. Wait a moment if there are none, and return an empty page."""
        end = self._end
        page: list[RawRecord] = []
        for message in self._poll():
            offset = message.offset()
            if message.error() is not None:
                if self._is_partition_end(message):
                    self.is_complete = offset >= end
                    self._ends_early = not self.is_complete
            elif offset >= end:
                self.is_complete = True
                break
            else:
                headers = message.headers()
                if headers:
                    headers = [(name, value or b"") for name, value in headers]
                page.append((offset, message.timestamp()[1], message.key(), message.value(), headers, offset))
                if offset + 1 >= end:
                    self.is_complete = True
                    break
        return page

    def readable(self, error: KafkaError) -> HeadraceError:
        """Return the error to raise for an error of the client."""
        if error.code() in UNKNOWN_TOPIC:
            return self._gone_error()
        return readable_error(error, self._connection, self._doing, self._topic, "Read")

    def _poll(self) -> list[Message]:
        first = self._consumer.poll(_STEP)
        if first is not None:
            self._patience.renew()
            return [first, *self._consumer.consume(_PAGE, 0)]
        if self._patience.last is not None and self._patience.last.code() in UNKNOWN_TOPIC:
            raise KafkaException(self._patience.last)
        try:
            self._patience.check(self._doing)
        except UnavailableError:
            if (
                self._ends_early and self._patience.last is None
            ):  # the broker answers, and has fewer records than before
                raise self._gone_error() from None
            raise
        return []

    def _is_partition_end(self, message: Message) -> bool:
        """Tell whether a message without a record says that there are no more. Raise if records should be there."""
        error = message.error()
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            return True
        if error.code() == KafkaError._AUTO_OFFSET_RESET or error.code() in UNKNOWN_TOPIC:
            raise self._gone_error()
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:  # of the client's group, which it does not need
            return False
        raise readable_error(error, self._connection, f"read topic '{self._topic}'", self._topic, "Read")

    def _gone_error(self) -> RecordsGoneError:
        return RecordsGoneError(
            f"topic '{self._topic}', partition {self._partition}: the records from offset {self._start} to {self._end} "
            f"are gone from {self._connection.address}. They were deleted, by retention or because the topic was "
            "deleted."
        )
