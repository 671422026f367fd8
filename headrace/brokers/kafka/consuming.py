"""Reading a topic of Kafka: to what was its end, or on and on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.brokers.broker import TopicRecord
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import UNKNOWN_TOPIC, explained
from headrace.brokers.kafka.patience import Patience
from headrace.errors import StreamsError, TopicError

_STEP = 0.1  # seconds between two looks at a client's errors
_AT_ONCE = 1000
_LOOK_SECONDS = 1.0  # between two looks whether the topic is still there; to a client it is only silent when it is not
_AT_END_MS, _FOLLOWING_MS = 50, 500
"""How long the broker may keep a request at the end of a partition; that it is the end is known only after that."""


@dataclass(frozen=True)
class Reading:
    """What of a topic to read, by partition."""

    topic: str
    positions: dict[int, int]
    """Where to begin: an offset that there is, or the end."""
    wanted: dict[int, int]
    """The first offset that is wanted, which may be one that is still to come."""
    ends: dict[int, int] | None
    """Where to end; None to wait for more."""
    read_committed: bool


class Reader:
    """Reads a topic: of each partition in order, and of all of them as they come.

    Transactions and compaction leave gaps in the offsets, also at the end. So a partition is read when its last record
    has come, or one behind its end, or word that there are no more.
    """

    def __init__(
        self,
        connection: Connection,
        reading: Reading,
        *,
        is_closed: Callable[[], bool],
        is_there: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._reading = reading
        self._is_closed = is_closed
        self._is_there = is_there
        self._looked = time.monotonic()
        self._doing = f"read topic '{reading.topic}'"
        self._patience = Patience(connection)
        ends = reading.ends
        self._positions = {
            partition: position
            for partition, position in reading.positions.items()
            if ends is None or position < ends[partition]
        }

    def records(self) -> Iterator[TopicRecord]:
        """Walk the records."""
        if not self._positions:
            return
        following = self._reading.ends is None
        consumer = self._connection.consumer(
            **{
                "error_cb": self._patience,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": _FOLLOWING_MS if following else _AT_END_MS,
                "isolation.level": "read_committed" if self._reading.read_committed else "read_uncommitted",
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
        places = self._positions.items()
        consumer.assign([TopicPartition(self._reading.topic, partition, offset) for partition, offset in places])

    def _messages(self, consumer: Consumer) -> list[Message]:
        """Return what is there, after a moment if nothing is."""
        if self._is_closed():
            raise TopicError(f"{self._connection.address} was closed while topic '{self._reading.topic}' was read")
        first = consumer.poll(_STEP)
        self._look()
        if first is not None:
            self._patience.renew()
            return [first, *consumer.consume(_AT_ONCE, 0)]
        if self._reading.ends is None:
            self._patience.check_let_in(self._doing)  # it may be long until there is something to read
        else:
            self._patience.check(self._doing)
        return []

    def _look(self) -> None:
        """Raise when the topic was deleted."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        with suppress(StreamsError):  # no answer: that is for the reader itself to find out
            if not self._is_there():
                raise self._deleted()
        self._looked = time.monotonic()

    def _take(self, consumer: Consumer, message: Message) -> bool:
        """Go on to a record, and tell whether it is wanted."""
        partition, offset = message.partition(), message.offset()
        position = self._positions.get(partition)
        if position is None:  # it came with the one that was the last
            return False
        if offset < position:
            raise self._deleted()
        self._positions[partition] = offset + 1
        end = None if self._reading.ends is None else self._reading.ends[partition]
        if end is not None and offset + 1 >= end:
            self._finish(consumer, partition)
        return offset >= self._reading.wanted[partition] and (end is None or offset < end)

    def _handle(self, consumer: Consumer, message: Message) -> None:
        """Do what an error, or the end of a partition, calls for."""
        error, partition = message.error(), message.partition()
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if self._reading.ends is not None and partition in self._positions:
                self._finish(consumer, partition)
        elif code == KafkaError._AUTO_OFFSET_RESET:
            self._find_again(consumer, partition)
        elif code in UNKNOWN_TOPIC:
            raise self._deleted()
        elif code != KafkaError.GROUP_AUTHORIZATION_FAILED:  # the client looks for its group, which it does not need
            raise explained(error, self._connection, self._doing, self._reading.topic, "Read")

    def _find_again(self, consumer: Consumer, partition: int) -> None:
        """Go on with the first record there is, when retention has deleted the next one."""
        place = TopicPartition(self._reading.topic, partition)
        try:
            first, _ = consumer.get_watermark_offsets(place, timeout=self._connection.patience)
        except KafkaException as error:
            raise explained(error.args[0], self._connection, self._doing, self._reading.topic, "Read") from None
        if first <= self._positions[partition]:
            raise self._deleted()
        self._positions[partition] = first
        self._assign(consumer)

    def _finish(self, consumer: Consumer, partition: int) -> None:
        del self._positions[partition]
        consumer.pause([TopicPartition(self._reading.topic, partition)])

    def _record(self, message: Message) -> TopicRecord:
        headers = [(name, value or b"") for name, value in message.headers() or ()]
        key, value, (_, timestamp) = message.key(), message.value(), message.timestamp()
        return TopicRecord(self._reading.topic, message.partition(), message.offset(), timestamp, key, value, headers)

    def _deleted(self) -> TopicError:
        return TopicError(f"topic '{self._reading.topic}' at {self._connection.address} was deleted while it was read")
