"""The stages as Spark runs them: every task of a level in one operator, each task a group."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace.engine.application import Application
from headrace.engine.batches import batch_of
from headrace.engine.messages import SCHEMA, Block, Failure, Input, Stretch, Tick, decode, encode
from headrace.engine.routing import FOR_THE_WRITER
from headrace.engine.state_log import Head
from headrace.engine.stateful import StatefulTask
from headrace.engine.stateless import StatelessStage
from headrace.errors import StreamsError
from headrace.task.garbage_collection import collect_when_asked, collection_paused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CUT_OFF = "a part of a batch has not come to its task, which writes nothing of it"
_applications: dict[str, tuple[str, Application]] = {}
"""By their ids: the name of a run, and what it runs."""


class Packed:
    """An application on its way to the workers: unpickled once in each."""

    def __init__(self, name: str, application: Application) -> None:
        """Pack an application under a name that no other run has."""
        self._name, self._id = name, application.config.application_id
        self._data: bytes = cloudpickle.dumps(application)  # type: ignore[no-untyped-call]

    def application(self) -> Application:
        """Return the application."""
        name, found = _applications.get(self._id, ("", None))
        if found is None or name != self._name:
            found = pickle.loads(self._data)
            _applications[self._id] = self._name, found  # in place of an earlier run
            collect_when_asked()
        return found


def chain(rows: DataFrame, packed: Packed, application: Application, passing: list[int]) -> DataFrame:
    """Put the stages behind each other: tasks without state that read topics, then the stateful ones of each level.

    Between two stages there is always a shuffle, so that one begins when the other has come to its end. What is for the
    writer passes later stages under the numbers of `passing`.
    """
    plan = application.plan
    if any(not plan.units[unit].stateful for topic, unit in plan.readers.items() if topic not in plan.internal):
        rows = rows.mapInArrow(_stateless(packed, passing), SCHEMA)
    for level in plan.stateful_levels():
        rows = rows.groupBy("task").transformWithState(TaskProcessor(packed, level, passing), SCHEMA, "Append", "None")
    return rows


def _stateless(packed: Packed, passing: list[int]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        application, last = packed.application(), 0
        orders: dict[int, list[Stretch]] = {}
        for batch in batches:
            for task, data in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
                last = task
                if application.is_stateless(task):
                    block = decode(data)
                    assert isinstance(block, Stretch)
                    orders.setdefault(task, []).append(block)
                else:
                    yield batch_of([(task, data)])
        if last != FOR_THE_WRITER:
            raise StreamsError(_CUT_OFF)
        with StatelessStage(application, _batch_number(application)) as stage:
            for task, stretches in orders.items():
                for sent in stage.run(task, stretches):
                    yield batch_of([(to if to >= 0 else passing[task % len(passing)], made) for to, made in sent])
            said = stage.end()
            if said:
                yield batch_of(said)

    return run


def _batch_number(application: Application) -> int:
    """Return which batch this worker is at work on; one that is run again has the same number.

    Spark runs the tasks of an executor that it has lost again by itself, those that were done, too. They may have
    written, which only the next run gets to know.
    """
    context = TaskContext.get()
    assert context is not None, "not in a task of Spark's"
    number = context.getLocalProperty("streaming.sql.batchId")
    assert number is not None, "not in a batch of a streaming query"
    if application.permit is not None and context.attemptNumber() > 0:
        raise StreamsError("Spark has lost an executor: the batch is to be done again as a whole")
    return int(number)


class TaskProcessor(StatefulProcessor):
    """Runs the tasks of one level; what is for a later level or for the writer passes through.

    Spark ends the input also when it could not get all of it, and tells nobody here. But groups come in the order of
    their numbers, and the last number in every partition is one that the reader has sent as the end. So a task's
    outputs are written when the next group begins: then the task has had all of its own.
    """

    def __init__(self, packed: Packed, level: int, passing: list[int]) -> None:
        self._packed, self._level, self._passing = packed, level, passing
        self._unfinished: tuple[int, StatefulTask] | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._log = handle.getMapState("log", "place long", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        number = int(key[0])
        if self._unfinished is not None:
            before, unfinished = self._unfinished
            self._unfinished = None
            yield from self._rows(before, unfinished.finish())
        data = [bytes(row.block) for row in rows]
        application = self._packed.application()
        if not application.is_of_level(number, self._level):
            for block in data:
                yield Row(task=number, block=block)
            return
        with collection_paused():  # until what is made for others is gone again
            blocks = [decode(block) for block in data]
            if any(isinstance(block, Failure) for block in blocks):
                return  # some of its records are missing, and the batch will not be
            task = StatefulTask(application, number, SparkState(self._log), _batch_number(application))
            sent = task.run([block for block in blocks if isinstance(block, Input | Stretch | Tick)])
            made = list(self._rows(number, sent))
            del data, blocks, sent
        self._unfinished = number, task
        yield from made

    def _rows(self, number: int, sent: list[tuple[int, Block]]) -> Iterator[Row]:
        passing = self._passing[number % len(self._passing)]
        for to, block in sent:
            yield Row(task=passing if to < 0 else to, block=encode(block))

    def close(self) -> None:
        if self._unfinished is not None:
            raise StreamsError(_CUT_OFF)


class SparkState:
    """A task's part of Spark's state store.

    All of it is one map from numbers to bytes: what Spark does to open another, and for each column, it does anew in
    every batch, and that takes longer than the task itself.
    """

    _HEAD = 0
    _PARTS = 1 << 20
    """How many numbers an epoch has, half of them for parts below 0; epochs begin with 1."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def head(self) -> Head | None:
        found = self._blob(self._HEAD)
        return None if found is None else msgspec.msgpack.decode(found, type=Head)

    def set_head(self, head: Head) -> None:
        self._log.updateValue((self._HEAD,), (msgspec.msgpack.encode(head),))

    def get(self, epoch: int, part: int) -> bytes | None:
        return self._blob(epoch * self._PARTS + part)

    def put(self, epoch: int, part: int, blob: bytes) -> None:
        self._log.updateValue((epoch * self._PARTS + part,), (blob,))

    def remove(self, epoch: int, part: int) -> None:
        self._log.removeKey((epoch * self._PARTS + part,))

    def keys(self) -> Iterator[tuple[int, int]]:
        half = self._PARTS // 2
        for (place,) in self._log.keys():  # noqa: SIM118, it is no dict
            if place != self._HEAD:
                epoch, part = divmod(int(place) + half, self._PARTS)
                yield epoch, part - half

    def _blob(self, place: int) -> bytes | None:
        found = self._log.getValue((place,))
        return None if found is None else bytes(found[0])
