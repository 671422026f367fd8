"""One task for one batch: bring its state up to date, process its records, keep its changes, send its outputs on.

This is what a stage does for each of its tasks, in a Python worker of Spark's; it knows nothing of Spark itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from time import perf_counter
from typing import Any

from headrace.brokers.broker import TopicInfo
from headrace.brokers.engine import EngineBroker, Writing, shared
from headrace.config import StreamsConfig
from headrace.errors import HeadraceError, TaskError
from headrace.spark.blocks import Block, Failure, ForTask, Input, Output, Report, Stretch, failure, lanes_of
from headrace.spark.changelogs import logged_entries
from headrace.spark.crash import crash_point
from headrace.spark.epochs import EpochLog, EpochState
from headrace.spark.images import PartOfImage, image_folder, open_image
from headrace.spark.plan import Plan, Unit
from headrace.spark.routing import FOR_THE_WRITER, Routes, make_named_topics
from headrace.state.builders import Store
from headrace.state.cells import Cells
from headrace.state.image import Changes, Image
from headrace.task.collector import collector_paused, keep_memory
from headrace.task.group import TaskGroup
from headrace.task.lanes import Causes, Lane, joined
from headrace.task.sources import RawRecord
from headrace.task.task import Task
from headrace.topology.topology import SubTopology, Topology

_GENERATIONS = "#generations"
_PIECES = 1 << 20
"""More blocks than a block can be turned into."""


@dataclass(frozen=True)
class Application:
    """All that a worker needs to know."""

    topology: Topology
    config: StreamsConfig
    plan: Plan
    task_numbers: dict[int, list[int]]
    """Of every unit's tasks."""
    generations: dict[str, int]
    image_dir: Path | None
    """Where images are; None: on each executor's own disk."""
    changelogs: Mapping[str, TopicInfo] = field(default_factory=dict)
    """By store, the topic that its changes go to."""
    permit: object | None = None
    """What tasks need to write where they run; None: what they put out goes to the driver."""

    @cached_property
    def subs(self) -> Mapping[int, SubTopology]:
        """The sub-topologies by their ids."""
        return {sub.id: sub for sub in self.topology.sub_topologies()}

    @cached_property
    def units(self) -> Mapping[int, tuple[Unit, int]]:
        """The unit of a task, and which of its tasks this is."""
        return {
            number: (unit, task)
            for unit in self.plan.units
            for task, number in enumerate(self.task_numbers[unit.number])
        }

    @cached_property
    def routes(self) -> Routes:
        """The way of what tasks put out."""
        plan = self.plan
        tasks = {
            topic: [self.task_numbers[unit][plan.task_of(plan.units[unit], n)] for n in range(plan.partitions[topic])]
            for topic, unit in plan.readers.items()
            if topic in plan.internal
        }
        return Routes(plan.partitions, tasks, plan.key_suffixes, tasks_write=self.permit is not None)

    @property
    def broker(self) -> EngineBroker:
        """The broker as this process knows it."""
        return shared(self.config.broker_address, self.config.kafka)

    def pages(self, stretch: Stretch) -> Iterator[list[RawRecord]]:
        """Read records of a topic, page by page."""
        return self.broker.read_rows(stretch.topic, stretch.partition, stretch.start, stretch.end)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return self.plan.partitions.get(topic, self.config.num_partitions)


class Outgoing:
    """What the tasks of one process put out in a batch: written here, if there is a permit, or on its way.

    It is written when all of it is there: a broker gives a transaction a minute, and nobody knows how long tasks take.
    Use it in a `with`: what was written is taken back without a commit.
    """

    def __init__(self, application: Application, batch: int) -> None:
        self._application, self._batch = application, batch
        self._held: list[tuple[str, Output]] = []
        self._writing: Writing | None = None
        self._seconds = 0.0

    def numbers(self) -> dict[str, float]:
        """Return how many records were written here, and how long that took."""
        records = 0 if self._writing is None else self._writing.records
        return {"records_written": records, "write_seconds": self._seconds}

    def send(self, task: str, blocks: Iterable[tuple[int, Block]]) -> list[tuple[int, Block]]:
        """Keep a task's records for the broker; return what else it has, for Spark to take."""
        if self._application.permit is None:
            return list(blocks)
        rest: list[tuple[int, Block]] = []
        for to, block in blocks:
            if isinstance(block, Output):
                self._held.append((task, block))
            else:
                rest.append((to, block))
        return rest

    def commit(self) -> None:
        """Write what there is, and have it there for others."""
        if not self._held:
            return
        application, started = self._application, perf_counter()
        unplanned = [block for _, block in self._held if block.topic not in application.plan.partitions]
        make_named_topics(application.broker, application.config, unplanned)
        self._writing = application.broker.begin_writing(application.permit, self._batch)
        for task, block in self._held:
            self._writing.send(task, block.topic, None if block.partition < 0 else block.partition, block.records)
        keep_memory("outputs", (block.records for _, block in self._held))
        self._held.clear()
        crash_point("after-send")
        self._writing.commit()
        crash_point("after-task-commit")
        self._seconds = perf_counter() - started

    def __enter__(self) -> Outgoing:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writing is not None:
            self._writing.__exit__(*error)


