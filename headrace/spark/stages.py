"""The stages as Spark runs them: one operator for all tasks of a level, one group for each task."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import cloudpickle
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace.brokers.connecting import shared_broker
from headrace.engine.application import Application
from headrace.engine.delivery import Delivery
from headrace.engine.messages import (
    FOR_DRIVER,
    ClockTick,
    Failure,
    Routed,
    SentRecords,
    TopicRange,
    decode,
    encode,
)
from headrace.engine.stateful import StatefulTask
from headrace.engine.stateless import StatelessStage
from headrace.engine.worker import Worker
from headrace.errors import StreamsError
from headrace.spark.rows import SCHEMA, batch_of
from headrace.spark.state import SparkEpochStore
from headrace.task.garbage_collection import collect_when_asked, collection_paused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CUT_OFF = "a part of a batch did not arrive, so its task writes nothing. The next run tries the batch again"


@dataclass(frozen=True)
class RunInWorker:
    """Everything that the tasks of a run need in a worker."""

    worker: Worker
    delivery: Delivery

    def batch_number(self) -> int:
        """Return the number of the batch that Spark is running here. A batch that is tried again keeps its number."""
        context = TaskContext.get()
        assert context is not None, "not in a task of Spark's"
        number = context.getLocalProperty("streaming.sql.batchId")
        assert number is not None, "not in a batch of a streaming query"
        self.delivery.check_task_attempt(context.attemptNumber())
        return int(number)


_unpacked: dict[str, tuple[str, RunInWorker]] = {}
"""The run that this process has unpacked last for each application id, after its name."""


class PackedRun:
    """An application and its delivery on their way to the workers. Each worker unpacks them once."""

    def __init__(self, name: str, application: Application, delivery: Delivery) -> None:
        """Pack a run under a name that no other run has."""
        self._name, self._application_id = name, application.config.application_id
        # A copy, so that its cached properties do not travel.
        self._data: bytes = cloudpickle.dumps((replace(application), delivery))

    def unpack(self) -> RunInWorker:
        """Return the run in this process."""
        name, run = _unpacked.get(self._application_id, ("", None))
        if run is None or name != self._name:
            application, delivery = pickle.loads(self._data)
            config = application.config
            open_broker = partial(shared_broker, config.bootstrap_servers, config.kafka)
            run = RunInWorker(Worker(application, open_broker), delivery)
            _unpacked[self._application_id] = self._name, run  # in place of an earlier run
            collect_when_asked()
        return run


def chain(rows: DataFrame, packed: PackedRun, application: Application, passing: list[int]) -> DataFrame:
    """Chain the stages: first the tasks without state that read topics, then the stateful tasks of each level.

    There is a shuffle between any two stages, so a stage begins when the one before has ended. Messages for the driver
    pass later stages under the numbers in `passing`.
    """
    plan = application.plan
    if any(not plan.units[unit].stateful for topic, unit in plan.readers.items() if topic not in plan.internal):
        rows = rows.mapInArrow(_stateless(packed, passing), SCHEMA)
    for level in plan.stateful_levels():
        rows = rows.groupBy("task").transformWithState(TaskProcessor(packed, level, passing), SCHEMA, "Append", "None")
    return rows


def _stateless(packed: PackedRun, passing: list[int]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def process(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        run, last = packed.unpack(), 0
        application = run.worker.application
        ranges: dict[int, list[TopicRange]] = {}
        for batch in batches:
            for task, data in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
                last = task
                if application.is_stateless(task):
                    message = decode(data)
                    assert isinstance(message, TopicRange)
                    ranges.setdefault(task, []).append(message)
                else:
                    yield batch_of([(task, data)])
        if last != FOR_DRIVER:
            raise StreamsError(_CUT_OFF)
        with StatelessStage(run.worker, run.delivery, run.batch_number()) as stage:
            for task, mine in ranges.items():
                for sent in stage.run(task, mine):
                    yield batch_of([(to if to >= 0 else passing[task % len(passing)], made) for to, made in sent])
            report = stage.end()
            if report:
                yield batch_of(report)

    return process


class TaskProcessor(StatefulProcessor):
    """Runs the tasks of one level. Messages for later levels and for the driver pass through.

    Spark also ends the input if it could not get all of it, and does not tell Python. But groups come in the order of
    their numbers, and the last number in every partition is that of the end of input. So a task's outputs are committed
    when the next group begins: by then the task has had all its records.
    """

    def __init__(self, packed: PackedRun, level: int, passing: list[int]) -> None:
        self._packed, self._level, self._passing = packed, level, passing
        self._unfinished: tuple[int, StatefulTask] | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._log = handle.getMapState("log", "place long", "blob binary")  # checkpoints have these names

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        number = int(key[0])
        if self._unfinished is not None:
            before, unfinished = self._unfinished
            self._unfinished = None
            yield from self._rows(before, unfinished.finish())
        data = [bytes(row.block) for row in rows]
        run = self._packed.unpack()
        if not run.worker.application.is_of_level(number, self._level):
            for message in data:
                yield Row(task=number, block=message)
            return
        with collection_paused():  # until the messages for other tasks are gone
            messages = [decode(message) for message in data]
            if any(isinstance(message, Failure) for message in messages):
                return  # some of its records are missing, and the batch will fail
            epochs = SparkEpochStore(self._log)
            task = StatefulTask(run.worker, run.delivery, number, epochs, run.batch_number())
            sent = task.run([one for one in messages if isinstance(one, SentRecords | TopicRange | ClockTick)])
            made = list(self._rows(number, sent))
            del data, messages, sent
        self._unfinished = number, task
        yield from made

    def _rows(self, number: int, sent: list[Routed]) -> Iterator[Row]:
        passing = self._passing[number % len(self._passing)]
        for to, message in sent:
            yield Row(task=passing if to < 0 else to, block=encode(message))

    def close(self) -> None:
        if self._unfinished is not None:
            raise StreamsError(_CUT_OFF)
