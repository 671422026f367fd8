"""The engine without Spark: the same plan, stages, epoch log and order of outputs, with dicts where Spark has state."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace import StreamsConfig, Topology
from headrace.engine.application import Application
from headrace.engine.commit import in_order
from headrace.engine.identity import Identity
from headrace.engine.messages import Block, Failure, Input, Output, Stretch, Tick, decode, encode, unpack_failure
from headrace.engine.plan import make_plan
from headrace.engine.stateful import StatefulTask
from headrace.engine.stateless import StatelessStage
from headrace.partitioning import partition_of
from headrace.raw_records import RecordToWrite
from headrace.spark.stages import SparkState
from headrace.topology.nodes import SourceNode

PAGE_ROWS = 7
Row = tuple[int, int, bytes | None, bytes | None, Any, int]


class DictState(SparkState):
    """A task's state, with a dict where Spark has a map."""

    def __init__(self) -> None:
        self.entries: dict[int, bytes] = {}
        super().__init__(_Map(self.entries))


@dataclass
class _Map:
    entries: dict[int, bytes]

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:
        found = self.entries.get(key[0])
        return None if found is None else (found,)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.entries[key[0]] = value[0]

    def removeKey(self, key: tuple[int]) -> None:
        del self.entries[key[0]]

    def keys(self) -> Iterator[tuple[int]]:
        return ((key,) for key in list(self.entries))


class OverLists(Application):
    """An application whose topics are lists."""

    @cached_property
    def topics(self) -> dict[str, list[list[Row]]]:
        return {}

    def pages(self, stretch: Stretch) -> Iterator[list[Row]]:
        rows = self.topics[stretch.topic][stretch.partition][stretch.start : stretch.end]
        return (rows[first : first + PAGE_ROWS] for first in range(0, len(rows), PAGE_ROWS))

    @property
    def broker(self) -> Any:
        """What tasks write with, if they do."""
        return self

    def begin_task_transaction(self, permit: object, batch: int) -> "WritingToLists":
        return WritingToLists(permit)


class WritingToLists:
    """What tasks write by themselves, as a transaction."""

    def __init__(self, append: Any) -> None:
        self._append = append
        self._held: list[tuple[str, int | None, Sequence[RecordToWrite]]] = []

    def send(self, task: str, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> int:
        self._held.append((topic, partition, records))
        return len(records)

    def commit(self) -> None:
        for topic, partition, records in self._held:
            for key, value, timestamp, headers in records:
                self._append(topic, partition or 0, key, value, timestamp, headers)

    def __exit__(self, *error: object) -> None:
        pass


class BatchEngine:
    """Topics in lists, and batches of any size over them."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        folder: Path,
        partitions: int = 1,
        *,
        tasks_write: bool = False,
    ) -> None:
        self.topology, self.config, self.partitions = topology, config, partitions
        sources = [node for node in topology.nodes.values() if isinstance(node, SourceNode)]
        known = {t: partitions for node in sources for t in node.topics if t not in topology.internal_topics}
        plan = make_plan(topology, config, known)
        numbers = Identity.new(3).take_up(plan, topology, config)
        self.application = OverLists(
            topology, config, plan, numbers, {}, folder, permit=self._append if tasks_write else None
        )
        self.topics = self.application.topics
        self.states: dict[int, DictState] = {}
        self.read: dict[tuple[str, int], int] = {}
        self.now = 0
        self._sequence = 0

    def produce(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Any = None) -> None:
        partition = self._turn() % self.partitions if key is None else partition_of(key, self.partitions)
        self._append(topic, partition, key, value, timestamp, headers)

    def run(self, batch_size: int | None = None) -> None:
        """Run batches of at most so many records until nothing is left."""
        while True:
            taken = self.next_batch(batch_size)
            if not taken:
                return
            self.run_batch(taken)

    def run_batch(self, rows: list[tuple[int, bytes]]) -> None:
        """Send rows through all levels and append what comes out."""
        application = self.application
        rows = list(self._stateless(rows))
        for level in application.plan.stateful_levels():
            mine: dict[int, list[bytes]] = {}
            passed = []
            for task, data in rows:
                if application.is_of_level(task, level):
                    mine.setdefault(task, []).append(data)
                else:
                    passed.append((task, data))
            for number, blocks in mine.items():
                state = self.states.setdefault(number, DictState())
                read = [decode(data) for data in blocks]
                if any(isinstance(block, Failure) for block in read):
                    continue
                task_run = StatefulTask(application, number, state, 0)
                passed += _encoded(task_run.run([b for b in read if isinstance(b, Input | Stretch | Tick)]))
                passed += _encoded(task_run.finish())
            rows = passed
        made = [decode(data) for _, data in rows]
        for block in made:
            if isinstance(block, Failure):
                raise unpack_failure(block)
        outputs = [block for block in made if isinstance(block, Output)]
        for topic, partition, records in in_order(outputs):
            for key, value, timestamp, headers in records:
                self._append(topic, partition or 0, key, value, timestamp, headers)

    def records(self, topic: str) -> list[Row]:
        return [row for partition in self.topics.get(topic, []) for row in partition]

    def tick(self, now: int) -> None:
        self.now = now
        self.run_batch([(task, encode(Tick(now))) for task in self.application.units])

    def _stateless(self, rows: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        stage = StatelessStage(self.application, 0)
        orders: dict[int, list[Stretch]] = {}
        for task, data in rows:
            block = decode(data) if self.application.is_stateless(task) else None
            if isinstance(block, Stretch):
                orders.setdefault(task, []).append(block)
            else:
                yield task, data
        for task, stretches in orders.items():
            for sent in stage.run(task, stretches):
                yield from _encoded(sent)
        yield from _encoded(stage.end())

    def next_batch(self, limit: int | None = None) -> list[tuple[int, bytes]]:
        waiting = []
        for topic in self.application.plan.input_topics():
            for partition, rows in enumerate(self.topics.get(topic, [])):
                latest, reached = -1, -1
                for row in rows[self.read.get((topic, partition), 0) :]:
                    if row[1] >= latest:
                        latest, reached = row[1], row[5]
                    waiting.append((latest, reached, topic, partition, row))
        waiting.sort(key=lambda entry: entry[:2])
        taken: dict[tuple[str, int], list[Row]] = {}
        for _, _, topic, partition, row in waiting[:limit]:
            taken.setdefault((topic, partition), []).append(row)
        found = []
        plan, numbers = self.application.plan, self.application.task_numbers
        for (topic, partition), rows in taken.items():
            self.read[topic, partition] = self.read.get((topic, partition), 0) + len(rows)
            first = rows[0][0]
            data = encode(Stretch(topic, partition, first, first + len(rows), self.now))
            if topic in plan.readers:
                unit = plan.units[plan.readers[topic]]
                found.append((numbers[unit.number][plan.task_of(unit, partition)], data))
            for number in plan.global_readers.get(topic, ()):
                found += [(task, data) for task in numbers[number]]
        return found

    def _append(
        self, topic: str, partition: int, key: bytes | None, value: bytes | None, timestamp: int, headers: Any
    ) -> None:
        partitions = self.topics.setdefault(topic, [[] for _ in range(self.partitions)])
        rows = partitions[partition]
        rows.append((len(rows), timestamp, key, value, headers, self._turn()))

    def _turn(self) -> int:
        self._sequence += 1
        return self._sequence


def _encoded(sent: Iterable[tuple[int, Block]]) -> Iterator[tuple[int, bytes]]:
    for task, block in sent:
        yield task, encode(block)
