"""The whole engine in one process, without Spark: it plans, processes and commits one batch after the other.

State is kept in memory and in images. Read this module to see how the modules of the engine work together. Use it where
Spark is not wanted: in tests, and to profile a task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from headrace.brokers.engine import EngineBroker
from headrace.config import StreamsConfig
from headrace.engine.batches import BatchEnd, BatchPlanner
from headrace.engine.commit import BatchCommitter
from headrace.engine.delivery import Delivery, delivery_of
from headrace.engine.identity import Identity
from headrace.engine.messages import (
    FOR_DRIVER,
    ClockTick,
    Failure,
    Message,
    Report,
    Routed,
    SentRecords,
    TopicRange,
    decode,
    encode,
)
from headrace.engine.metrics import Metrics
from headrace.engine.preparation import make_application, plan_application
from headrace.engine.read_plan import read_plan_of
from headrace.engine.state_log import Head
from headrace.engine.stateful import StatefulTask
from headrace.engine.stateless import StatelessStage
from headrace.engine.worker import Worker
from headrace.topology.topology import Topology


class MemoryEpochStore:
    """The epochs of a task, in memory."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self.blobs: dict[tuple[int, int], bytes] = {}

    def head(self) -> Head | None:
        return self._head

    def set_head(self, head: Head) -> None:
        self._head = head

    def get(self, epoch: int, part: int) -> bytes | None:
        return self.blobs.get((epoch, part))

    def put(self, epoch: int, part: int, blob: bytes) -> None:
        self.blobs[epoch, part] = blob

    def remove(self, epoch: int, part: int) -> None:
        del self.blobs[epoch, part]

    def keys(self) -> Iterator[tuple[int, int]]:
        return iter(list(self.blobs))


class InProcessEngine:
    """Runs a topology over the topics of a broker, batch by batch."""

    def __init__(self, topology: Topology, config: StreamsConfig, broker: EngineBroker, images: Path) -> None:
        plan = plan_application(topology, config, broker)
        self.application = make_application(topology, config, broker, plan, Identity.new(1), images)
        self.worker = Worker(self.application, lambda: broker)
        self._run = broker.begin_run(
            config.application_id, uuid4().hex, changelogs=self.application.changelogs.values()
        )
        self.delivery: Delivery = delivery_of(broker.permit(self._run))
        self._epochs: dict[int, MemoryEpochStore] = {}
        self.metrics = Metrics(config.application_id)
        self._committer = BatchCommitter(self.worker, self._run, self.metrics)
        self.planner = BatchPlanner(read_plan_of(self.application), broker, clock=lambda: self.now)
        self.end: BatchEnd = self.planner.first()
        """Where the last batch ended."""
        self.now = 0
        """The wall clock. It stands still until it is moved."""
        self._batch = 0

    def run_until_caught_up(self) -> None:
        """Run batches until no records are left."""
        while (end := self.planner.next(self.end)) is not None:
            self.run_batch(end)

    def advance_wall_clock(self, now: int) -> None:
        """Move the clock, and call the punctuations that are due then."""
        self.now = now
        self.run_batch(self.planner.tick(self.end, now))

    def run_batch(self, end: BatchEnd) -> None:
        """Run the batch with this end, and commit it."""
        started = perf_counter()
        rows = self.process(self.messages(end))
        self.commit(rows, end, perf_counter() - started)

    def commit(self, rows: list[bytes], end: BatchEnd, stages_seconds: float = 0.0) -> None:
        """Commit the batch with this end, given the messages for the driver."""
        self._committer.commit(rows, self._batch, stages_seconds)
        self._batch += 1
        self.end = end

    def messages(self, end: BatchEnd) -> list[Routed]:
        """Return the first messages of a batch, for tasks and for the driver."""
        ranges, notes = self.planner.ranges(end)
        told: list[Routed] = [(task, wanted) for wanted, tasks in ranges for task in tasks]
        report = Report("reader", {}, end.positions, notes)
        return [*told, *self.planner.ticks(end), (FOR_DRIVER, report)]

    def process(self, messages: Iterable[Routed]) -> list[bytes]:
        """Send messages through all stages. Return the messages for the driver."""
        rows = list(_encoded(self._stateless(messages)))
        for level in self.application.plan.stateful_levels():
            mine: dict[int, list[Message]] = {}
            passing = []
            for task, data in rows:
                if self.application.is_of_level(task, level):
                    mine.setdefault(task, []).append(decode(data))
                else:
                    passing.append((task, data))
            for number, received in mine.items():
                passing += _encoded(self._stateful(number, received))
            rows = passing
        return [data for _, data in rows]

    def _stateless(self, messages: Iterable[Routed]) -> Iterator[Routed]:
        ranges: dict[int, list[TopicRange]] = {}
        for task, message in messages:
            if isinstance(message, TopicRange) and self.application.is_stateless(task):
                ranges.setdefault(task, []).append(message)
            else:
                yield task, message
        with StatelessStage(self.worker, self.delivery, self._batch) as stage:
            for task, mine in ranges.items():
                for sent in stage.run(task, mine):
                    yield from sent
            yield from stage.end()

    def _stateful(self, number: int, received: list[Message]) -> Iterator[Routed]:
        if any(isinstance(message, Failure) for message in received):
            return
        epochs = self._epochs.setdefault(number, MemoryEpochStore())
        task = StatefulTask(self.worker, self.delivery, number, epochs, self._batch)
        yield from task.run([one for one in received if isinstance(one, SentRecords | TopicRange | ClockTick)])
        yield from task.finish()


def _encoded(sent: Iterable[Routed]) -> Iterator[tuple[int, bytes]]:
    for task, message in sent:
        yield task, encode(message)
