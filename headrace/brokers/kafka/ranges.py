"""Reading stretches of partitions, one after the other, over a connection that stays open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import UNKNOWN_TOPIC, explained
from headrace.brokers.kafka.patience import Patience
from headrace.errors import RecordsGoneError, UnavailableError
from headrace.raw_records import RawRecord

_STEP = 0.1  # seconds between two looks at a client's errors
_PAGE = 1_000  # records, with all that is made of them: so few that they stay in the processor's cache
_SETTINGS = {
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 5,  # that a partition ends is known only after it
    "fetch.message.max.bytes": 4 << 20,
    "fetch.queue.backoff.ms": 10,  # how long to rest when as much is waiting as may be
    "queued.max.messages.kbytes": 32 << 10,
    "topic.metadata.propagation.max.ms": 5_000,  # the topic was there: if not, it was deleted
}


class RangeReader:
    """Reads what is committed, for the threads of a process. A client reads one stretch at a time, then the next."""

    def __init__(self, connection: Connection, **settings: Any) -> None:
        self._connection = connection
        self._settings = {**_SETTINGS, **settings}
        self._idle: list[tuple[Consumer, Patience]] = []

    def rows(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        """Walk the records from one offset to before another.

        Transactions and compaction leave gaps in the offsets: a stretch is read when its last record has come, or one
        behind its end, or word that there are no more.
        """
        if start >= end:
            return
        try:
            consumer, patience = self._idle.pop()
        except IndexError:
            consumer, patience = self._client()
        doing = f"read topic '{topic}', partition {partition}"
        try:
            consumer.assign([TopicPartition(topic, partition, start)])
            patience.renew()
            at_end = cut_short = False
            while not at_end:
                try:
                    messages = _messages(consumer, patience, doing)
                except UnavailableError:
                    if cut_short and patience.last is None:  # the broker answers, and has less than it had
                        raise self._gone(topic, partition, start, end) from None
                    raise
                page: list[RawRecord] = []
                for message in messages:
                    offset = message.offset()
                    if message.error() is not None:
                        if self._is_end(message, topic, partition, start, end):
                            at_end = offset >= end
                            cut_short = not at_end
                    elif offset >= end:
                        at_end = True
                        break
                    else:
                        headers = message.headers()
                        if headers:
                            headers = [(name, value or b"") for name, value in headers]
                        page.append((offset, message.timestamp()[1], message.key(), message.value(), headers, offset))
                        if offset + 1 >= end:
                            at_end = True
                            break
                if page:
                    yield page
                    patience.renew()  # whoever takes the records may have taken long
        except KafkaException as error:
            if error.args[0].code() in UNKNOWN_TOPIC:
                raise self._gone(topic, partition, start, end) from None
            raise explained(error.args[0], self._connection, doing, topic, "Read") from None
        finally:
            with suppress(KafkaException, RuntimeError):
                consumer.unassign()
            self._idle.append((consumer, patience))

    def close(self) -> None:
        """Let go of the connections."""
        self._idle.clear()

    def _client(self) -> tuple[Consumer, Patience]:
        patience = Patience(self._connection)
        return self._connection.consumer(error_cb=patience, **self._settings), patience

    def _is_end(self, message: Message, topic: str, partition: int, start: int, end: int) -> bool:
        """Tell whether this says that there are no more records now; raise when they should be there."""
        error = message.error()
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            return True
        if error.code() == KafkaError._AUTO_OFFSET_RESET or error.code() in UNKNOWN_TOPIC:
            raise self._gone(topic, partition, start, end)
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:  # of the client's group, which it does not need
            return False
        raise explained(error, self._connection, f"read topic '{topic}'", topic, "Read")

    def _gone(self, topic: str, partition: int, start: int, end: int) -> RecordsGoneError:
        return RecordsGoneError(
            f"topic '{topic}', partition {partition}: the records from offset {start} to {end} are no longer "
            f"there at {self._connection.address}: retention has deleted them, or somebody the topic"
        )


def _messages(consumer: Consumer, patience: Patience, doing: str) -> list[Message]:
    first = consumer.poll(_STEP)
    if first is None:
        if patience.last is not None and patience.last.code() in UNKNOWN_TOPIC:
            raise KafkaException(patience.last)
        patience.check(doing)
        return []
    patience.renew()
    return [first, *consumer.consume(_PAGE, 0)]
