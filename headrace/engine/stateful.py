"""One task with state for one batch: catch up with its state, process its records, keep its changes, send on the rest.

This is what a stage does for each of its tasks, in a Python worker of Spark's; it knows nothing of Spark itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import repeat
from time import perf_counter
from typing import Any

from headrace.engine.application import Application, Outgoing, TaskInputs, tell
from headrace.engine.changelogs import logged_entries, logged_versions
from headrace.engine.crash import crash_point
from headrace.engine.images import PartOfImage, image_folder, open_image
from headrace.engine.messages import Block, ForTask, Input, Report, Stretch
from headrace.engine.plan import Unit
from headrace.engine.routing import FOR_THE_WRITER
from headrace.engine.state_log import EpochLog, EpochState
from headrace.engine.stateless import StatelessTasks
from headrace.raw_records import RecordColumns
from headrace.state.builders import Store
from headrace.state.image import Changes, Image
from headrace.state.lmdb_image import LmdbImage
from headrace.state.small_state import SmallState
from headrace.state.versioned import VersionedStore
from headrace.task.garbage_collection import collection_paused, keep_memory, sample
from headrace.task.group import TaskGroup
from headrace.task.lanes import Causes
from headrace.task.running import TaskRunner
from headrace.task.task import Task
from headrace.topology.topology import SubTopology

_GENERATIONS = "#generations"


class StatefulTask:
    """A task in a batch: what it puts out is written in the end, when it is known that it has had all its records.

    An exception becomes a block, so that it reaches the user as it is.
    """

    def __init__(self, application: Application, number: int, state: EpochState, batch: int) -> None:
        self._application, self._number, self._state = application, number, state
        self._outgoing = Outgoing(application, batch)
        self._numbers: dict[str, float] | None = None

    def run(self, blocks: Sequence[ForTask]) -> list[tuple[int, Block]]:
        """Process its records, and all that follows from them without state; return what is for other tasks."""
        try:
            with collection_paused():
                return self._run(blocks)
        except Exception as error:
            return self._fail(error)

    def finish(self) -> list[tuple[int, Block]]:
        """Write what it has put out, unless it has failed, and say what it did."""
        if self._numbers is None:
            return []
        try:
            with collection_paused(), self._outgoing as outgoing:
                outgoing.commit()
        except Exception as error:
            return self._fail(error)
        unit, index = self._application.units[self._number]
        numbers = {**self._numbers, **self._outgoing.numbers()}
        return [(FOR_THE_WRITER, Report(f"task {unit.number}_{index}", numbers))]

    def _run(self, blocks: Sequence[ForTask]) -> list[tuple[int, Block]]:
        started = perf_counter()
        images = image_folder(self._application.image_dir, self._application.config.application_id)
        with open_image(images / str(self._number)) as image:
            return self._run_over(image, blocks, started)

    def _run_over(self, image: LmdbImage, blocks: Sequence[ForTask], started: float) -> list[tuple[int, Block]]:
        application, number = self._application, self._number
        unit, index = application.units[number]
        now = max(block.now for block in blocks)
        parts = _Parts(application, unit, index, image, now)
        parts.open_spaces()
        log = EpochLog(self._state, image, parts.spaces)
        cells = log.restore()
        log.shorten()
        restored = perf_counter()
        inputs = TaskInputs(application)
        sent_here = [block for block in blocks if isinstance(block, Input)]
        # They come in any order. Of equal causes, a global table's record goes first: a batch run again does the same.
        tables = application.plan.global_readers
        stretches = [block for block in blocks if isinstance(block, Stretch)]
        stretches.sort(key=lambda one: (one.topic not in tables, one.topic, one.partition))
        with closing(parts.build(cells)) as running:
            if len(stretches) == 1 and not sent_here:
                causes = running.process_pages(inputs.pages(stretches[0]))
                keep_memory("inputs", ())
            else:
                lanes = inputs.sent(sent_here)
                lanes += [lane for stretch in stretches for lane in inputs.whole(stretch)]
                causes = running.process_lanes(lanes)
                keep_memory("inputs", [sample(lane.records) for lane in lanes])
                del lanes
            crash_point("mid-task")
            running.advance_wall_clock(now)
            changes, new_cells = parts.commit(running)
            outputs = running.take_outputs()
            dropped = running.dropped_records
        processed = perf_counter()
        if changes or new_cells != cells:
            log.commit(changes, new_cells)
        crash_point("after-state-write")
        kept = perf_counter()
        lane = str(number)
        following = StatelessTasks(application, self._outgoing)
        sent = self._outgoing.send(lane, application.routes.send(outputs, causes, lane, 0, index, now))
        sent += self._outgoing.send(lane, parts.changelog(changes, new_cells, lane, causes))
        sent = following.follow(lane, sent)
        self._numbers = {
            **inputs.numbers,
            "dropped_records": dropped + following.dropped_records,
            "state_seconds": restored - started + kept - processed,
            "process_seconds": processed - restored + perf_counter() - kept - inputs.numbers["source_seconds"],
            "state_bytes": image.total_bytes(),
            "log_bytes": log.logged_bytes,
        }
        return sent

    def _fail(self, error: Exception) -> list[tuple[int, Block]]:
        return tell(self._application, self._application.units[self._number][0].level, error)


class _Parts:
    """The tasks that make up one task of a unit: one, or one with its global tables, or those of a circle."""

    def __init__(self, application: Application, unit: Unit, index: int, image: Any, now: int) -> None:
        self._application, self._unit, self._image, self._now = application, unit, image, now
        ordinary = [
            (application.subs[sub], partition)
            for sub in unit.subs
            for partition in (range(application.plan.widths[sub]) if unit.together else (index,))
        ]
        self._ordinary = ordinary
        self._globals = [(application.subs[sub], 0) for sub in unit.global_subs]
        self._versions: dict[tuple[str, int], RecordColumns] = {}
        """Of versioned stores, by name and partition: what was put into them."""

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
                self._application.topology.stores[name].make(
                    name, self._application.config.store_serde, view, SmallState()
                )
                self._opened.update(dict.fromkeys(view.opened))

    def build(self, cells: Mapping[str, dict[str, Any]]) -> TaskRunner:
        """Make the tasks."""
        cells = self._without_dropped(cells)
        stores: dict[str, Store] = {}
        tasks = []
        for sub, partition in self._globals:
            task = self._task(sub, partition, cells, {})
            stores.update(task.stores)
            tasks.append(task)
        tasks += [self._task(sub, partition, cells, stores) for sub, partition in self._ordinary]
        for _, store in self._logged_versioned(tasks):
            store.keep_puts()
        if len(tasks) == 1 and not self._unit.together:
            return tasks[0]
        return TaskGroup(tasks, self._application.routes.choose_partition)

    def commit(self, running: TaskRunner) -> tuple[dict[str, Changes], dict[str, dict[str, Any]]]:
        """Commit the tasks; return the changes by space and the cells by part."""
        tasks, commits = running.tasks, running.commit()
        self._versions = {(store.name, part): logged_versions(store) for part, store in self._logged_versioned(tasks)}
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
                entries = self._versions.get((store, partition))
                if entries is None and store in logged and changed:
                    kind = self._application.topology.stores[store].kind
                    floor = cells[self._key(sub, partition)].get(f"{store}/floor", 0)
                    entries = logged_entries(changed, kind, self._now, floor)
                if entries:
                    yield from self._application.routes.for_the_writer(
                        logged[store].name, partition, lane, 0, entries, causes, repeat(-1, len(entries))
                    )

    def _logged_versioned(self, tasks: Iterable[Task]) -> Iterator[tuple[int, VersionedStore[Any, Any]]]:
        """Walk the versioned stores that have a changelog, with their partitions."""
        for task in tasks:
            for name, store in task.stores.items():
                if isinstance(store, VersionedStore) and name in self._application.changelogs:
                    yield task.partition, store

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
