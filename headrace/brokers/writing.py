"""The seam for writing: every batch of an application is written once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Self, TypeAlias

from headrace.brokers.batches import Offsets
from headrace.brokers.runs import Run
from headrace.raw_records import RecordToWrite

PartitionRecords: TypeAlias = tuple[str, int | None, Sequence[RecordToWrite]]
"""(topic, partition, records to write to it). Without a partition the key decides."""


class TaskTransaction(Protocol):
    """What tasks write in a batch, in the process where they run: all of it or nothing.

    Use it in a `with` statement: without a commit, what was written is taken back.
    """

    def send(self, task: str, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> int:
        """Write a task's records, unless an earlier run has; return how many. Without a partition the key decides."""

    def commit(self) -> None:
        """Make all of them visible."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class BatchWriter(Protocol):
    """Topics as an engine writes them."""

    @property
    def keeps_changelogs(self) -> bool:
        """Whether the changes of stores go to topics, where other tools read them."""

    def ensure_topics(self, wanted: Mapping[str, int], replication_factor: int = -1) -> None:
        """Create the missing topics, with these numbers of partitions; leave the others as they are."""

    def write_batch(self, run: Run, batch: int, records: Iterable[PartitionRecords], positions: Offsets) -> bool:
        """Append a batch's records and keep the positions, all or nothing; tell whether that was still to be done.

        A batch that was written before is left alone. A run that is not the latest gets a SupersededError.
        """

    def permit(self, run: Run) -> object | None:
        """Return what tasks need to write where they run; None when only the process that began the run can write."""

    def begin_task_transaction(self, permit: object, batch: int) -> TaskTransaction:
        """Begin to write what tasks put out in a batch. Each task gives its name, which is the same in every attempt.

        A task's records are written once, although a batch may be run again after some of its tasks have written.
        """

    def wait_until_visible(self, topics: Iterable[str]) -> None:
        """Wait until readers can see what was committed to these topics."""
