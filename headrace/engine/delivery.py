"""Delivery: how the outputs of tasks reach the topics of the broker, once for every batch.

There are two ways. *In place*, a task's outputs and changelogs are written in the process where it runs, in a
transaction with the task's marker (Kafka). *Through the driver*, they travel on as messages, and the driver merges
those of all tasks and writes them with the batch's marker (the embedded log, which has one writer at a time). Either
way the driver ends the batch: see `commit.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter
from typing import Protocol, Self

import numpy as np

from headrace.brokers.writing import PartitionRecords, TaskTransaction
from headrace.engine.crash import crash_point
from headrace.engine.messages import (
    FOR_DRIVER,
    RECORDS_PER_MESSAGE,
    OutputRecords,
    Routed,
    causes_of,
    lane_order,
    slices,
)
from headrace.engine.routing import UNKNOWN_PARTITION
from headrace.engine.worker import Worker
from headrace.errors import StreamsError
from headrace.raw_records import OutputColumns, RecordColumns, RecordToWrite
from headrace.task.garbage_collection import keep_memory, sample
from headrace.task.lanes import Causes, merge_order, taken_in


class Outbox(Protocol):
    """What the tasks of one process have put out in a batch.

    Use it in a `with` statement: without a commit, what was written is taken back.
    """

    def put(
        self, lane: str, number: int, topic: str, sent: OutputColumns, causes: Causes, sender: int
    ) -> Iterable[Routed]:
        """Take a task's outputs to one topic; return messages that must travel on for them, numbered from `number`."""

    def put_changelog(
        self, lane: str, topic: str, partition: int, records: RecordColumns, causes: Causes
    ) -> Iterable[Routed]:
        """Take the changes of a task's store; return the messages that must travel on for them."""

    def commit(self) -> None:
        """Write all of it, where it is written here."""

    def numbers(self) -> dict[str, float]:
        """Return how many records were written here, without those of changelogs, and how long writing took."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Delivery(Protocol):
    """How a run's outputs leave. It is made where the run begins and travels to the workers."""

    @property
    def merges_by_cause(self) -> bool:
        """Whether outputs of several tasks are merged, for which they need their causes."""

    def check_task_attempt(self, attempt: int) -> None:
        """Raise when a task must not run for the second time in one try at a batch."""

    def open(self, worker: Worker, batch: int) -> Outbox:
        """Begin to take what the tasks of this process put out in a batch."""


def delivery_of(permit: object | None) -> Delivery:
    """Return how a run's outputs leave: in place if the broker permits it."""
    return DeliveryThroughDriver() if permit is None else DeliveryInPlace(permit)


# -- in place ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeliveryInPlace:
    """Outputs are written where tasks run, in the order of each task. Between tasks there is none, as in Java."""

    permit: object

    @property
    def merges_by_cause(self) -> bool:
        return False

    def check_task_attempt(self, attempt: int) -> None:
        """Raise when a task runs again: its first attempt may have written, which only the next run gets to know.

        Spark runs the tasks of an executor that it has lost again by itself, also those that were done.
        """
        if attempt > 0:
            raise StreamsError("Spark has lost an executor. The next run tries the whole batch again")

    def open(self, worker: Worker, batch: int) -> OutboxInPlace:
        return OutboxInPlace(worker, self.permit, batch)


