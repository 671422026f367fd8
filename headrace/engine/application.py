"""An application as its workers know it: what it runs, what its tasks read, and what they put out.

Nothing here knows of Spark itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter

from headrace.brokers.broker import TopicInfo
from headrace.brokers.connecting import shared_broker
from headrace.brokers.engine import EngineBroker
from headrace.brokers.writing import TaskTransaction
from headrace.config import StreamsConfig
from headrace.engine.crash import crash_point
from headrace.engine.messages import Block, Failure, Input, Output, Stretch, failure, lanes_of
from headrace.engine.plan import Plan, Unit
from headrace.engine.routing import FOR_THE_WRITER, Routes
from headrace.errors import HeadraceError, TaskError
from headrace.raw_records import RawRecord
from headrace.task.garbage_collection import keep_memory, sample
from headrace.task.lanes import Lane, joined, unknown_causes
from headrace.topology.topology import SubTopology, Topology


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

    def is_of_level(self, task: int, level: int) -> bool:
        """Tell whether this is a task of a level's stateful units."""
        found = self.units.get(task)
        return found is not None and found[0].stateful and found[0].level == level

    def is_stateless(self, task: int) -> bool:
        """Tell whether this is a task that keeps nothing, and so can run anywhere."""
        found = self.units.get(task)
        return found is not None and not found[0].stateful

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
        return shared_broker(self.config.bootstrap_servers, self.config.kafka)

    def pages(self, stretch: Stretch) -> Iterator[list[RawRecord]]:
        """Read records of a topic, page by page."""
        return self.broker.read_range(stretch.topic, stretch.partition, stretch.start, stretch.end)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, or will have when it is made."""
        count = self.plan.partitions.get(topic) or self._unplanned.get(topic)
        if count is None:
            count = self.broker.partition_counts().get(topic, self.config.num_partitions)
            self._unplanned[topic] = count
        return count

    @cached_property
    def _unplanned(self) -> dict[str, int]:
        """The partitions of topics that only a record has named."""
        return {}

    def make_named_topics(self, topics: Iterable[str]) -> None:
        """Create those that only a record has named: dead letters, and what a function says."""
        made = {topic.name for topic in self.changelogs.values()}
        named = {topic for topic in topics if topic not in self.plan.partitions and topic not in made}
        if named:
            wanted = dict.fromkeys(sorted(named), self.config.num_partitions)
            self.broker.ensure_topics(wanted, self.config.replication_factor)


class Outgoing:
    """What the tasks of one process put out in a batch: written here, if there is a permit, or on its way.

    It is written when all of it is there: a broker gives a transaction a minute, and nobody knows how long tasks take.
    Use it in a `with`: what was written is taken back without a commit.
    """

    def __init__(self, application: Application, batch: int) -> None:
        self._application, self._batch = application, batch
        self._held: deque[tuple[str, Output]] = deque()
        self._writing: TaskTransaction | None = None
        self._records = 0
        self._seconds = 0.0

    def numbers(self) -> dict[str, float]:
        """Return how many records were put out here, without those of changelogs, and how long all writing took."""
        return {"records_written": self._records, "write_seconds": self._seconds}

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
        application.make_named_topics({block.topic for _, block in self._held})
        logs = {topic.name for topic in application.changelogs.values()}
        self._writing = application.broker.begin_task_transaction(application.permit, self._batch)
        samples = []
        while self._held:
            task, block = self._held.popleft()
            partition = None if block.partition < 0 else block.partition
            written = self._writing.send(task, block.topic, partition, block.records)
            self._records += 0 if block.topic in logs else written
            samples.append(sample(block.records))
        keep_memory("outputs", samples)
        crash_point("after-send")
        self._writing.commit()
        crash_point("after-task-commit")
        self._seconds = perf_counter() - started

    def __enter__(self) -> Outgoing:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writing is not None:
            self._writing.__exit__(*error)


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
        return self._pages(stretch, self._application.routes.look_at_causes)

    def _pages(self, stretch: Stretch, with_causes: bool) -> Iterator[Lane]:
        topic, partition = stretch.topic, stretch.partition
        before, counted, is_first = (-1, -1), topic in self._application.plan.readers, True
        started = perf_counter()
        for page in self._application.pages(stretch):
            if is_first:
                crash_point("after-read")
                is_first = False
            if with_causes:
                lane = Lane.of_source(topic, partition, page, before)
                before = lane.causes.last()
            else:
                lane = Lane(topic, partition, page, unknown_causes(len(page)))
            self.numbers["records_read"] += len(page) if counted else 0
            self.numbers["source_seconds"] += perf_counter() - started
            yield lane
            started = perf_counter()
        self.numbers["source_seconds"] += perf_counter() - started

    def whole(self, stretch: Stretch) -> Iterator[Lane]:
        """Read a stretch as one lane, unless it is empty."""
        pages = list(self._pages(stretch, with_causes=True))
        if pages:
            records = [record for page in pages for record in page.records]
            yield Lane(stretch.topic, stretch.partition, records, joined([page.causes for page in pages]))


def tell(application: Application, level: int, error: Exception) -> list[tuple[int, Block]]:
    """Say that a task has failed: to the writer, and to all tasks of levels after this one.

    These lack what it would have sent them. If they wrote what they make of the rest, it would count as done.
    """
    told = _failed(error)
    later = [task for task, (unit, _) in application.units.items() if unit.stateful and unit.level > level]
    return [(to, told) for to in (FOR_THE_WRITER, *later)]


def _failed(error: Exception) -> Failure:
    """Pack an exception that ends the batch."""
    if not isinstance(error, HeadraceError):
        wrapped = TaskError(f"{type(error).__name__}: {error}")
        wrapped.__cause__ = error
        error = wrapped
    return failure(error)
