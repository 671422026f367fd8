"""Delivery: how the outputs of tasks reach the topics of the broker, once for every batch.

There are two ways. *In place* (Kafka): the process where a task runs writes the task's outputs and changelogs, in a
transaction with the task's marker. *Through the driver* (the embedded log, which has one writer at a time): outputs
travel to the driver as messages, and the driver merges the outputs of all tasks and writes them with the batch's
marker. In both cases the driver ends the batch: see `commit.py`.
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
    """The outputs of the tasks of one process in a batch.

    Use it in a `with` statement. If the statement ends without a commit, nothing of the outputs becomes visible.
    """

    def put(
        self, lane: str, number: int, topic: str, sent: OutputColumns, causes: Causes, sender: int
    ) -> Iterable[Routed]:
        """Take a task's outputs to one topic. Return the messages that must carry them on, numbered from `number`."""

    def put_changelog(
        self, lane: str, topic: str, partition: int, records: RecordColumns, causes: Causes
    ) -> Iterable[Routed]:
        """Take the changes of a task's store. Return the messages that must carry them on."""

    def commit(self) -> None:
        """Write the outputs, if this process writes them."""

    def numbers(self) -> dict[str, float]:
        """Return how many records this process wrote, without changelogs, and how long writing took."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Delivery(Protocol):
    """How a run's outputs reach their topics. It is made where the run begins and travels to the workers."""

    @property
    def merges_by_cause(self) -> bool:
        """Whether outputs of several tasks are merged, and so need their causes."""

    def check_task_attempt(self, attempt: int) -> None:
        """Raise if a task must not run a second time in the same try at a batch."""

    def open(self, worker: Worker, batch: int) -> Outbox:
        """Open an outbox for the tasks of this process in a batch."""


def needs_causes(worker: Worker, delivery: Delivery) -> bool:
    """Tell whether records need causes, by which other tasks or the driver merge the outputs."""
    return bool(worker.application.routes.tasks) or delivery.merges_by_cause


def delivery_of(permit: object | None) -> Delivery:
    """Return the delivery of a run: in place if the broker gave a permit."""
    return DeliveryThroughDriver() if permit is None else DeliveryInPlace(permit)


# -- in place ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeliveryInPlace:
    """Outputs are written where tasks run. Each task's outputs are in order. Two tasks have no order, as in Java."""

    permit: object

    @property
    def merges_by_cause(self) -> bool:
        return False

    def check_task_attempt(self, attempt: int) -> None:
        """Raise if a task runs again: its first attempt may have written, and only the next run can find out.

        If Spark loses an executor, it runs all tasks of this executor again by itself, even the finished ones.
        """
        if attempt > 0:
            raise StreamsError("Spark has lost an executor. The next run tries the whole batch again")

    def open(self, worker: Worker, batch: int) -> OutboxInPlace:
        return OutboxInPlace(worker, self.permit, batch)


class OutboxInPlace:
    """Holds outputs until all are there, then writes them in one transaction.

    A broker allows a transaction to take a minute, but tasks may take longer.
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
        if routes.key_decides(topic, sent):  # let the broker's client choose: it takes a fraction of the time
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
    """Outputs travel to the driver. It merges them, so a topic partition is in the order of its records' causes."""

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
    """Walk the topic partitions that a batch writes to, each with its records in the order of their causes."""
    by_partition: dict[tuple[str, int], list[OutputRecords]] = {}
    for message in sorted(outputs, key=lane_order):
        by_partition.setdefault((message.topic, message.partition), []).append(message)
    for (topic, partition), messages in sorted(by_partition.items()):
        records = [record for message in messages for record in message.records]
        ordered = taken_in(merge_order(causes_of(messages)), records)
        yield topic, None if partition == UNKNOWN_PARTITION else partition, ordered


def _to_write(columns: OutputColumns) -> RecordColumns:
    return RecordColumns(columns.keys, columns.values, columns.timestamps, columns.headers)
