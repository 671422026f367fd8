"""The source: it tells Spark where batches end, and tells each task what to read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from headrace.brokers.connecting import shared_broker
from headrace.brokers.engine import EngineBroker
from headrace.engine.batches import BatchEnd, BatchPlanner, RangeForTasks, ReadPlan
from headrace.engine.messages import FOR_DRIVER, ClockTick, EndOfInput, Report
from headrace.spark.rows import SCHEMA, batch_of
from headrace.task.garbage_collection import collect_when_asked

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "headrace"
OPTION = "secret"
"""The option with the settings. They may contain passwords, and Spark does not show options with this name."""


class SourceSettings(msgspec.Struct, frozen=True):
    """Everything that the source must know. It travels to Spark as an option."""

    address: str
    client_settings: bytes
    """The settings of the broker's clients. They are pickled, because there may be functions among them."""
    plan: ReadPlan
    last_numbers: list[int]
    """The last number of each shuffle partition, which its end of input goes to."""
    stop_file: str
    """No batch begins while this file exists."""
    readers: int
    """How many tasks of Spark hand out messages."""

    def dumps(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def loads(cls, text: str) -> Self:
        return msgspec.json.decode(text, type=cls)

    def broker(self) -> EngineBroker:
        """Return this process's broker."""
        return shared_broker(self.address, _unpickled(self.client_settings))


@cache
def _unpickled(settings: bytes) -> dict[str, Any]:
    found: dict[str, Any] = pickle.loads(settings)
    return found


class TopicsSource(DataSource):
    """The topics of an application as a Spark data source."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> TopicsReader:
        return TopicsReader(SourceSettings.loads(self.options[OPTION]))


@dataclass
class Share(InputPartition):
    """The messages that one task of Spark hands out: ranges, with the tasks that read them, and the time.

    The first share of a batch also has the end of input for every shuffle partition.
    """

    ranges: list[RangeForTasks]
    ticks: list[tuple[int, ClockTick]]
    notes: list[str]
    last_numbers: list[int]


class TopicsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches, in a process beside the driver. Spark's offsets are `BatchEnd`s."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings

    @cached_property
    def _planner(self) -> BatchPlanner:
        return BatchPlanner(self._settings.plan, self._settings.broker())

    def __reduce__(self) -> tuple[type[Self], tuple[SourceSettings]]:
        """Leave out the planner on the way to the workers, because it has connections to the broker."""
        return type(self), (self._settings,)

    # -- planning, in a process beside the driver ----------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        return self._planner.first().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()  # the planner has its own limit, and divides it between partitions by time

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.stop_at_present_ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if Path(self._settings.stop_file).exists():
            return start
        end = self._planner.next(BatchEnd.from_json(start))
        return start if end is None else end.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        batch_end = BatchEnd.from_json(end)
        ranges, notes = self._planner.ranges(batch_end)
        shares = [Share(mine, [], [], []) for mine in share_out(ranges, self._settings.readers)]
        ticks = self._planner.ticks(batch_end)
        if ticks or notes or not shares:
            shares.append(Share([], ticks, notes, []))
        shares[0].last_numbers = self._settings.last_numbers
        return shares

    # -- handing out, in workers ---------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        collect_when_asked()
        positions: dict[str, dict[int, int]] = {}
        for wanted, _ in partition.ranges:
            positions.setdefault(wanted.topic, {})[wanted.partition] = wanted.end
        rows = [(task, wanted) for wanted, tasks in partition.ranges for task in tasks]
        last = [(number, EndOfInput()) for number in partition.last_numbers]
        report = Report("reader", {}, positions, partition.notes)
        yield batch_of([*rows, *partition.ticks, *last, (FOR_DRIVER, report)])

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the positions are written with the outputs of the batch."""


def share_out(ranges: list[RangeForTasks], readers: int) -> list[list[RangeForTasks]]:
    """Give each reader about the same number of records, largest ranges first. The ranges of a task stay together."""
    together: dict[tuple[int, ...], list[RangeForTasks]] = {}
    for wanted, tasks in ranges:
        together.setdefault(tuple(tasks), []).append((wanted, tasks))
    shares: list[list[RangeForTasks]] = [[] for _ in range(min(readers, len(together)))]
    sizes = [0] * len(shares)
    for mine in sorted(together.values(), key=_size, reverse=True):
        smallest = sizes.index(min(sizes))
        shares[smallest] += mine
        sizes[smallest] += _size(mine)
    return shares


def _size(ranges: list[RangeForTasks]) -> int:
    return sum(wanted.end - wanted.start for wanted, _ in ranges)
