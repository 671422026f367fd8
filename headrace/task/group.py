"""Several tasks that run as one: a circle through internal topics, or a task with the global tables that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

from headrace.raw_records import OutputColumns, RawRecord
from headrace.task.batches import process_lanes, process_pages
from headrace.task.lanes import Causes, Lane, with_end
from headrace.task.outputs import Outputs
from headrace.task.task import Commit, Task
from headrace.task.turns import TaskTurns

_ordinal = itemgetter(-1)


class TaskGroup:
    """Tasks that run as one: a `TaskRunner`.

    A record goes through all of them, with everything that follows from it inside the group, before the next one comes.
    So the result of a foreign-key join, or of a look-up in a global table, depends only on the order of the records.
    """

    def __init__(self, tasks: Sequence[Task], choose_partition: Callable[[str, bytes | None, int], int]) -> None:
        """Group tasks. `choose_partition(topic, key, partition of the sender)` says where an internal record goes."""
        self.tasks = list(tasks)
        self._turns = TaskTurns(self.tasks, self._hand_on)
        self._choose_partition = choose_partition
        self._left = Outputs()
        """The outputs that no task of the group reads."""
        internal = map(tasks[0].topic_name, tasks[0].topology.internal_topics)
        self._internal = {topic for topic in internal if any(task.reads(topic) for task in tasks)}
        """The internal topics that the group reads."""

    @property
    def dropped_records(self) -> int:
        return sum(task.dropped_records for task in self.tasks)

    def process_lanes(self, lanes: Sequence[Lane]) -> Causes:
        return self._with_end(process_lanes(lanes, self._process))

    def process_pages(self, pages: Iterable[Lane]) -> Causes:
        return self._with_end(process_pages(pages, self._process))

    def _process(self, topic: str, partition: int, records: Sequence[RawRecord], ordinal: int) -> None:
        if self._internal:  # records that come back are processed before the next one: one record a turn
            for number, record in enumerate(records, ordinal):
                self._turns.process(topic, partition, [record], number)
        else:
            self._turns.process(topic, partition, records, ordinal)
            for task in self.tasks:  # not above, because the outputs of a turn are handed on in the order of all topics
                task.outputs.end_page()

    def _with_end(self, causes: Causes) -> Causes:
        for task in self.tasks:
            task.record.ordinal = len(causes)
        return with_end(causes, max(task.now for task in self.tasks))

    def advance_wall_clock(self, now: int) -> None:
        for task in self.tasks:
            task.advance_wall_clock(now)
            self._hand_on(task)
            self._turns.settle(task.record.ordinal)

    def commit(self) -> list[Commit]:
        end = self.tasks[0].record.ordinal
        handed_on = True
        while handed_on:  # a flush may send records to a task that has flushed its caches already
            handed_on = False
            for task in self.tasks:
                task.flush_caches()
                if self._hand_on(task):
                    handed_on = True
                    self._turns.settle(end)
        return [commit for task in self.tasks for commit in task.commit()]

    def take_outputs(self) -> list[tuple[str, OutputColumns]]:
        busy = [task for task in self.tasks if len(task.outputs)]
        if len(busy) == 1 and not len(self._left):
            return busy[0].take_outputs()
        # Dead letters of a global table, too, are in the order of their causes, not one task after the other.
        for output in sorted((output for task in busy for output in task.outputs.take()), key=_ordinal):
            self._left.put(output)
        return self._left.take_by_topic()

    def close(self) -> None:
        self._turns.close()

    def _hand_on(self, sender: Task) -> bool:
        """Hand the outputs of a task to the tasks that read them. Tell whether any task does."""
        handed_on = False
        for output in sender.outputs.take() if self._internal else ():
            topic, partition, key, value, timestamp, headers, ordinal = output
            if topic not in self._internal:
                self._left.put(output)
                continue
            handed_on = True
            if partition is None:
                partition = self._choose_partition(topic, key, sender.partition)
            # Such a record is in no topic, so the ordinal of its cause takes the place of its offset.
            self._turns.enqueue(topic, partition, (ordinal, timestamp, key, value, headers, 0))
        return handed_on