class OutboxInPlace:
    """Holds outputs until all are there, then writes them in one transaction.

    A broker gives a transaction a minute, and nobody knows how long tasks take.
    """

    def __init__(self, worker: Worker, permit: object, batch: int) -> None:
        self._worker, self._permit, self._batch = worker, permit, batch
        self._held: deque[tuple[str, str, int | None, Sequence[RecordToWrite]]] = deque()
        self._transaction: TaskTransaction | None = None
        self._records = 0
        self._seconds = 0.0

    def put(
        self, lane: str, number: int, topic: str, sent: OutputColumns, causes: Causes, sender: int
    ) -> Iterable[Routed]:
        routes = self._worker.application.routes
        if routes.key_decides(topic, sent):  # the broker's client does it in a fraction of the time
            self._hold(lane, topic, UNKNOWN_PARTITION, _to_write(sent))
        else:
            for partition, mine in routes.by_partition(topic, sent, sender):
                self._hold(lane, topic, partition, _to_write(mine))
        return ()

    def put_changelog(
        self, lane: str, topic: str, partition: int, records: RecordColumns, causes: Causes
    ) -> Iterable[Routed]:
        self._hold(lane, topic, partition, records)
        return ()

    def _hold(self, lane: str, topic: str, partition: int, records: Sequence[RecordToWrite]) -> None:
        self._held.append((lane, topic, None if partition == UNKNOWN_PARTITION else partition, records))

    def commit(self) -> None:
        if not self._held:
            return
        started, changelogs = perf_counter(), self._worker.application.changelog_topics
        self._worker.create_topics({topic for _, topic, _, _ in self._held})
        self._transaction = self._worker.broker.begin_task_transaction(self._permit, self._batch)
        samples = []
        while self._held:
            task, topic, partition, records = self._held.popleft()
            written = self._transaction.send(task, topic, partition, records)
            self._records += 0 if topic in changelogs else written
            samples.append(sample(records))
        keep_memory("outputs", samples)
        crash_point("after-send")
        self._transaction.commit()
        crash_point("after-task-commit")
        self._seconds = perf_counter() - started

    def numbers(self) -> dict[str, float]:
        return {"records_written": self._records, "write_seconds": self._seconds}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._transaction is not None:
            self._transaction.__exit__(*error)


# -- through the driver -----------------------------------------------------------------------------------------------


class DeliveryThroughDriver:
    """Outputs travel to the driver, which merges them by cause: a topic partition has the order of its causes."""

    @property
    def merges_by_cause(self) -> bool:
        return True

    def check_task_attempt(self, attempt: int) -> None:
        """Accept every attempt: nothing is written where a task runs."""

    def open(self, worker: Worker, batch: int) -> OutboxOfDriver:
        return OutboxOfDriver(worker)


class OutboxOfDriver:
    """Turns outputs into messages for the driver."""

    def __init__(self, worker: Worker) -> None:
        self._routes = worker.application.routes

    def put(
        self, lane: str, number: int, topic: str, sent: OutputColumns, causes: Causes, sender: int
    ) -> Iterator[Routed]:
        for partition, mine in self._routes.by_partition(topic, sent, sender):
            for message in _messages(lane, number, topic, partition, _to_write(mine), causes, mine.ordinals):
                yield FOR_DRIVER, message
                number += 1

    def put_changelog(
        self, lane: str, topic: str, partition: int, records: RecordColumns, causes: Causes
    ) -> Iterator[Routed]:
        at_end = repeat(-1, len(records))
        for message in _messages(lane, 0, topic, partition, records, causes, at_end):
            yield FOR_DRIVER, message

    def commit(self) -> None: ...

    def numbers(self) -> dict[str, float]:
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...


def _messages(
    lane: str,
    number: int,
    topic: str,
    partition: int,
    records: RecordColumns,
    causes: Causes,
    ordinals: Iterable[int],
) -> Iterator[OutputRecords]:
    caused = causes.at(np.fromiter(ordinals, np.int64, len(records)))
    for following, piece in enumerate(slices(RECORDS_PER_MESSAGE, len(records)), number):
        times, sequences = caused.times[piece].tobytes(), caused.sequences[piece].tobytes()
        yield OutputRecords(topic, partition, lane, following, records[piece], times, sequences)


def merged(outputs: Iterable[OutputRecords]) -> Iterator[PartitionRecords]:
    """Walk what a batch has for each topic partition, in the order of the causes."""
    by_partition: dict[tuple[str, int], list[OutputRecords]] = {}
    for message in sorted(outputs, key=lane_order):
        by_partition.setdefault((message.topic, message.partition), []).append(message)
    for (topic, partition), messages in sorted(by_partition.items()):
        records = [record for message in messages for record in message.records]
        ordered = taken_in(merge_order(causes_of(messages)), records)
        yield topic, None if partition == UNKNOWN_PARTITION else partition, ordered


def _to_write(columns: OutputColumns) -> RecordColumns:
    return RecordColumns(columns.keys, columns.values, columns.timestamps, columns.headers)
