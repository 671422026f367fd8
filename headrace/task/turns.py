"""Tasks that take records in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from headrace.raw_records import RawRecord
from headrace.task.task import Task


class TaskTurns:
    """Tasks of one process that take turns.

    In a turn, one task processes a record, or several that follow each other in a topic partition. After each turn,
    `after_turn` hands on the outputs of the task, to `enqueue` if a task here reads them. Then the waiting record with
    the lowest timestamp is next, as in Kafka Streams' TopologyTestDriver.
    """

    def __init__(self, tasks: Sequence[Task], after_turn: Callable[[Task], object]) -> None:
        self.tasks = tasks
        self._after_turn = after_turn
        self._readers: dict[tuple[str, int], list[Task]] = {}
        self._waiting = 0

    def process(self, topic: str, partition: int, records: Sequence[RawRecord], ordinal: int) -> None:
        """Process records of one topic partition in one turn, then everything that comes back."""
        for task in self.readers(topic, partition):
            task.process_records(topic, partition, records, ordinal)
            self._after_turn(task)
        self.settle(ordinal)

    def enqueue(self, topic: str, partition: int, record: RawRecord) -> None:
        """Let a record wait for its turn in every task that reads it."""
        for task in self.readers(topic, partition):
            task.enqueue(topic, partition, record)
            self._waiting += 1

    def settle(self, ordinal: int) -> None:
        """Process the waiting records, lowest timestamp first, until none waits."""
        while self._waiting:
            task = min(self.tasks, key=Task.head_timestamp)
            self._waiting -= 1
            task.process_next(ordinal)
            self._after_turn(task)

    def readers(self, topic: str, partition: int) -> list[Task]:
        """Return the tasks that read a topic partition. The task of a global table reads all partitions."""
        found = self._readers.get((topic, partition))
        if found is None:
            found = self._readers[topic, partition] = [
                task for task in self.tasks if task.reads(topic) and (task.is_global or task.partition == partition)
            ]
        return found

    def close(self) -> None:
        """Close all tasks in order, even if one of them fails."""
        with ExitStack() as closing:
            for task in reversed(self.tasks):
                closing.callback(task.close)