def run_stateful(
    application: Application, number: int, blocks: Sequence[ForTask], state: EpochState, batch: int
) -> Iterator[tuple[int, Block]]:
    """Run a task of a stateful unit; an exception becomes a block, so that it reaches the user as it is."""
    try:
        with Outgoing(application, batch) as outgoing:
            yield from _run_stateful(application, number, blocks, state, outgoing)
    except Exception as error:
        yield from _tell(application, number, error)


def _tell(application: Application, number: int, error: Exception) -> list[tuple[int, Block]]:
    """Say that a task has failed: to the writer, and to all tasks of later stages.

    These lack what it would have sent them. If they wrote what they make of the rest, it would count as done.
    """
    told, stage = failed(error), application.units[number][0].stage
    later = [task for task, (unit, _) in application.units.items() if unit.stage > stage]
    return [(to, told) for to in (FOR_THE_WRITER, *later)]


def failed(error: Exception) -> Failure:
    """Pack an exception that ends the batch."""
    if not isinstance(error, HeadraceError):
        wrapped = TaskError(f"{type(error).__name__}: {error}")
        wrapped.__cause__ = error
        error = wrapped
    return failure(error)


def _run_stateful(
    application: Application, number: int, blocks: Sequence[ForTask], state: EpochState, outgoing: Outgoing
) -> list[tuple[int, Block]]:
    unit, index = application.units[number]
    now = max(block.now for block in blocks)
    started = perf_counter()
    images = image_folder(application.image_dir, application.config.application_id)
    image = open_image(images / str(number))
    parts = _Parts(application, unit, index, image, now)
    parts.open_spaces()
    log = EpochLog(state, image, parts.spaces)
    cells = log.restore()
    log.shorten()
    restored = perf_counter()
    inputs = TaskInputs(application)
    with collector_paused():
        sent_here = [block for block in blocks if isinstance(block, Input)]
        stretches = [block for block in blocks if isinstance(block, Stretch)]
        with closing(parts.build(cells)) as running:
            if len(stretches) == 1 and not sent_here:
                causes = running.process_pages(inputs.pages(stretches[0]))
                keep_memory("inputs", ())
            else:
                lanes = inputs.sent(sent_here)
                lanes += [lane for stretch in stretches for lane in inputs.whole(stretch)]
                causes = running.process_lanes(lanes)
                keep_memory("inputs", (lane.records for lane in lanes))
                del lanes
            crash_point("mid-task")
            running.advance_wall_clock(now)
            changes, new_cells = parts.commit(running)
            outputs = running.take_caused_outputs()
            dropped = running.dropped_records
        processed = perf_counter()
        if changes or new_cells != cells:
            log.commit(changes, new_cells)
        crash_point("after-state-write")
        kept = perf_counter()
        lane = str(number)
        sent = outgoing.send(lane, application.routes.send(outputs, causes, lane, 0, index, now))
        sent += outgoing.send(lane, parts.changelog(changes, new_cells, lane, causes))
        outgoing.commit()
    busy = processed - restored + perf_counter() - kept
    written = outgoing.numbers()
    numbers = {
        **written,
        **inputs.numbers,
        "dropped_records": dropped,
        "state_seconds": restored - started + kept - processed,
        "process_seconds": busy - inputs.numbers["source_seconds"] - written["write_seconds"],
        "state_bytes": image.total_bytes(),
        "log_bytes": log.logged_bytes,
    }
    return [*sent, (FOR_THE_WRITER, Report(f"task {unit.number}_{index}", numbers))]


