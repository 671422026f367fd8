"""The benchmark's own use of the broker: fill topics, find their ends, and read them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.workloads import Produced

Ends = tuple[int, ...]

_PAGE, _POLL, _PATIENCE = 10_000, 0.1, 60.0
_OPEN_MS = 600_000  # how long filling a topic may take
_runs = count(1)
_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # otherwise clients log warnings when the broker stops


class Topics:
    """A client of the broker."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._admin = AdminClient({"bootstrap.servers": address, "logger": _log})

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        for future in self._admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result()

    def delete(self, prefix: str) -> None:
        """Delete the topics whose names have a prefix."""
        names = [name for name in self._admin.list_topics(timeout=10).topics if name.startswith(prefix)]
        for future in self._admin.delete_topics(names).values() if names else ():
            with suppress(KafkaException):
                future.result()

    def ends(self, topic: str, partitions: int) -> Ends:
        """Return where the committed records of each partition end."""
        wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
        end = time.monotonic() + _PATIENCE
        while True:
            asked = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
            try:
                found = {place.partition: future.result().offset for place, future in asked.items()}
            except KafkaException:  # the broker may not know a new topic yet, or be busy
                if time.monotonic() > end:
                    raise
                time.sleep(_POLL)
            else:
                return tuple(found[partition] for partition in range(partitions))

    def records(self, topic: str, begins: Ends, ends: Ends) -> Iterator[tuple[bytes, bytes]]:
        """Walk the keys and values of committed records, in the order of each partition."""
        open_ones = {partition for partition in range(len(ends)) if begins[partition] < ends[partition]}
        if not open_ones:
            return
        consumer = self.consumer()
        try:
            consumer.assign([TopicPartition(topic, partition, begins[partition]) for partition in open_ones])
            while open_ones:
                for message in consumer.consume(_PAGE, _POLL):
                    error, partition = message.error(), message.partition()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    if message.offset() >= ends[partition]:  # a later record, or the message that there are no more
                        open_ones.discard(partition)
                    elif error is None:
                        yield message.key(), message.value()
        finally:
            consumer.close()

    def consumer(self, **settings: Any) -> Consumer:
        """Return a client that reads committed records."""
        return Consumer(
            {
                "bootstrap.servers": self.address,
                "logger": _log,
                "group.id": "benchmark",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                **settings,
            }
        )

    def producer(self, **settings: Any) -> Producer:
        """Return a client that writes. Keys go to the partitions that Java would choose."""
        ours = {"bootstrap.servers": self.address, "logger": _log, "partitioner": "murmur2_random"}
        return Producer({**ours, **settings})


class Tap:
    """Fills a topic in a transaction, so that all its records become visible at one moment."""

    def __init__(self, topics: Topics) -> None:
        self._producer = topics.producer(
            **{
                "transactional.id": f"tap-{time.time_ns()}-{next(_runs)}",
                "transaction.timeout.ms": _OPEN_MS,
                "message.timeout.ms": _OPEN_MS,
                "linger.ms": 20,
                "queue.buffering.max.messages": 500_000,
                "delivery.report.only.error": True,
            }
        )
        self._producer.init_transactions(60)

    def fill(self, topic: str, records: Iterable[Produced]) -> None:
        """Write records that are not visible yet."""
        producer, produce = self._producer, self._producer.produce
        producer.begin_transaction()
        for number, (key, value, timestamp) in enumerate(records):
            while True:
                try:
                    produce(topic, value, key, timestamp=timestamp)
                    break
                except BufferError:
                    producer.poll(_POLL)
            if number % 5_000 == 0:
                producer.poll(0)
        producer.flush()

    def open(self) -> float:
        """Make the records visible. Return the time."""
        began = time.perf_counter()
        self._producer.commit_transaction()
        return began
