"""`Task`: runs one sub-topology for one partition, record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from headrace.config import StreamsConfig
from headrace.errors import HeadraceError, StreamsError, TaskError, TopologyError
from headrace.raw_records import OutputColumns, RawRecord
from headrace.serdes import Serde
from headrace.state.builders import Store
from headrace.state.image import Changes, Image, MemoryImage
from headrace.state.small_state import SmallState
from headrace.task.caching import RecordCache
from headrace.task.current_record import NO_HEADERS, CurrentRecord
from headrace.task.failures import Failures
from headrace.task.lanes import Causes, Lane, joined, merge_order, taken_in, with_end
from headrace.task.outputs import PAGE, Outputs
from headrace.task.processor_context import bind_processor
from headrace.task.punctuation import Schedule, Schedules
from headrace.task.queues import InputQueue
from headrace.task.sinks import bind_sink
from headrace.task.step_context import Step, fan_out
from headrace.topology.nodes import Process, SinkNode, SourceNode
from headrace.topology.processor import PunctuationType
from headrace.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Commit:
    """What a task has to have persisted: everything else can be rebuilt from it."""

    stores: dict[str, Changes]
    """The changes of every space since the last commit."""
    state: dict[str, Any] = field(default_factory=dict)
    """The task's own state as a whole: observed stream times, schedules, sequence numbers."""