class TaskInputs:
    """Reads stretches of topics where their records are processed, and what other tasks have sent."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self.numbers = {"records_read": 0.0, "source_seconds": 0.0}
        """How many records were read of topics that the application has as its own, and how long all reading took."""

    def sent(self, blocks: Sequence[Input]) -> list[Lane]:
        """Unpack what other tasks have sent."""
        started = perf_counter()
        lanes = lanes_of(blocks)
        self.numbers["source_seconds"] += perf_counter() - started
        return lanes

    def pages(self, stretch: Stretch) -> Iterator[Lane]:
        """Walk a stretch page by page, so that nobody has to keep all of it."""
        before, counted = (-1, -1), stretch.topic in self._application.plan.readers
        started = perf_counter()
        for page in self._application.pages(stretch):
            lane = Lane.of_source(stretch.topic, stretch.partition, page, before)
            if before == (-1, -1):
                crash_point("after-read")
            before = lane.causes.last()
            self.numbers["records_read"] += len(page) if counted else 0
            self.numbers["source_seconds"] += perf_counter() - started
            yield lane
            started = perf_counter()
        self.numbers["source_seconds"] += perf_counter() - started

    def whole(self, stretch: Stretch) -> Iterator[Lane]:
        """Read a stretch as one lane, unless it is empty."""
        pages = list(self.pages(stretch))
        if pages:
            records = [record for page in pages for record in page.records]
            yield Lane(stretch.topic, stretch.partition, records, joined([page.causes for page in pages]))


class StatelessStage:
    """Runs the tasks of stateless units over the blocks of one Spark partition, in the order in which they come."""

    def __init__(self, application: Application, batch: int) -> None:
        self._application = application
        self._outgoing = Outgoing(application, batch)
        self._has_failed = False
        self._tasks: dict[tuple[int, int], Task] = {}
        self._sent: dict[str, int] = {}
        self._inputs = TaskInputs(application)
        self._process_seconds = 0.0

    def run(self, number: int, block: Input | Stretch) -> Iterator[list[tuple[int, Block]]]:
        """Process one block, page by page."""
        try:
            with collector_paused():
                for lane in self._inputs.sent([block]) if isinstance(block, Input) else self._inputs.pages(block):
                    started = perf_counter()
                    sent = self._run(number, block, lane)
                    self._process_seconds += perf_counter() - started
                    if sent:
                        yield sent
        except Exception as error:
            self.give_up()
            yield _tell(self._application, number, error)

    def give_up(self) -> None:
        """Write nothing: the batch will not be."""
        self._has_failed = True

    def _run(self, number: int, block: Input | Stretch, lane: Lane) -> list[tuple[int, Block]]:
        application = self._application
        unit, index = application.units[number]
        task = self._task(unit, index, block.now)
        causes = task.process_lanes([lane])
        crash_point("mid-task")
        name = f"{unit.number}:{block.lane}"
        # Pages of a stretch come one after the other; blocks of another task's lane may be anywhere.
        place = self._sent.get(name, 0) if isinstance(block, Stretch) else block.index * _PIECES
        sent = list(application.routes.send(task.take_caused_outputs(), causes, name, place, index, block.now))
        self._sent[name] = place + len(sent)
        return self._outgoing.send(f"{number}:{block.lane}", sent)

    def end(self) -> Iterator[tuple[int, Block]]:
        """Commit what was written, and say what was done, if anything was."""
        if self._has_failed:
            return
        try:
            self._outgoing.commit()
        except Exception as error:
            yield FOR_THE_WRITER, failed(error)
        if self._tasks:
            numbers = {
                **self._inputs.numbers,
                **self._outgoing.numbers(),
                "dropped_records": sum(task.dropped_records for task in self._tasks.values()),
                "process_seconds": self._process_seconds,
            }
            yield FOR_THE_WRITER, Report("stateless tasks", numbers)

    def __enter__(self) -> StatelessStage:
        return self

    def __exit__(self, *error: object) -> None:
        self._outgoing.__exit__(*error)

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


class _Parts:
    """The tasks that make up one task of a unit: one, or one with its global tables, or those of a circle."""

    def __init__(self, application: Application, unit: Unit, index: int, image: Any, now: int) -> None:
        self._application, self._unit, self._image, self._now = application, unit, image, now
        ordinary = [
            (application.subs[sub], partition)
            for sub in unit.subs
            for partition in (range(self._partitions(sub)) if unit.together else (index,))
        ]
        self._ordinary = ordinary
        self._globals = [(application.subs[sub], 0) for sub in unit.global_subs]

    @property
    def spaces(self) -> frozenset[str] | None:
        """The spaces of the stores there are."""
        return frozenset(self._opened)

    def open_spaces(self) -> None:
        """Open the space of every store with its second order, before anything is applied to the image."""
        self._opened: dict[str, None] = {}
        for sub, partition in (*self._globals, *self._ordinary):
            for name in sub.stores:
                view = self._view(sub, partition)
                self._application.topology.stores[name].make(name, self._application.config.store_serde, view, Cells())
                self._opened.update(dict.fromkeys(view.opened))

    def build(self, cells: Mapping[str, dict[str, Any]]) -> Task | TaskGroup:
        """Make the tasks."""
        cells = self._without_dropped(cells)
        stores: dict[str, Store] = {}
        tasks = []
        for sub, partition in self._globals:
            task = self._task(sub, partition, cells, {})
            stores.update(task.stores)
            tasks.append(task)
        tasks += [self._task(sub, partition, cells, stores) for sub, partition in self._ordinary]
        if len(tasks) == 1 and not self._unit.together:
            return tasks[0]
        return TaskGroup(tasks, self._application.routes.choose_partition)

    def commit(self, running: Task | TaskGroup) -> tuple[dict[str, Changes], dict[str, dict[str, Any]]]:
        """Commit the tasks; return the changes by space and the cells by part."""
        commits = running.commit() if isinstance(running, TaskGroup) else [running.commit()]
        changes: dict[str, Changes] = {}
        cells: dict[str, dict[str, Any]] = {_GENERATIONS: self._generations()}
        for (sub, partition), commit in zip((*self._globals, *self._ordinary), commits):
            view = self._view(sub, partition)
            changes.update({view.name_of(space): changed for space, changed in commit.stores.items()})
            cells[self._key(sub, partition)] = commit.state
        return changes, cells

    def changelog(
        self, changes: Mapping[str, Changes], cells: Mapping[str, dict[str, Any]], lane: str, causes: Causes
    ) -> Iterator[tuple[int, Block]]:
        """Walk the changes of stores as blocks of records for their changelog topics, in Kafka Streams' form."""
        logged = self._application.changelogs
        for sub, partition in self._ordinary:
            view = self._view(sub, partition)
            for store in sub.stores:
                changed = changes.get(view.name_of(store))
                if store in logged and changed:
                    kind = self._application.topology.stores[store].kind
                    floor = cells[self._key(sub, partition)].get(f"{store}/floor", 0)
                    entries = logged_entries(changed, kind, self._now, floor)
                    yield from self._application.routes.for_the_writer(
                        logged[store].name, partition, lane, 0, entries, causes, repeat(-1, len(entries))
                    )

    def _generations(self) -> dict[str, int]:
        stores = {name for sub, _ in (*self._globals, *self._ordinary) for name in sub.stores}
        return {name: number for name, number in self._application.generations.items() if name in stores}

    def _without_dropped(self, cells: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the cells without those of stores that were dropped since they were written."""
        before = cells.get(_GENERATIONS, {})
        gone = tuple(f"{name}/" for name, number in self._generations().items() if before.get(name, 0) != number)
        return {
            part: {name: value for name, value in held.items() if not (gone and name.startswith(gone))}
            for part, held in cells.items()
        }

    def _task(
        self, sub: SubTopology, partition: int, cells: Mapping[str, dict[str, Any]], stores: dict[str, Store]
    ) -> Task:
        application = self._application
        image: Image = self._view(sub, partition)
        return Task(
            application.topology,
            sub,
            application.config,
            partition=partition,
            image=image,
            state=cells.get(self._key(sub, partition)),
            global_stores=stores,
            now=self._now,
            partition_count=application.partition_count,
        )

    def _view(self, sub: SubTopology, partition: int) -> PartOfImage:
        prefix = f"{partition}/" if self._unit.together and not sub.is_global else ""
        return PartOfImage(self._image, prefix, sub.stores, self._application.generations)

    def _key(self, sub: SubTopology, partition: int) -> str:
        """Return the name of a part's cells, which must be the same after a restart with a changed topology."""
        if not self._unit.together and not sub.is_global:
            return ""
        first = min(self._topics(sub))
        return f"{first}/{partition}"

    def _topics(self, sub: SubTopology) -> list[str]:
        nodes = (self._application.topology.nodes[name] for name in sub.nodes)
        return [topic for node in nodes for topic in getattr(node, "topics", ())] or [""]

    def _partitions(self, sub: int) -> int:
        application = self._application
        task = application.subs[sub]
        internal = application.topology.internal_topics
        prefix = f"{application.config.application_id}-"
        names = [f"{prefix}{topic}" if topic in internal else topic for topic in self._topics(task)]
        return max((application.plan.partitions.get(name, 1) for name in names), default=1)
