"""The reader: one Spark data source over every broker, which hands each task the stretches of topics to read."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from headrace.brokers.connecting import shared_broker
from headrace.brokers.engine import EngineBroker
from headrace.engine.messages import SCHEMA, Block, End, Report, Stretch, Tick, encode
from headrace.engine.routing import FOR_THE_WRITER
from headrace.errors import TopicError
from headrace.task.garbage_collection import collect_when_asked

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_LEFTOVERS = 1.05
"""How much larger than the limit a batch may be if it is the last one."""

READING = "secret"
"""The option with the reading: Spark shows no option of that name, and there may be passwords in this one."""
Positions = dict[str, dict[int, int]]
ARROW_SCHEMA = pa.schema([("task", pa.int32()), ("block", pa.binary())])


class Reading(msgspec.Struct, frozen=True):
    """What to read, for whom. Goes to Spark as an option of the data source."""

    address: str
    settings: bytes
    """Of the broker's clients, pickled: there may be functions among them."""
    tasks: dict[str, list[list[int]]]
    """The tasks that take each partition of a topic."""
    resets: dict[str, str]
    """By topic, where it begins that was never read: "earliest", "latest", or "none" for nowhere."""
    limit: int
    ticking: list[int]
    """The tasks that are told the time when nothing comes."""
    tick_ms: int
    last: list[int]
    """The last number of each shuffle partition."""
    stop_file: str
    """While it exists no batch begins."""
    readers: int
    """How many read at once."""
    goes_on: bool
    """Whether to go on when records were deleted unread."""

    @property
    def broker(self) -> EngineBroker:
        """This process's broker."""
        return shared_broker(self.address, pickle.loads(self.settings))

    def dumps(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def loads(cls, text: str) -> Self:
        return msgspec.json.decode(text, type=cls)


class TopicsSource(DataSource):
    """The topics of an application as a Spark data source."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> TopicsReader:
        return TopicsReader(Reading.loads(self.options[READING]))


@dataclass
class Share(InputPartition):
    """What one Spark task hands out: stretches, each with the tasks that take it, and the time to those that tick.

    The first of a batch also sends the end to every shuffle partition.
    """

    stretches: list[tuple[Stretch, list[int]]]
    ticks: list[tuple[int, Tick]]
    notes: list[str]
    last: list[int]


class TopicsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches, in a process beside the driver.

    An offset is {"topics": {topic: {partition: next offset}}, "from": where its batch begins, likewise, "ids": {topic:
    id}, "now": the batch's clock}; where records were deleted unread, "notes" say what was lost. All that a batch
    depends on is in its offset, so a batch that runs again reads the same records and sees the same time.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._until: Positions | None = None
        self._planned: dict[str, Any] | None = None

    # -- planning ---------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        begin = self._beginnings(self._reading.tasks)
        return _offset(begin, begin, self._ids(), 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()  # the limit is ours: it is shared_broker out over partitions by time

    def prepareForTriggerAvailableNow(self) -> None:
        broker = self._reading.broker
        self._until = {topic: broker.end_offsets(topic) for topic in self._reading.tasks}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        reading = self._reading
        before, was = _positions(start["topics"]), int(start["now"])
        if Path(reading.stop_file).exists():
            return start
        known = start.get("ids", {})
        ids = self._ids()
        new = [topic for topic in reading.tasks if topic not in before]
        before.update(self._beginnings(new))
        # A partition that has come since begins with its first record, whatever a new topic begins with.
        wanted = {
            topic: {partition: before[topic].get(partition, 0) for partition in range(len(tasks))}
            for topic, tasks in reading.tasks.items()
        }
        broker = reading.broker
        lost, notes = self._lost(wanted, ids, known)
        for topic, places in lost.items():
            wanted[topic] |= places
        ends = broker.plan_batch(wanted, None)
        waiting = sum(end - wanted[topic][number] for topic in ends for number, end in ends[topic].items())
        if waiting > reading.limit * _LEFTOVERS:  # a batch of a few leftovers would cost as much as a large one
            ends = broker.plan_batch(wanted, reading.limit)
        if self._until is not None:
            ends = {
                topic: {
                    partition: max(min(end, self._until[topic].get(partition, end)), wanted[topic][partition])
                    for partition, end in partitions.items()
                }
                for topic, partitions in ends.items()
            }
        now = max(int(time.time() * 1000), was)
        if new or lost or ends != wanted or (reading.ticking and self._until is None and now - was >= reading.tick_ms):
            self._planned = _offset(wanted, {**before, **ends}, {**known, **ids}, now)
            return self._planned | ({"notes": notes} if notes else {})
        return start

    def _lost(
        self, wanted: Positions, ids: dict[str, str], known: dict[str, str]
    ) -> tuple[dict[str, dict[int, int]], list[str]]:
        """Return where to go on in partitions whose next records are gone, and say so; raise if that is not wanted."""
        broker = self._reading.broker
        notes = []
        anew = [topic for topic in wanted if ids[topic] != known.get(topic, ids[topic])]
        lost = {topic: broker.first_offsets(topic) for topic in anew}
        for topic in anew:
            notes.append(f"topic '{topic}' was deleted and made anew since it was read")
        there = {topic: places for topic, places in wanted.items() if topic not in lost}
        for topic, places in broker.missing(there).items():
            lost[topic] = places
            for partition, first in places.items():
                at = wanted[topic][partition]
                what = f"offsets {at} to {first - 1} are" if first > at else f"what was there from offset {first} on is"
                notes.append(f"topic '{topic}', partition {partition}: {what} gone")
        if lost and not self._reading.goes_on:
            raise TopicError(
                f"{'; '.join(notes)}. Start over with headrace reset, or go on with what there is with "
                "on_data_loss='continue'"
            )
        return lost, notes

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        reading, after, now = self._reading, _positions(end["topics"]), int(end["now"])
        before, notes = _positions(end["from"]), list(end.get("notes", []))
        if self._planned is None or self._planned["from"] != end["from"]:
            notes += self._begin_again(before, after, end["ids"])
        stretches = []
        for topic, tasks in reading.tasks.items():
            for partition, wanting in enumerate(tasks):
                first = before.get(topic, {}).get(partition, 0)
                last = after.get(topic, {}).get(partition, 0)
                if last > first:
                    stretches.append((Stretch(topic, partition, first, last, now), wanting))
        shares = [Share(mine, [], [], []) for mine in share_out(stretches, reading.readers)]
        ticks = [(task, Tick(now)) for task in reading.ticking]
        if ticks or notes or not shares:
            shares.append(Share([], ticks, notes, []))
        shares[0].last = reading.last
        return shares

    def _begin_again(self, before: Positions, after: Positions, known: dict[str, str]) -> list[str]:
        """Look whether the records of a batch that an earlier run has planned are still there; say what is lost."""
        ids = self._ids()
        planned = {
            topic: {partition: first for partition, first in places.items() if first < after[topic][partition]}
            for topic, places in before.items()
            if topic in ids
        }
        lost, notes = self._lost({topic: places for topic, places in planned.items() if places}, ids, known)
        for topic, places in lost.items():
            if ids[topic] != known.get(topic, ids[topic]):
                before[topic] = after[topic]  # of the new one nothing was planned
            else:
                ends = after[topic]
                before[topic] |= {
                    place: min(first, ends[place]) if first > before[topic][place] else ends[place]
                    for place, first in places.items()
                }
        return notes

    def _ids(self) -> dict[str, str]:
        broker = self._reading.broker
        return {topic: broker.topic_id(topic) for topic in self._reading.tasks}

    def _beginnings(self, topics: Iterable[str]) -> Positions:
        broker, resets = self._reading.broker, self._reading.resets
        found = {topic: broker.first_offsets(topic) for topic in topics}
        for topic in found:
            if resets[topic] == "none":
                raise TopicError(
                    f"topic '{topic}' was never read, and its offset reset is 'none': expected to go on from an "
                    "earlier run. Set it to 'earliest' or 'latest'"
                )
        # Where what is committed ends: a transaction that is open now will have its records later.
        return found | broker.plan_batch({topic: found[topic] for topic in found if resets[topic] == "latest"}, None)

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        collect_when_asked()
        positions: Positions = {}
        for stretch, _ in partition.stretches:
            positions.setdefault(stretch.topic, {})[stretch.partition] = stretch.end
        rows = [(task, stretch) for stretch, tasks in partition.stretches for task in tasks]
        last = [(number, End()) for number in partition.last]
        report = Report("reader", {}, positions, partition.notes)
        yield batch_of([*rows, *partition.ticks, *last, (FOR_THE_WRITER, report)])

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: what was read is noted with what was written."""


def share_out(stretches: list[tuple[Stretch, list[int]]], readers: int) -> list[list[tuple[Stretch, list[int]]]]:
    """Give each reader about as much as the others, the largest first; all that a task takes stays together."""
    together: dict[tuple[int, ...], list[tuple[Stretch, list[int]]]] = {}
    for stretch, tasks in stretches:
        together.setdefault(tuple(tasks), []).append((stretch, tasks))
    shares: list[list[tuple[Stretch, list[int]]]] = [[] for _ in range(min(readers, len(together)))]
    sizes = [0] * len(shares)
    for mine in sorted(together.values(), key=_size, reverse=True):
        smallest = sizes.index(min(sizes))
        shares[smallest] += mine
        sizes[smallest] += _size(mine)
    return shares


def _size(stretches: list[tuple[Stretch, list[int]]]) -> int:
    return sum(stretch.end - stretch.start for stretch, _ in stretches)


def batch_of(rows: Sequence[tuple[int, Block | bytes]]) -> pa.RecordBatch:
    """Return rows as Spark takes them; a block for several tasks is encoded once."""
    encoded: dict[int, bytes] = {}
    blocks = []
    for _, block in rows:
        if isinstance(block, bytes):
            blocks.append(block)
        else:
            if id(block) not in encoded:
                encoded[id(block)] = encode(block)
            blocks.append(encoded[id(block)])
    # From buffers: `pa.array` would import pandas, which takes longer than all else before a first record.
    ends = np.cumsum([0, *map(len, blocks)], dtype=np.int32)
    numbers = np.fromiter((task for task, _ in rows), np.int32, len(rows))
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(numbers)]),
            pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(blocks))]),
        ],
        schema=ARROW_SCHEMA,
    )


def _offset(begin: Positions, end: Positions, ids: dict[str, str], now: int) -> dict[str, Any]:
    return {"topics": _texts(end), "from": _texts(begin), "ids": ids, "now": now}


def _texts(positions: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    return {topic: {str(number): end for number, end in ends.items()} for topic, ends in positions.items()}


def _positions(texts: Mapping[str, Mapping[str, int]]) -> Positions:
    return {topic: {int(number): end for number, end in ends.items()} for topic, ends in texts.items()}
