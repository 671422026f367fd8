"""Tasks without state: they run in the process where their records are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import perf_counter

from headrace.engine.crash import crash_point
from headrace.engine.delivery import Delivery, Outbox, needs_causes
from headrace.engine.failures import BEFORE_ALL_LEVELS, failure_messages
from headrace.engine.inputs import Inputs, only_range
from headrace.engine.messages import FOR_DRIVER, Report, Routed, SentRecords, TopicRange
from headrace.engine.plan import Unit
from headrace.engine.worker import Worker
from headrace.task.garbage_collection import collection_paused
from headrace.task.lanes import Causes, Lane
from headrace.task.task import Task

_ENOUGH = 10_000
"""How many records to process before their outputs are sent."""


class StatelessTasks:
    """The tasks of units without state in one process, for one batch."""

    def __init__(self, worker: Worker, outbox: Outbox) -> None:
        self._worker, self._outbox = worker, outbox
        self._application = worker.application
        self._inputs = Inputs(worker, with_causes=True)
        self._tasks: dict[tuple[int, int], Task] = {}
        self._sent: dict[str, int] = {}
        """How many messages each lane has so far."""

    @property
    def dropped_records(self) -> int:
        """How many records the tasks have dropped."""
        return sum(task.dropped_records for task in self._tasks.values())

    def __bool__(self) -> bool:
        """Tell whether any task had something to do."""
        return bool(self._tasks)

    def run(self, number: int, now: int, process: Callable[[Task], Causes]) -> list[Routed]:
        """Let a task process records, all or some of its batch. Return the messages for other tasks."""
        return self.follow(str(number), self._run(number, f"{number}:", now, process))

    def follow(self, origin: str, sent: Iterable[Routed]) -> list[Routed]:
        """Process the messages that a task has sent to tasks without state. Return the remaining and the new messages.

        A task begins when all its records are there, even if they come in several ways: it merges them by cause.
        """
        units = self._application.units
        waiting: dict[int, list[SentRecords]] = {}
        rest = self._sort_out(sent, waiting)
        while waiting:
            number = min(waiting, key=lambda number: units[number][0].depth)
            messages = waiting.pop(number)
            process = partial(Task.process_lanes, lanes=self._inputs.sent(messages))
            rest += self._sort_out(self._run(number, f"{number}:{origin}", messages[0].now, process), waiting)
        return rest

    def _sort_out(self, sent: Iterable[Routed], waiting: dict[int, list[SentRecords]]) -> list[Routed]:
        """Add the messages for tasks without state to `waiting`. Return the rest."""
        rest: list[Routed] = []
        for to, message in sent:
            if isinstance(message, SentRecords) and self._application.is_stateless(to):
                waiting.setdefault(to, []).append(message)
            else:
                rest.append((to, message))
        return rest

    def _run(self, number: int, lane: str, now: int, process: Callable[[Task], Causes]) -> list[Routed]:
        """Let a task process records. Return the messages that it sends.

        There is one lane for each origin of the records. In a lane the messages are in order.
        """
        unit, partition = self._application.units[number]
        task = self._task(unit, partition, now)
        causes = process(task)
        crash_point("mid-task")
        before, outputs = self._sent.get(lane, 0), task.take_outputs()
        sent = self._application.routes.send(outputs, causes, lane, before, partition, now, self._outbox)
        self._sent[lane] = before + len(sent)
        return sent

    def _task(self, unit: Unit, partition: int, now: int) -> Task:
        task = self._tasks.get((unit.number, partition))
        if task is None:
            application = self._application
            task = self._tasks[unit.number, partition] = Task(
                application.topology,
                application.sub_topologies[unit.subs[0]],
                application.config,
                partition=partition,
                now=now,
                partition_count=self._worker.partition_count,
            )
        task.now = now
        return task


class StatelessStage:
    """Runs the tasks without state that read topics, for one process and batch."""

    def __init__(self, worker: Worker, delivery: Delivery, batch: int) -> None:
        self._application = worker.application
        self._outbox = delivery.open(worker, batch)
        self._tasks = StatelessTasks(worker, self._outbox)
        self._inputs = Inputs(worker, with_causes=needs_causes(worker, delivery))
        self._has_failed = False
        self._process_seconds = 0.0

    def run(self, number: int, ranges: Sequence[TopicRange]) -> Iterator[list[Routed]]:
        """Process what a task reads: a single range page by page, or several ranges together, merged by cause."""
        now, inputs = ranges[0].now, self._inputs.numbers
        try:
            with collection_paused():
                for process in self._turns(ranges):
                    started = perf_counter() - inputs["source_seconds"]
                    sent = self._tasks.run(number, now, process)
                    self._process_seconds += perf_counter() - inputs["source_seconds"] - started
                    if sent:
                        yield sent
        except Exception as error:
            yield self._failed(error)

    def _turns(self, ranges: Sequence[TopicRange]) -> Iterator[Callable[[Task], Causes]]:
        """Walk the pieces of a task's work. Each gives enough outputs for a message, which is sent after it."""
        alone = only_range(ranges)
        if alone is None:
            yield partial(Task.process_lanes, lanes=self._inputs.lanes(ranges))
            return
        pages = self._inputs.pages(alone)
        for first in pages:
            yield partial(Task.process_pages, pages=_enough(first, pages))

    def end(self) -> list[Routed]:
        """Commit the outputs. Report what was done, if anything was."""
        if self._has_failed:
            return []
        try:
            self._outbox.commit()
        except Exception as error:
            return self._failed(error)
        if not self._tasks:
            return []
        numbers = {
            **self._inputs.numbers,
            **self._outbox.numbers(),
            "dropped_records": self._tasks.dropped_records,
            "process_seconds": self._process_seconds,
        }
        return [(FOR_DRIVER, Report("stateless tasks", numbers))]

    def __enter__(self) -> StatelessStage:
        return self

    def __exit__(self, *error: object) -> None:
        self._outbox.__exit__(*error)

    def _failed(self, error: Exception) -> list[Routed]:
        self._has_failed = True
        return failure_messages(self._application, BEFORE_ALL_LEVELS, error)


def _enough(first: Lane, rest: Iterator[Lane]) -> Iterator[Lane]:
    """Walk a page and the pages after it until they have enough records. Leave the others."""
    page: Lane | None = first
    records = 0
    while page is not None:
        yield page
        records += len(page.records)
        page = next(rest, None) if records < _ENOUGH else None
