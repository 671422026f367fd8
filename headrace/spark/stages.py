"""The stages as Spark runs them: every task of a level in one operator, each task a group."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace.spark.blocks import SCHEMA, Failure, Input, Stretch, Tick, decode, encode
from headrace.spark.epochs import Head
from headrace.spark.reader import batch_of
from headrace.spark.stage import Application, StatelessStage, run_stateful
from headrace.task.collector import collector_paused, keep_what_there_is

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HEAD = "epoch long, attempt string, snapshot long, snapshot_parts int, logged_bytes long"
_applications: dict[str, Application] = {}


class Packed:
    """An application on its way to the workers: unpickled once in each."""

    def __init__(self, name: str, application: Application) -> None:
        """Pack an application under a name that no other run has."""
        self._name = name
        self._data: bytes = cloudpickle.dumps(application)  # type: ignore[no-untyped-call]

    def application(self) -> Application:
        """Return the application."""
        found = _applications.get(self._name)
        if found is None:
            _applications.clear()  # of an earlier run
            found = _applications[self._name] = pickle.loads(self._data)
            keep_what_there_is()
        return found


def chain(rows: DataFrame, packed: Packed, application: Application, passing: list[int]) -> DataFrame:
    """Put the stages of all levels behind each other; what is for the writer passes later ones under `passing`."""
    units = application.plan.units
    for level in range(application.plan.levels):
        if any(unit.level == level and not unit.stateful for unit in units):
            rows = rows.mapInArrow(_stateless(packed, level, passing), SCHEMA)
        if any(unit.level == level and unit.stateful for unit in units):
            rows = rows.groupBy("task").transformWithState(
                TaskProcessor(packed, level, passing), SCHEMA, "Append", "None"
            )
    return rows


def _stateless(
    packed: Packed, level: int, passing: list[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        application = packed.application()
        with StatelessStage(application, _batch_number()) as stage:
            for batch in batches:
                for task, data in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist()):
                    if not _is_for(application, task, level, stateful=False):
                        yield batch_of([(task, data)])
                        continue
                    with collector_paused():
                        block = decode(data)
                    if isinstance(block, Failure):
                        stage.give_up()
                        continue
                    assert isinstance(block, Input | Stretch)
                    for sent in stage.run(task, block):
                        yield batch_of([(to if to >= 0 else passing[task % len(passing)], made) for to, made in sent])
            said = list(stage.end())
            if said:
                yield batch_of(said)

    return run


def _batch_number() -> int:
    """Return which batch this worker is at work on; one that is run again has the same number."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    assert number is not None, "not in a batch of a streaming query"
    return int(number)


def _is_for(application: Application, task: int, level: int, *, stateful: bool) -> bool:
    if task < 0:
        return False
    unit, _ = application.units[task]
    return unit.level == level and unit.stateful == stateful


class TaskProcessor(StatefulProcessor):
    """Runs the tasks of one level; what is for a later level or for the writer passes through."""

    def __init__(self, packed: Packed, level: int, passing: list[int]) -> None:
        self._packed, self._level, self._passing = packed, level, passing

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", _HEAD)
        self._log = handle.getMapState("log", "epoch long, part int", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        task = int(key[0])
        data = [bytes(row.block) for row in rows]
        application = self._packed.application()
        if not _is_for(application, task, self._level, stateful=True):
            for block in data:
                yield Row(task=task, block=block)
            return
        with collector_paused():  # until all that the batch has made is gone again
            sent = self._run(application, task, data)
        passing = self._passing[task % len(self._passing)]
        for to, made in sent:
            yield Row(task=passing if to < 0 else to, block=made)

    def _run(self, application: Application, task: int, data: list[bytes]) -> list[tuple[int, bytes]]:
        blocks = [decode(block) for block in data]
        if any(isinstance(block, Failure) for block in blocks):
            return []  # some of its records are missing, and the batch will not be
        inputs = [block for block in blocks if isinstance(block, Input | Stretch | Tick)]
        sent = run_stateful(application, task, inputs, SparkState(self._head, self._log), _batch_number())
        return [(to, encode(block)) for to, block in sent]

    def close(self) -> None:
        pass


class SparkState:
    """A task's part of Spark's state store."""

    def __init__(self, head: Any, log: Any) -> None:
        self._head, self._log = head, log

    def head(self) -> Head | None:
        found = self._head.get()
        return None if found is None else Head(*found)

    def set_head(self, head: Head) -> None:
        self._head.update(tuple(head))

    def get(self, epoch: int, part: int) -> bytes | None:
        found = self._log.getValue((epoch, part))
        return None if found is None else bytes(found[0])

    def put(self, epoch: int, part: int, blob: bytes) -> None:
        self._log.updateValue((epoch, part), (blob,))

    def remove(self, epoch: int, part: int) -> None:
        self._log.removeKey((epoch, part))

    def keys(self) -> Iterator[tuple[int, int]]:
        for key in self._log.keys():  # noqa: SIM118, it is no dict
            yield int(key[0]), int(key[1])
