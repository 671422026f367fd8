"""What tasks put out, written in the process where they run.

Each transaction has the records of one or more tasks in a batch and a marker for each of these. It also commits an
offset for the application's group, as the member that the driver of the run is: when a later run has begun, the broker
refuses that, and so the whole transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec
from confluent_kafka import TopicPartition

from headrace.brokers.kafka.batch_producer import Transactions
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.markers import PARTITIONS, TaskMarker, commits_topic, task_key
from headrace.brokers.runs import Run
from headrace.raw_records import RecordToWrite


@dataclass(frozen=True)
class KafkaPermit:
    """What a task needs to know of its run."""

    run: Run
    member: Any
    """The group's metadata; None without transactions."""
    batch: int
    """The last batch that is in."""
    done: Mapping[str, int]
    """By task, a later batch that it has written."""

    def is_written(self, task: str, batch: int) -> bool:
        """Tell whether an earlier run has written what a task puts out in a batch."""
        return batch <= max(self.batch, self.done.get(task, self.batch))


class TaskWriters:
    """The producers of this process, kept open: to open one takes up to half a second."""

    def __init__(self, connection: Connection, is_latest: Callable[[Run], bool]) -> None:
        self._connection = connection
        self._is_latest = is_latest
        self._idle: dict[Run, list[Transactions]] = {}

    def begin(self, permit: KafkaPermit, batch: int, partitions: Callable[[str], int]) -> TaskWriting:
        """Begin to write what tasks of a run put out in a batch."""
        return TaskWriting(self, permit, batch, partitions)

    def take(self, permit: KafkaPermit) -> Transactions:
        """Return a producer that nobody else uses."""
        if permit.run not in self._idle:
            # A later run may have ended what producers of earlier ones had open.
            others = {run: idle for run, idle in self._idle.items() if run.application_id != permit.run.application_id}
            self._idle = {**others, permit.run: []}
        idle = self._idle[permit.run]
        producer = idle.pop() if idle else self._open(permit)
        producer.is_latest = lambda: self._is_latest(permit.run)
        return producer

    def give_back(self, permit: KafkaPermit, producer: Transactions) -> None:
        """Keep a producer for the next one."""
        self._idle.get(permit.run, []).append(producer)

    def close(self) -> None:
        """Let go of all that nobody uses."""
        self._idle.clear()

    def _open(self, permit: KafkaPermit) -> Transactions:
        application_id = permit.run.application_id
        name = None if permit.member is None else f"{application_id}-{uuid4()}"
        return Transactions(self._connection, application_id, name)


class TaskWriting:
    """One transaction; it begins with the first record. Use it in a `with`: without a commit it is taken back."""

    def __init__(self, writers: TaskWriters, permit: KafkaPermit, batch: int, partitions: Callable[[str], int]) -> None:
        self._writers, self._permit, self._batch, self._partitions = writers, permit, batch, partitions
        self._producer: Transactions | None = None
        self._tasks: dict[str, bool] = {}

    def send(self, task: str, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> int:
        """Write records of a task, unless an earlier run has; return how many."""
        if task not in self._tasks:
            self._tasks[task] = not self._permit.is_written(task, self._batch)
            if self._tasks[task]:
                self._mark(task)
        if not self._tasks[task]:
            return 0
        producer = self._begun()
        with producer.explaining():
            producer.send(topic, partition, records, self._partitions)
        return len(records)

    def commit(self) -> None:
        """End the transaction."""
        producer = self._producer
        if producer is None:
            return
        run, member = self._permit.run, self._permit.member
        with producer.explaining():
            producer.flush()  # so that a later run finds the markers, and waits
            if member is not None:
                producer.send_offsets([TopicPartition(commits_topic(run.application_id), PARTITIONS - 1, 0)], member)
            producer.commit()
        self._producer = None
        self._writers.give_back(self._permit, producer)

    def __enter__(self) -> TaskWriting:
        return self

    def __exit__(self, *error: object) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.give_up()  # and it is of no more use

    def _begun(self) -> Transactions:
        if self._producer is None:
            self._producer = self._writers.take(self._permit)
            self._producer.begin()
        return self._producer

    def _mark(self, task: str) -> None:
        """Say what the transaction is, first of all: should this process die, the next run sees it and ends it."""
        run, producer = self._permit.run, self._begun()
        if producer.id is None:
            return
        value = msgspec.json.encode(TaskMarker(run.lineage, self._batch, producer.id))
        record: RecordToWrite = (task_key(task), value, int(time.time() * 1000), None)
        with producer.explaining():
            producer.send(commits_topic(run.application_id), 0, [record], self._partitions)
