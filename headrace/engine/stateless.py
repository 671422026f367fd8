"""Tasks that keep nothing: they run where their records are, in whichever process that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import perf_counter

from headrace.engine.application import Application, Outgoing, TaskInputs, tell
from headrace.engine.crash import crash_point
from headrace.engine.messages import Block, Input, Report, Stretch, lanes_of
from headrace.engine.plan import Unit
from headrace.engine.routing import FOR_THE_WRITER
from headrace.task.garbage_collection import collection_paused
from headrace.task.lanes import Causes, Lane
from headrace.task.task import Task

_ENOUGH = 10_000
"""How many records are processed before what came of them is sent on."""
_BEFORE_ALL = -1
"""The level of what comes before any stateful one."""


class StatelessTasks:
    """The tasks of stateless units in one process, for one batch."""

    def __init__(self, application: Application, outgoing: Outgoing) -> None:
        self._application, self._outgoing = application, outgoing
        self._tasks: dict[tuple[int, int], Task] = {}
        self._sent: dict[str, int] = {}

    @property
    def dropped_records(self) -> int:
        """How many records they have left out."""
        return sum(task.dropped_records for task in self._tasks.values())

    def __bool__(self) -> bool:
        """Tell whether any had something to do."""
        return bool(self._tasks)

    def run(self, number: int, now: int, process: Callable[[Task], Causes]) -> list[tuple[int, Block]]:
        """Have a task process records, all or some of them; return what is for tasks with state, and for Spark."""
        return self.follow(str(number), self._run(number, f"{number}:", now, process))

    def follow(self, origin: str, sent: Iterable[tuple[int, Block]]) -> list[tuple[int, Block]]:
        """Process what a task has sent to tasks without state; return what is for others, and what they make of it.

        What comes to a task by several ways is all there before it begins, to be put in the order of its causes.
        """
        units = self._application.units
        waiting: dict[int, list[Input]] = {}
        rest = self._sort_out(sent, waiting)
        while waiting:
            number = min(waiting, key=lambda number: units[number][0].depth)
            blocks = waiting.pop(number)
            process = partial(Task.process_lanes, lanes=lanes_of(blocks))
            rest += self._sort_out(self._run(number, f"{number}:{origin}", blocks[0].now, process), waiting)
        return rest

    def _sort_out(self, sent: Iterable[tuple[int, Block]], waiting: dict[int, list[Input]]) -> list[tuple[int, Block]]:
        """Add what is for tasks without state to what waits for them; return the rest."""
        rest: list[tuple[int, Block]] = []
        for to, block in sent:
            if isinstance(block, Input) and self._application.is_stateless(to):
                waiting.setdefault(to, []).append(block)
            else:
                rest.append((to, block))
        return rest

    def _run(self, number: int, name: str, now: int, process: Callable[[Task], Causes]) -> list[tuple[int, Block]]:
        """Have a task process records, and return what it has sent.

        The name is that of a lane: what the task makes of one origin's records is in order.
        """
        application = self._application
        unit, index = application.units[number]
        task = self._task(unit, index, now)
        causes = process(task)
        crash_point("mid-task")
        place = self._sent.get(name, 0)
        sent = list(application.routes.send(task.take_outputs(), causes, name, place, index, now))
        self._sent[name] = place + len(sent)
        return self._outgoing.send(name, sent)

    def _task(self, unit: Unit, index: int, now: int) -> Task:
        task = self._tasks.get((unit.number, index))
        if task is None:
            application = self._application
            task = self._tasks[unit.number, index] = Task(
                application.topology,
                application.subs[unit.subs[0]],
                application.config,
                partition=index,
                now=now,
                partition_count=application.partition_count,
            )
        task.now = now
        return task


class StatelessStage:
    """Runs the tasks that read topics and keep nothing, over the blocks of one Spark partition, as they come."""

    def __init__(self, application: Application, batch: int) -> None:
        self._application = application
        self._outgoing = Outgoing(application, batch)
        self._tasks = StatelessTasks(application, self._outgoing)
        self._has_failed = False
        self._inputs = TaskInputs(application)
        self._process_seconds = 0.0

    def run(self, number: int, stretches: Sequence[Stretch]) -> Iterator[list[tuple[int, Block]]]:
        """Process what a task reads: of one stretch page by page, of several all together, in the order of time."""
        now = stretches[0].now
        try:
            with collection_paused():
                for process in self._turns(stretches):
                    started = perf_counter() - self._inputs.numbers["source_seconds"]
                    sent = self._tasks.run(number, now, process)
                    self._process_seconds += perf_counter() - self._inputs.numbers["source_seconds"] - started
                    if sent:
                        yield sent
        except Exception as error:
            yield self._fail(error)

    def _turns(self, stretches: Sequence[Stretch]) -> Iterator[Callable[[Task], Causes]]:
        """Walk what a task is to do before what it makes of that is sent on: so much that it is worth a block."""
        if len(stretches) == 1:
            pages = self._inputs.pages(stretches[0])
            for first in pages:
                yield partial(Task.process_pages, pages=_some(first, pages))
        else:
            # They come in any order, and a batch run again is to do the same where causes are equal.
            in_order = sorted(stretches, key=lambda one: (one.topic, one.partition))
            lanes = [lane for stretch in in_order for lane in self._inputs.whole(stretch)]
            yield partial(Task.process_lanes, lanes=lanes)

    def end(self) -> list[tuple[int, Block]]:
        """Commit what was written, and say what was done, if anything was."""
        if self._has_failed:
            return []
        try:
            self._outgoing.commit()
        except Exception as error:
            return self._fail(error)
        if not self._tasks:
            return []
        numbers = {
            **self._inputs.numbers,
            **self._outgoing.numbers(),
            "dropped_records": self._tasks.dropped_records,
            "process_seconds": self._process_seconds,
        }
        return [(FOR_THE_WRITER, Report("stateless tasks", numbers))]

    def __enter__(self) -> StatelessStage:
        return self

    def __exit__(self, *error: object) -> None:
        self._outgoing.__exit__(*error)

    def _fail(self, error: Exception) -> list[tuple[int, Block]]:
        self._has_failed = True
        return tell(self._application, _BEFORE_ALL, error)


def _some(first: Lane, rest: Iterator[Lane]) -> Iterator[Lane]:
    """Walk a page and more of those behind it, until they are enough; the others stay where they are."""
    page: Lane | None = first
    records = 0
    while page is not None:
        yield page
        records += len(page.records)
        page = next(rest, None) if records < _ENOUGH else None
