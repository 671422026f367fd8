"""Read a topic of Kafka, up to its end or without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.brokers.broker import TopicRecord
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import UNKNOWN_TOPIC, readable_error
from headrace.brokers.kafka.patience import Patience
from headrace.errors import StreamsError, TopicError

_STEP = 0.1  # seconds between two looks at a client's errors
_AT_ONCE = 1000
_CHECK_SECONDS = 1.0  # between two looks whether the topic still exists; a client only sees silence if it does not
_AT_END_MS, _FOLLOWING_MS = 50, 500
"""How long the broker may hold a request at the end of a partition. Only after this time is the end known."""


@dataclass(frozen=True)
class ReadRequest:
    """The records of a topic to read, by partition."""

    topic: str
    positions: dict[int, int]
    """Where to begin: an existing offset, or the end."""
    wanted: dict[int, int]
    """The first offset that is wanted. It may be one that does not exist yet."""
    ends: dict[int, int] | None
    """Where to stop; None to wait for more."""
    read_committed: bool


class TopicReader:
    """Reads a topic: each partition in order, and all of them as their records come.

    Transactions and compaction leave gaps in the offsets, also at the end. So a partition is complete when its last
    record has come, or a record after its end, or the message that there are no more.
    """

    def __init__(
        self,
        connection: Connection,
        request: ReadRequest,
        *,
        is_closed: Callable[[], bool],
        topic_exists: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._request = request
        self._is_closed = is_closed
        self._topic_exists = topic_exists
        self._checked = time.monotonic()
        self._doing = f"read topic '{request.topic}'"
        self._patience = Patience(connection)
        ends = request.ends
        self._positions = {
            partition: position
            for partition, position in request.positions.items()
            if ends is None or position < ends[partition]
        }

    def records(self) -> Iterator[TopicRecord]:
        """Read the records."""
        if not self._positions:
            return
        following = self._request.ends is None
        consumer = self._connection.consumer(
            **{
                "error_cb": self._patience,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": _FOLLOWING_MS if following else _AT_END_MS,
                "isolation.level": "read_committed" if self._request.read_committed else "read_uncommitted",
            }
        )
        self._assign(consumer)
        while self._positions:
            for message in self._messages(consumer):
                if message.error() is not None:
                    self._handle(consumer, message)
                elif self._take(consumer, message):
                    yield self._record(message)

    def _assign(self, consumer: Consumer) -> None:
        topic, positions = self._request.topic, self._positions.items()
        consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in positions])

    def _messages(self, consumer: Consumer) -> list[Message]:
        """Return the messages that have arrived. If there are none, wait a moment."""
        if self._is_closed():
            raise TopicError(
                f"{self._connection.address} was closed while topic '{self._request.topic}' was being read"
            )
        first = consumer.poll(_STEP)
        self._check_topic()
        if first is not None:
            self._patience.renew()
            return [first, *consumer.consume(_AT_ONCE, 0)]
        if self._request.ends is None:
            self._patience.check_login(self._doing)  # the next record may take any time
        else:
            self._patience.check(self._doing)
        return []

    def _check_topic(self) -> None:
        """Raise if the topic was deleted."""
        if time.monotonic() - self._checked < _CHECK_SECONDS:
            return
        with suppress(StreamsError):  # no answer: reading itself will show that
            if not self._topic_exists():
                raise self._deleted_error()
        self._checked = time.monotonic()

    def _take(self, consumer: Consumer, message: Message) -> bool:
        """Advance to a record, and tell whether it is wanted."""
        partition, offset = message.partition(), message.offset()
        position = self._positions.get(partition)
        if position is None:  # it came together with the last one
            return False
        if offset < position:
            raise self._deleted_error()
        self._positions[partition] = offset + 1
        end = None if self._request.ends is None else self._request.ends[partition]
        if end is not None and offset + 1 >= end:
            self._finish(consumer, partition)
        return offset >= self._request.wanted[partition] and (end is None or offset < end)

    def _handle(self, consumer: Consumer, message: Message) -> None:
        """Handle an error, or the end of a partition."""
        error, partition = message.error(), message.partition()
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if self._request.ends is not None and partition in self._positions:
                self._finish(consumer, partition)
        elif code == KafkaError._AUTO_OFFSET_RESET:
            self._skip_deleted(consumer, partition)
        elif code in UNKNOWN_TOPIC:
            raise self._deleted_error()
        elif code != KafkaError.GROUP_AUTHORIZATION_FAILED:  # of the client's group, which it does not need
            raise readable_error(error, self._connection, self._doing, self._request.topic, "Read")

    def _skip_deleted(self, consumer: Consumer, partition: int) -> None:
        """Continue with the first existing record after retention has deleted the next one."""
        wanted = TopicPartition(self._request.topic, partition)
        try:
            first, _ = consumer.get_watermark_offsets(wanted, timeout=self._connection.patience)
        except KafkaException as error:
            raise readable_error(error.args[0], self._connection, self._doing, self._request.topic, "Read") from None
        if first <= self._positions[partition]:
            raise self._deleted_error()
        self._positions[partition] = first
        self._assign(consumer)

    def _finish(self, consumer: Consumer, partition: int) -> None:
        del self._positions[partition]
        consumer.pause([TopicPartition(self._request.topic, partition)])

    def _record(self, message: Message) -> TopicRecord:
        headers = [(name, value or b"") for name, value in message.headers() or ()]
        key, value, (_, timestamp) = message.key(), message.value(), message.timestamp()
        return TopicRecord(self._request.topic, message.partition(), message.offset(), timestamp, key, value, headers)

    def _deleted_error(self) -> TopicError:
        return TopicError(
            f"topic '{self._request.topic}' at {self._connection.address} was deleted while it was being read"
        )
