"""The tasks of a unit: the sub-topologies that run as one task, over one image.

Tests: `tests/conformance/test_engines.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headrace.engine.changelogs import logged_entries, logged_versions
from headrace.engine.images import SpacesOfTask
from headrace.engine.plan import Unit
from headrace.engine.worker import Worker
from headrace.raw_records import RecordColumns
from headrace.state.builders import Store
from headrace.state.image import Changes
from headrace.state.lmdb_image import LmdbImage
from headrace.state.small_state import SmallState
from headrace.state.versioned import VersionedStore
from headrace.task.group import TaskGroup
from headrace.task.running import TaskRunner
from headrace.task.task import Task
from headrace.topology.topology import SubTopology

CellValues = dict[str, dict[str, Any]]
"""The values of a task's cells, by sub-topology."""
_GENERATIONS = "#generations"


class UnitTasks:
    """Builds and commits the tasks that run as one task of a unit.

    These are a sub-topology for one partition, perhaps with the global tables that it reads, or all partitions of the
    sub-topologies that send records in a cycle.
    """

    def __init__(self, worker: Worker, unit: Unit, partition: int, image: LmdbImage, now: int) -> None:
        self._worker, self._unit, self._image, self._now = worker, unit, image, now
        self._application = worker.application
        subs, widths = self._application.sub_topologies, self._application.plan.widths
        self._ordinary = [
            (subs[sub], number)
            for sub in unit.subs
            for number in (range(widths[sub]) if unit.together else (partition,))
        ]
        self._globals = [(subs[sub], 0) for sub in unit.global_subs]
        self._versions: dict[tuple[str, int], RecordColumns] = {}
        """The puts of versioned stores, by store and partition."""

    def open_spaces(self) -> frozenset[str]:
        """Open the space of every store with its time order, before the image changes. Return the spaces' names."""
        opened: set[str] = set()
        for sub, partition in (*self._globals, *self._ordinary):
            for name in sub.stores:
                spaces = self._spaces(sub, partition)
                builder = self._application.topology.stores[name]
                builder.make(name, self._application.config.store_serde, spaces, SmallState())
                opened.update(spaces.opened)
        return frozenset(opened)

    def build(self, cells: CellValues) -> TaskRunner:
        """Make the tasks with these values of their cells."""
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

    def commit(self, running: TaskRunner) -> tuple[dict[str, Changes], CellValues]:
        """Commit the tasks. Return the changes by space and the values of the cells."""
        tasks, commits = running.tasks, running.commit()
        self._versions = {
            (store.name, partition): logged_versions(store) for partition, store in self._logged_versioned(tasks)
        }
        changes: dict[str, Changes] = {}
        cells: CellValues = {_GENERATIONS: self._generations()}
        for (sub, partition), commit in zip((*self._globals, *self._ordinary), commits):
            spaces = self._spaces(sub, partition)
            changes.update({spaces.name_of(space): changed for space, changed in commit.stores.items()})
            cells[self._cells_key(sub, partition)] = commit.state
        return changes, cells

    def changelogs(self, changes: Mapping[str, Changes], cells: CellValues) -> Iterator[tuple[str, int, RecordColumns]]:
        """Walk the changes of stores as records for their changelog topics: (topic, partition, records)."""
        application = self._application
        for sub, partition in self._ordinary:
            spaces = self._spaces(sub, partition)
            for store in sub.stores:
                if store not in application.changelogs:
                    continue
                changed = changes.get(spaces.name_of(store))
                entries = self._versions.get((store, partition))
                if entries is None and changed:
                    kind = application.topology.stores[store].kind
                    floor = cells[self._cells_key(sub, partition)].get(f"{store}/floor", 0)
                    entries = logged_entries(changed, kind, self._now, floor)
                if entries:
                    yield application.changelogs[store].name, partition, entries

    def _logged_versioned(self, tasks: Iterable[Task]) -> Iterator[tuple[int, VersionedStore[Any, Any]]]:
        """Walk the versioned stores that have a changelog, with their partitions."""
        for task in tasks:
            for name, store in task.stores.items():
                if isinstance(store, VersionedStore) and name in self._application.changelogs:
                    yield task.partition, store

    def _generations(self) -> dict[str, int]:
        stores = {name for sub, _ in (*self._globals, *self._ordinary) for name in sub.stores}
        return {name: number for name, number in self._application.generations.items() if name in stores}

    def _without_dropped(self, cells: CellValues) -> CellValues:
        """Return the cells without the cells of stores that were dropped since they were written."""
        before = cells.get(_GENERATIONS, {})
        gone = tuple(f"{name}/" for name, number in self._generations().items() if before.get(name, 0) != number)
        return {
            key: {name: value for name, value in held.items() if not (gone and name.startswith(gone))}
            for key, held in cells.items()
        }

    def _task(self, sub: SubTopology, partition: int, cells: CellValues, stores: Mapping[str, Store]) -> Task:
        return Task(
            self._application.topology,
            sub,
            self._application.config,
            partition=partition,
            image=self._spaces(sub, partition),
            state=cells.get(self._cells_key(sub, partition)),
            global_stores=stores,
            now=self._now,
            partition_count=self._worker.partition_count,
        )

    def _spaces(self, sub: SubTopology, partition: int) -> SpacesOfTask:
        prefix = f"{partition}/" if self._unit.together and not sub.is_global else ""
        return SpacesOfTask(self._image, prefix, sub.stores, self._application.generations)

    def _cells_key(self, sub: SubTopology, partition: int) -> str:
        """Name a sub-topology's cells. The name must be the same after a restart with a changed topology."""
        if not self._unit.together and not sub.is_global:
            return ""
        topics = [topic for source in self._application.topology.sources(sub) for topic in source.topics]
        return f"{min(topics, default='')}/{partition}"
