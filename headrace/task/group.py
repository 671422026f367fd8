"""Tasks that take records in turn: a cycle through internal topics, or a task with the global tables it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from headrace.raw_records import OutputColumns, RawRecord
from headrace.task.lanes import Causes, Lane, Numbers, joined, merge_order, taken_in, with_end
from headrace.task.outputs import Outputs
from headrace.task.task import Commit, Task

_target, _ordinal = itemgetter(0), itemgetter(-1)


class TaskGroup:
    """Tasks that run as one.

    A record goes through all of them, with everything that follows from it inside the group, before the next one
    comes: what a foreign-key join or a look-up in a global table gives then depends on the order of the records alone.
    """

    def __init__(self, tasks: Sequence[Task], choose_partition: Callable[[str, bytes | None, int], int]) -> None:
        """Group tasks; `choose_partition(topic, key, partition of the sender)` says where an internal record goes."""
        self.tasks = list(tasks)
        self._left = Outputs()
        """What nobody here reads."""
        self._choose_partition = choose_partition
        self._readers: dict[tuple[str, int], list[Task]] = {}
        internal = map(tasks[0].topic_name, tasks[0].topology.internal_topics)
        self._internal = {topic for topic in internal if any(task.reads(topic) for task in tasks)}

    def process_lanes(self, lanes: Sequence[Lane]) -> Causes:
        """Process a batch in the order of its causes; return them by ordinal, one more than there are records."""
        causes = joined([lane.causes for lane in lanes])
        order = merge_order(causes)
        if order is not None:
            causes = causes.at(order)
        ordinal = 0
        for (topic, partition), records in _runs(lanes, order):
            ordinal = self._process_run(topic, partition, records, ordinal)
        return self._ended(causes)

    def process_pages(self, pages: Iterable[Lane]) -> Causes:
        """Process a batch that is one lane, page by page as they come; return its causes as `process_lanes` does."""
        causes, ordinal = [], 0
        for page in pages:
            ordinal = self._process_run(page.topic, page.partition, page.records, ordinal)
            causes.append(page.causes)
        return self._ended(joined(causes))

    def _process_run(self, topic: str, partition: int, records: Sequence[RawRecord], ordinal: int) -> int:
        """Process records that follow each other in one topic partition; return the ordinal of the next one."""
        # What comes back must be dealt with before the next record: one at a time where something can.
        size = 1 if self._internal else len(records)
        for first in range(0, len(records), size):
            for task in self._readers_of(topic, partition):
                task.process_run(topic, partition, records[first : first + size], ordinal)
                self._move_on(task)
            self._settle(ordinal)
            ordinal += size
        if not self._internal:  # or else what one has put out comes to the next in the order of all topics
            for task in self.tasks:
                task.outputs.end_page()
        return ordinal

    def _ended(self, causes: Causes) -> Causes:
        for task in self.tasks:
            task.record.ordinal = len(causes)
        return with_end(causes, max(task.now for task in self.tasks))

    def advance_wall_clock(self, now: int) -> None:
        """Set the clock and call the punctuations that it makes due."""
        for task in self.tasks:
            task.advance_wall_clock(now)
            self._move_on(task)
            self._settle(task.record.ordinal)

    def commit(self) -> list[Commit]:
        """Flush the caches until nothing moves, then commit every task."""
        end = self.tasks[0].record.ordinal
        moved = True
        while moved:
            moved = False
            for task in self.tasks:
                task.flush_caches()
                if self._move_on(task):
                    moved = True
                    self._settle(end)
        return [commit for task in self.tasks for commit in task.commit()]

    def take_outputs(self) -> list[tuple[str, OutputColumns]]:
        """Return what has left the group since the last call, by topic and page."""
        busy = [task for task in self.tasks if len(task.outputs)]
        if len(busy) == 1 and not len(self._left):
            return busy[0].take_outputs()
        # Also dead letters of a global table: they are in the order of what caused them, not a task after the other.
        for output in sorted((output for task in busy for output in task.outputs.take()), key=_ordinal):
            self._left.put(output)
        return self._left.take_by_topic()

    @property
    def dropped_records(self) -> int:
        return sum(task.dropped_records for task in self.tasks)

    def close(self) -> None:
        """Close the processors."""
        for task in self.tasks:
            task.close()

    def _move_on(self, sender: Task) -> bool:
        """Hand what a task has put out to those that read it here; tell whether anybody does."""
        moved = False
        for output in sender.outputs.take() if self._internal else ():
            topic, partition, key, value, timestamp, headers, ordinal = output
            if topic not in self._internal:
                self._left.put(output)
                continue
            moved = True
            if partition is None:
                partition = self._choose_partition(topic, key, sender.partition)
            for task in self._readers_of(topic, partition):
                task.feed(topic, partition, [(ordinal, timestamp, key, value, headers)])
        return moved

    def _settle(self, ordinal: int) -> None:
        """Process what waits inside the group, lowest timestamp first, until nothing does."""
        while self._internal:
            waiting = [(head, task) for task in self.tasks if (head := task.head_timestamp()) is not None]
            if not waiting:
                return
            task = min(waiting, key=_target)[1]
            task.process_one(ordinal)
            self._move_on(task)

    def _readers_of(self, topic: str, partition: int) -> list[Task]:
        found = self._readers.get((topic, partition))
        if found is None:
            found = self._readers[topic, partition] = [
                task for task in self.tasks if task.reads(topic) and (task.is_global or task.partition == partition)
            ]
        return found


def _runs(lanes: Sequence[Lane], order: Numbers | None) -> Iterator[tuple[tuple[str, int], Sequence[RawRecord]]]:
    """Walk the records in order, those that follow each other in one topic partition together."""
    if order is None:
        for lane in lanes:
            yield (lane.topic, lane.partition), lane.records
        return
    tagged = [((lane.topic, lane.partition), record) for lane in lanes for record in lane.records]
    for place, run in groupby(taken_in(order, tagged), _target):
        yield place, [record for _, record in run]