class Task:
    """One sub-topology for one partition.

    Feed it records, call `process`, take its outputs, and `commit`: what commit returns, given to a new task as image
    and state, makes it go on where this one stopped.
    """

    def __init__(
        self,
        topology: Topology,
        sub_topology: SubTopology,
        config: StreamsConfig,
        *,
        partition: int = 0,
        image: Image | None = None,
        state: Mapping[str, Any] | None = None,
        global_stores: Mapping[str, Store] | None = None,
        now: int = 0,
        partition_count: Callable[[str], int] = lambda topic: 1,
    ) -> None:
        self.id = f"{sub_topology.id}_{partition}"
        self.is_global = sub_topology.is_global
        self.config = config
        self.partition = partition
        self.now = now
        self.topology = topology
        self.partition_count = partition_count
        self.record = CurrentRecord()
        self.failures = Failures(self)
        self.cells = SmallState(state)
        self.stream_time = self.cells.cell("task/stream_time", -1)
        self.outputs = Outputs()
        self.dropped_records = 0
        self.commit_requested = False
        self.global_stores = dict(global_stores or {})
        self.schedules = {kind: Schedules() for kind in PunctuationType}
        self._sub_topology = sub_topology
        self._image = MemoryImage() if image is None else image
        self.stores: dict[str, Store] = {name: self._make_store(name) for name in sub_topology.stores}
        self._caches: dict[str, RecordCache] = {}
        self._queues: dict[tuple[str, int], InputQueue] = {}
        self._bound: dict[str, Process] = {}
        self._processors: list[tuple[str, Any]] = []
        self._bind()

    @property
    def tasks(self) -> tuple[Task]:
        return (self,)

    # -- running ----------------------------------------------------------------------------------------------------

    def feed(self, topic: str, partition: int, records: Iterable[Sequence[Any]]) -> None:
        """Add records (offset, timestamp, key, value, headers) of a topic partition, in the order of their offsets."""
        self._queue(topic, partition).records.extend((*record, 0) for record in records)

    def head_timestamp(self) -> int | None:
        """Return the lowest timestamp at the head of a queue, as it stands in the topic; None when all are empty."""
        return min((queue.records[0][1] for queue in self._queues.values() if queue.records), default=None)

    def process(self) -> None:
        """Process all records that were fed, lowest timestamp first across partitions."""
        waiting = [queue for queue in self._queues.values() if queue.records]
        if len(waiting) == 1:
            self._drain(waiting[0], waiting[0].taken())
        elif waiting:
            self._merge([(number, queue, queue.taken()) for number, queue in enumerate(waiting)])

    def process_one(self, ordinal: int = 0) -> None:
        """Process the record with the lowest timestamp at the head of a queue."""
        waiting = [queue for queue in self._queues.values() if queue.records]
        if waiting:
            queue = min(waiting, key=lambda queue: queue.records[0][1])
            self._drain(queue, [queue.records.popleft()], ordinal)

    def process_lanes(self, lanes: Sequence[Lane]) -> Causes:
        """Process a batch in the order of its causes; return the causes by ordinal, one more than there are records.

        The last one is for what the batch puts out at its end: a flush of the caches, a punctuation by the clock.
        """
        if len(lanes) == 1:
            return self.process_pages(lanes)
        queues = [self._queue(lane.topic, lane.partition) for lane in lanes]
        if any(queue.extracts for queue in queues):
            return self._ended(self._merge_extracted(lanes, queues))
        causes = joined([lane.causes for lane in lanes])
        order = merge_order(causes)
        if order is not None:
            causes = causes.at(order)
        if len(set(map(id, queues))) == 1:
            records = taken_in(order, [record for lane in lanes for record in lane.records])
            for first in range(0, len(records), PAGE):
                self._drain(queues[0], records[first : first + PAGE], first)
                self.outputs.end_page()
        else:
            tagged = [(queue, record) for queue, lane in zip(queues, lanes) for record in lane.records]
            self._drain_in_turn(taken_in(order, tagged))
        return self._ended(causes)

    def process_pages(self, pages: Iterable[Lane]) -> Causes:
        """Process a batch that is one lane, page by page as they come; return its causes as `process_lanes` does."""
        causes, ordinal = [], 0
        for page in pages:
            self.process_run(page.topic, page.partition, page.records, ordinal)
            ordinal += len(page.records)
            causes.append(page.causes)
            self.outputs.end_page()
        return self._ended(joined(causes))

    def _ended(self, causes: Causes) -> Causes:
        self.record.ordinal = len(causes)
        return with_end(causes, self.now)

    def process_run(self, topic: str, partition: int, records: Sequence[RawRecord], first_ordinal: int) -> None:
        """Process records of a batch that is put in order elsewhere."""
        self._drain(self._queue(topic, partition), records, first_ordinal)

    def advance_wall_clock(self, now: int) -> None:
        """Set the clock and call the punctuations that it makes due."""
        self.now = now
        schedules = self.schedules[PunctuationType.WALL_CLOCK_TIME]
        if schedules.next_due <= now:
            schedules.run(now, self._punctuate)

    def commit(self) -> list[Commit]:
        """Flush the caches and hand the changes to the image; return the changes to persist."""
        self.commit_requested = False
        changes: dict[str, Changes] = {}
        self.flush_caches()
        for store in self.stores.values():
            changes.update(store.commit())
        return [Commit({name: change for name, change in changes.items() if change}, self.cells.values())]

    def flush_caches(self) -> None:
        """Let go on what record caches hold back."""
        for cache in self._caches.values():
            cache.flush()

    def take_outputs(self) -> list[tuple[str, OutputColumns]]:
        """Return the outputs since the last call, by topic and page, and forget them."""
        return self.outputs.take_by_topic()

    def store(self, name: str) -> Store:
        """Return a store of this task, or a global one."""
        store = self.stores.get(name) or self.global_stores.get(name)
        if store is None:
            raise TopologyError(f"there is no store '{name}' in sub-topology {self._sub_topology.id}")
        return store

    def close(self) -> None:
        """Close the processors, in the order of the topology."""
        failed: TaskError | None = None
        for name, processor in self._processors:
            try:
                close = getattr(processor, "close", None)
                if close is not None:
                    close()
            except Exception as error:
                if failed is None:
                    failed = TaskError(f"step '{name}' failed to close: {type(error).__name__}: {error}")
                    failed.__cause__ = error
        if failed is not None:
            raise failed

    # -- the loop ---------------------------------------------------------------------------------------------------

    def _drain(self, queue: InputQueue, records: Iterable[RawRecord], first_ordinal: int = 0) -> None:
        """Process records of one queue; the way of most records, so everything is at hand."""
        record, stream_time, time_cell = self.record, self.stream_time, queue.partition_time
        schedules = self.schedules[PunctuationType.STREAM_TIME]
        decode_key, decode_value, process = queue.decode_key, queue.decode_value, queue.process
        plain = not queue.uses_headers and not queue.extracts
        record.topic, record.partition = queue.topic, queue.partition
        for record.ordinal, raw in enumerate(records, first_ordinal):
            record.raw = raw
            _, timestamp, key, value, headers, _ = raw
            record.headers = headers or NO_HEADERS
            if plain and timestamp >= 0:
                try:
                    if key is not None:
                        key = decode_key(key)
                    if value is not None:
                        value = decode_value(value)
                except Exception as error:
                    self.failures.in_source(queue, raw, error)
                    continue
            else:
                read = self._read(queue, raw)
                if read is None:
                    continue
                key, value, timestamp = read
            if timestamp > time_cell[0]:
                time_cell[0] = timestamp
                if timestamp > stream_time[0]:
                    stream_time[0] = timestamp
            process(key, value, timestamp)
            if schedules.next_due <= stream_time[0]:
                schedules.run(stream_time[0], self._punctuate)
                record.topic, record.partition = queue.topic, queue.partition

    def _drain_in_turn(self, tagged: list[tuple[InputQueue, RawRecord]]) -> None:
        """Process records of several queues in the order in which they are given."""
        ordinal = 0
        for queue, run in groupby(tagged, _queue_of):
            records = [record for _, record in run]
            self._drain(queue, records, ordinal)
            ordinal += len(records)

    def _merge(self, lanes: Sequence[tuple[int, InputQueue, Iterable[RawRecord]]]) -> list[tuple[int, int]]:
        """Process several queues by the timestamps of their heads, as extracted; return the cause of every record."""
        record, stream_time = self.record, self.stream_time
        schedules = self.schedules[PunctuationType.STREAM_TIME]
        causes: list[tuple[int, int]] = []
        for latest, sequence, _, timestamp, queue, key, value, raw in merge(
            *(self._heads(number, queue, records) for number, queue, records in lanes), key=_merge_key
        ):
            self._take_in_hand(queue, raw)
            record.ordinal = len(causes)
            causes.append((latest, sequence))
            if timestamp > stream_time[0]:
                stream_time[0] = timestamp
            queue.process(key, value, timestamp)
            if schedules.next_due <= stream_time[0]:
                schedules.run(stream_time[0], self._punctuate)
        record.clear()
        return causes

    def _merge_extracted(self, lanes: Sequence[Lane], queues: list[InputQueue]) -> Causes:
        """Process lanes of which some have timestamps that only their extractor knows."""
        numbered = [(number, queue, lane.records) for number, (queue, lane) in enumerate(zip(queues, lanes))]
        causes = self._merge(numbered)
        times, sequences = (np.array(column, np.int64) for column in (zip(*causes) if causes else ((), ())))
        return Causes(np.maximum.accumulate(times) if causes else times, sequences)

    def _heads(
        self, number: int, queue: InputQueue, records: Iterable[RawRecord]
    ) -> Iterator[tuple[int, int, int, int, InputQueue, Any, Any, RawRecord]]:
        """Read the records of a lane one ahead of the others; none before its time."""
        latest, reached = -1, -1
        for raw in records:
            read = self._read(queue, raw)
            if read is not None:
                key, value, timestamp = read
                if timestamp >= latest:
                    latest, reached = timestamp, raw[5]
                queue.partition_time[0] = max(queue.partition_time[0], timestamp)
                yield latest, reached, number, timestamp, queue, key, value, raw

    def _take_in_hand(self, queue: InputQueue, raw: RawRecord) -> None:
        self.record.restore((queue.topic, queue.partition, raw[4] or NO_HEADERS, raw))

    def _read(self, queue: InputQueue, raw: RawRecord) -> tuple[Any, Any, int] | None:
        """Deserialize a record and extract its timestamp; None when it is to be dropped."""
        try:
            key, value = queue.deserialize(raw)
        except Exception as error:
            self._take_in_hand(queue, raw)
            self.failures.in_source(queue, raw, error)
            return None
        if raw[1] >= 0 and not queue.extracts:
            return key, value, raw[1]
        try:
            timestamp = queue.timestamp(key, value, raw)
            if not isinstance(timestamp, int):
                raise StreamsError(f"the timestamp extractor must give an int, got {type(timestamp).__name__}")
        except Exception as error:
            self._take_in_hand(queue, raw)
            where = self.failures.where("processing", queue.step, key, value, raw[1])
            raise TaskError(f"{where}: the timestamp cannot be extracted: {error}") from error
        if timestamp < 0:
            self.dropped_records += 1
            return None
        return key, value, timestamp

    def _punctuate(self, schedule: Schedule, now: int) -> None:
        position = self.record.position()
        self.record.clear()
        try:
            schedule.callback(now)
        except TaskError:
            raise
        except Exception as error:
            self.failures.in_step(schedule.step, error, None, None, now)
        finally:
            self.record.restore(position)

    # -- binding ----------------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        """Bind the nodes, children first; then start the processors, parents first."""
        contexts = []
        for name in reversed(self._sub_topology.nodes):
            node = self.topology.nodes[name]
            children = {child: self._bound[child] for child in node.children}
            if isinstance(node, SinkNode):
                self._bound[name] = bind_sink(self, node)
            elif isinstance(node, SourceNode):
                self._bound[name] = fan_out(list(children.values()), changes=False)
            elif node.operator is not None:
                step = Step(self, node)
                forward = fan_out(list(children.values()), changes=node.operator.emits_changes)
                step.children = children
                self._bound[name] = node.operator.bind(step, forward)
            else:
                process, processor, context = bind_processor(self, node, Step(self, node), children)
                self._bound[name] = process
                contexts.append((name, processor, context))
        caches = self._caches
        self._caches = {name: caches[name] for name in self._sub_topology.stores if name in caches}
        for name, processor, context in reversed(contexts):
            self._processors.append((name, processor))
            try:
                if hasattr(processor, "init"):
                    processor.init(context)
                context.started()
            except HeadraceError:
                raise
            except Exception as error:
                raise TaskError(f"step '{name}' failed to start: {type(error).__name__}: {error}") from error

    def _make_store(self, name: str) -> Store:
        return self.topology.stores[name].make(name, self.config.store_serde, self._image, self.cells)

    def serde(self, serde: Serde[Any] | None, part: str) -> Serde[Any]:
        """Return a serde, or the configured default of the key or value."""
        return self.config.serde(serde, part)

    def topic_name(self, topic: str) -> str:
        """Return a topic's name in the broker: internal ones have the application's id before them."""
        return f"{self.config.application_id}-{topic}" if topic in self.topology.internal_topics else topic

    def add_cache(self, store: str, forward: Process, send_old: bool) -> RecordCache:
        """Return the cache of a store; the inputs of a cogroup share theirs, as they go on to the same step."""
        cache = self._caches.get(store)
        if cache is None:
            limit = self.config.statestore_cache_max_bytes
            cache = self._caches[store] = RecordCache(forward, send_old, limit, self.record)
        return cache

    def _queue(self, topic: str, partition: int) -> InputQueue:
        queue = self._queues.get((topic, partition))
        if queue is None:
            source = self._find_source(topic)
            if source is None:
                raise StreamsError(f"task {self.id} does not read topic '{topic}'")
            default = self.config.default_timestamp_extractor
            queue = self._queues[topic, partition] = InputQueue(
                source.name,
                topic,
                partition,
                self.serde(source.key_serde, "key"),
                self.serde(source.value_serde, "value"),
                source.timestamp_extractor or default,
                self._bound[source.name],
                self.cells.cell(f"partition_time/{topic}/{partition}", -1),
            )
        return queue

    def reads(self, topic: str) -> bool:
        """Tell whether a source of this task reads a topic."""
        return self._find_source(topic) is not None

    @cached_property
    def _sources(self) -> list[tuple[frozenset[str], SourceNode]]:
        nodes = (self.topology.nodes[name] for name in self._sub_topology.nodes)
        return [(frozenset(map(self.topic_name, node.topics)), node) for node in nodes if isinstance(node, SourceNode)]

    def _find_source(self, topic: str) -> SourceNode | None:
        for named, node in self._sources:
            if topic in named or (node.pattern is not None and node.reads(topic)):
                return node
        return None


_queue_of = itemgetter(0)
_merge_key = itemgetter(0, 1, 2)
