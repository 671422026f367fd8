"""The seam for writing: each batch of an application is written once.

Tests: `tests/brokers/local/test_runs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, Self, TypeAlias

from headrace.brokers.batches import Offsets
from headrace.brokers.runs import Run
from headrace.raw_records import RecordToWrite

PartitionRecords: TypeAlias = tuple[str, int | None, Sequence[RecordToWrite]]
"""(topic, partition, records to write to it). Without a partition the key decides."""


class TaskTransaction(Protocol):
    """A transaction with the outputs of one or more tasks in a batch, written in the process where the tasks run.

    Use it in a `with` statement. If the block ends without a commit, the transaction is aborted.
    """

    def send(self, task: str, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> int:
        """Write a task's records and return how many; 0 if an earlier run has written them.

        Without a partition the key decides.
        """

    def commit(self) -> None:
        """Make all records visible."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class BatchWriter(Protocol):
    """Topics as an engine writes them."""

    @property
    def keeps_changelogs(self) -> bool:
        """Whether changes of stores are written to changelog topics, for other tools to read."""

    def ensure_topics(self, wanted: Mapping[str, int], replication_factor: int = -1) -> None:
        """Create the missing topics with these numbers of partitions. Leave existing topics as they are."""

    def write_batch(self, run: Run, batch: int, records: Iterable[PartitionRecords], positions: Offsets) -> bool:
        """Append a batch's records and save the positions, all or nothing.

        Return whether anything was written: a batch that was written before is left alone.
        Raise a SupersededError if the run is not the latest.
        """

    def permit(self, run: Run) -> object | None:
        """Return the permit for tasks to write in place; None if only the process that began the run can write."""

    def begin_task_transaction(self, permit: object, batch: int) -> TaskTransaction:
        """Begin a transaction for outputs of tasks in a batch. A task passes the same name in every attempt.

        A task's records are written once, although a batch may be tried again after some of its tasks have written.
        """

    def wait_until_visible(self, topics: Iterable[str]) -> None:
        """Wait until readers can see what was committed to these topics."""
