"""`Task`: runs one sub-topology for one partition, record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.config import StreamsConfig
from headrace.errors import TaskError
from headrace.raw_records import OutputColumns, RawRecord
from headrace.state.builders import Store
from headrace.state.image import Changes, Image, MemoryImage
from headrace.task.batches import process_lanes, process_pages
from headrace.task.binding import BoundSteps
from headrace.task.context import TaskContext
from headrace.task.current_record import NO_HEADERS
from headrace.task.failures import Failures
from headrace.task.lanes import Causes, Lane, with_end
from headrace.task.punctuation import Schedule
from headrace.task.queues import RecordQueue, RecordQueues, merged_by_extracted_time
from headrace.topology.processor import PunctuationType
from headrace.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Commit:
    """The changes of a task to persist. Everything else can be rebuilt from them."""

    stores: dict[str, Changes]
    """The changes of every space since the last commit."""
    state: dict[str, Any] = field(default_factory=dict)
    """The whole small state of the task: stream times, schedules, sequence numbers."""


class Task:
    """One sub-topology for one partition: a `TaskRunner`.

    Process the records of a batch, take the outputs, and `commit`. A new task that gets the commits as image and state
    continues where this one stopped.
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
        self._context = context = TaskContext(
            topology,
            sub_topology,
            config,
            partition=partition,
            image=MemoryImage() if image is None else image,
            state=state,
            global_stores=global_stores,
            now=now,
            partition_count=partition_count,
        )
        self.id = context.task_id
        self.topology = topology
        self.partition = partition
        self.is_global = sub_topology.is_global
        self.stores = context.stores
        self.record = context.record
        self.outputs = context.outputs
        self.schedules = context.schedules
        self.stream_time = context.stream_time
        self._failures = Failures(context)
        self._steps = BoundSteps(context, self._failures)
        self._queues = RecordQueues(context, self._failures, self._steps.functions)
        self._steps.start()

    @property
    def tasks(self) -> tuple[Task]:
        return (self,)

    @property
    def dropped_records(self) -> int:
        return self._context.dropped_records

    @property
    def now(self) -> int:
        """The wall clock."""
        return self._context.now

    @now.setter
    def now(self, now: int) -> None:
        self._context.now = now

    # -- a batch ----------------------------------------------------------------------------------------------------

    def process_lanes(self, lanes: Sequence[Lane]) -> Causes:
        queues = [self._queues.queue(lane.topic, lane.partition) for lane in lanes]
        if len(lanes) > 1 and any(queue.extracts for queue in queues):
            return self._with_end(self._process_by_extracted_time(lanes, queues))
        return self._with_end(process_lanes(lanes, self._process_page))

    def process_pages(self, pages: Iterable[Lane]) -> Causes:
        return self._with_end(process_pages(pages, self._process_page))

    def _process_page(self, topic: str, partition: int, records: Sequence[RawRecord], first_ordinal: int) -> None:
        self._process(self._queues.queue(topic, partition), records, first_ordinal)
        self.outputs.end_page()

    def _with_end(self, causes: Causes) -> Causes:
        self.record.ordinal = len(causes)
        return with_end(causes, self.now)

    def advance_wall_clock(self, now: int) -> None:
        self.now = now
        schedules = self.schedules[PunctuationType.WALL_CLOCK_TIME]
        if schedules.next_due <= now:
            schedules.punctuate(now, self._punctuate)

    def commit(self) -> list[Commit]:
        changes: dict[str, Changes] = {}
        self.flush_caches()
        for store in self.stores.values():
            changes.update(store.commit())
        changed = {name: change for name, change in changes.items() if change}
        return [Commit(changed, self._context.cells.values())]

    def flush_caches(self) -> None:
        """Pass on the updates that record caches hold back."""
        for cache in self._context.caches.values():
            cache.flush()

    def take_outputs(self) -> list[tuple[str, OutputColumns]]:
        return self.outputs.take_by_topic()

    def close(self) -> None:
        self._steps.close()

    # -- among other tasks: see TaskTurns ---------------------------------------------------------------------------

    def reads(self, topic: str) -> bool:
        """Tell whether a source of this task reads a topic."""
        return self._queues.reads(topic)

    def topic_name(self, topic: str) -> str:
        """Return the name of a topic in the broker."""
        return self._context.topic_name(topic)

    def process_records(self, topic: str, partition: int, records: Sequence[RawRecord], first_ordinal: int) -> None:
        """Process records that a group has put in order."""
        self._process(self._queues.queue(topic, partition), records, first_ordinal)

    def enqueue(self, topic: str, partition: int, record: RawRecord) -> None:
        """Let a record wait after the others of its topic partition."""
        self._queues.queue(topic, partition).waiting.append(record)

    def head_timestamp(self) -> int:
        """Return the lowest timestamp of a record that is first in its queue, or `NOTHING_WAITS`."""
        return self._queues.head_timestamp()

    def process_next(self, ordinal: int) -> None:
        """Process the waiting record with the lowest timestamp."""
        queue = self._queues.next()
        self._process(queue, [queue.waiting.popleft()], ordinal)

    # -- the loops over the records ---------------------------------------------------------------------------------

    def _process(self, queue: RecordQueue, records: Iterable[RawRecord], first_ordinal: int) -> None:
        """Process records of one queue. Most records come this way, so all names are local."""
        record, stream_time, partition_time = self.record, self.stream_time, queue.partition_time
        schedules = self.schedules[PunctuationType.STREAM_TIME]
        decode_key, decode_value, process = queue.decode_key, queue.decode_value, queue.process
        plain = not queue.uses_headers and not queue.extracts
        record.topic, record.partition = queue.topic, queue.partition
        # The loop's target is the attribute itself: steps read the ordinal there, and this is its cheapest assignment.
        for record.ordinal, raw in enumerate(records, first_ordinal):
            record.raw = raw
            _, timestamp, key, value, headers, _ = raw
            record.headers = headers or NO_HEADERS
            if plain and timestamp >= 0:
                # This does what `queue.read` does, and saves a call and a tuple for every record.
                try:
                    if key is not None:
                        key = decode_key(key)
                    if value is not None:
                        value = decode_value(value)
                except Exception as error:
                    queue.fail(raw, error)
                    continue
            else:
                read = queue.read(raw)
                if read is None:
                    continue
                key, value, timestamp = read
            # Times are cells (lists of one number): a commit keeps them, and steps see them change.
            if timestamp > partition_time[0]:
                partition_time[0] = timestamp
                if timestamp > stream_time[0]:
                    stream_time[0] = timestamp
            process(key, value, timestamp)
            if schedules.next_due <= stream_time[0]:
                schedules.punctuate(stream_time[0], self._punctuate)
                record.topic, record.partition = queue.topic, queue.partition

    def _process_by_extracted_time(self, lanes: Sequence[Lane], queues: Sequence[RecordQueue]) -> Causes:
        """Process lanes if only an extractor knows the timestamps of some of them. Return the causes."""
        record, stream_time = self.record, self.stream_time
        schedules = self.schedules[PunctuationType.STREAM_TIME]
        times: list[int] = []
        sequences: list[int] = []
        in_order = merged_by_extracted_time([(queue, lane.records) for queue, lane in zip(queues, lanes)])
        for latest, sequence, _, timestamp, queue, key, value, raw in in_order:
            queue.take_in_hand(raw)
            record.ordinal = len(times)
            times.append(latest)
            sequences.append(sequence)
            if timestamp > stream_time[0]:
                stream_time[0] = timestamp
            queue.process(key, value, timestamp)
            if schedules.next_due <= stream_time[0]:
                schedules.punctuate(stream_time[0], self._punctuate)
        record.clear()
        return Causes(np.maximum.accumulate(np.array(times, np.int64)), np.array(sequences, np.int64))

    def _punctuate(self, schedule: Schedule, now: int) -> None:
        saved = self.record.saved()
        self.record.clear()
        try:
            schedule.callback(now)
        except TaskError:
            raise
        except Exception as error:
            self._failures.in_step(schedule.step, error, None, None, now)
        finally:
            self.record.restore(saved)
