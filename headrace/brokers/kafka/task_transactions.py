"""Write the outputs of tasks in the processes where they run.

A transaction has the records of one or more tasks in a batch, and a marker for each of these tasks. It also commits an
offset in the name of the driver, which is the one member of the application's group. Once a later run has begun, the
broker refuses this commit, and so the whole transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec
from confluent_kafka import TopicPartition

from headrace.brokers.kafka.batch_producer import BatchProducer
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.markers import PARTITIONS, TaskMarker, task_key
from headrace.brokers.runs import Run
from headrace.raw_records import RecordToWrite
from headrace.topology.names import commits_topic


@dataclass(frozen=True)
class KafkaPermit:
    """What tasks need to know about their run to write in place."""

    run: Run
    member: Any
    """The metadata of the group's member; None without transactions."""
    batch: int
    """The last batch that was written by all tasks."""
    done: Mapping[str, int]
    """The later batches that tasks have written, by task."""

    def is_written(self, task: str, batch: int) -> bool:
        """Tell whether an earlier run has written a task's outputs of a batch."""
        return batch <= max(self.batch, self.done.get(task, self.batch))


class TaskProducers:
    """The producers of this process. They stay open, because opening one takes up to half a second."""

    def __init__(self, connection: Connection, is_latest: Callable[[Run], bool]) -> None:
        self._connection = connection
        self._is_latest = is_latest
        self._idle: dict[Run, list[BatchProducer]] = {}

    def begin(self, permit: KafkaPermit, batch: int, partitions: Callable[[str], int]) -> KafkaTaskTransaction:
        """Begin a transaction for outputs of a run's tasks in a batch."""
        return KafkaTaskTransaction(self, permit, batch, partitions)

    def take(self, permit: KafkaPermit) -> BatchProducer:
        """Return a producer that no other transaction uses."""
        if permit.run not in self._idle:
            # Producers of earlier runs are useless: this run may have fenced them.
            others = {run: idle for run, idle in self._idle.items() if run.application_id != permit.run.application_id}
            self._idle = {**others, permit.run: []}
        idle = self._idle[permit.run]
        producer = idle.pop() if idle else self._open(permit)
        producer.errors.is_latest = lambda: self._is_latest(permit.run)
        return producer

    def give_back(self, permit: KafkaPermit, producer: BatchProducer) -> None:
        """Keep a producer for the next transaction."""
        self._idle.get(permit.run, []).append(producer)

    def close(self) -> None:
        """Close the producers that no transaction uses."""
        self._idle.clear()

    def _open(self, permit: KafkaPermit) -> BatchProducer:
        application_id = permit.run.application_id
        name = None if permit.member is None else f"{application_id}-{uuid4()}"
        return BatchProducer(self._connection, application_id, name)


class KafkaTaskTransaction:
    """A transaction that begins with its first record. See `TaskTransaction`."""

    def __init__(
        self, producers: TaskProducers, permit: KafkaPermit, batch: int, partitions: Callable[[str], int]
    ) -> None:
        self._producers, self._permit, self._batch, self._partitions = producers, permit, batch, partitions
        self._producer: BatchProducer | None = None
        self._is_wanted: dict[str, bool] = {}
        """By task, whether its records are still to be written."""

    def send(self, task: str, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> int:
        """Write a task's records and return how many; 0 if an earlier run has written them."""
        if task not in self._is_wanted:
            self._is_wanted[task] = not self._permit.is_written(task, self._batch)
            if self._is_wanted[task]:
                self._mark(task)
        if not self._is_wanted[task]:
            return 0
        producer = self._begin_once()
        with producer.aborting_on_error():
            producer.send(topic, partition, records, self._partitions)
        return len(records)

    def commit(self) -> None:
        """Commit the transaction, and keep its producer open."""
        producer = self._producer
        if producer is None:
            return
        run, member = self._permit.run, self._permit.member
        with producer.aborting_on_error():
            producer.flush()  # so that a later run finds the markers and waits
            if member is not None:
                producer.send_offsets([TopicPartition(commits_topic(run.application_id), PARTITIONS - 1, 0)], member)
            producer.commit()
        self._producer = None
        self._producers.give_back(self._permit, producer)

    def __enter__(self) -> KafkaTaskTransaction:
        return self

    def __exit__(self, *error: object) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.abort()  # the producer cannot be used again

    def _begin_once(self) -> BatchProducer:
        if self._producer is None:
            self._producer = self._producers.take(self._permit)
            self._producer.begin()
        return self._producer

    def _mark(self, task: str) -> None:
        """Write the marker before any record: if this process dies, the next run finds it and ends the transaction."""
        run, producer = self._permit.run, self._begin_once()
        if producer.id is None:
            return
        value = msgspec.json.encode(TaskMarker(run.lineage, self._batch, producer.id))
        record: RecordToWrite = (task_key(task), value, int(time.time() * 1000), None)
        with producer.aborting_on_error():
            producer.send(commits_topic(run.application_id), 0, [record], self._partitions)
