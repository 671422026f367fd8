"""The inputs of a task: one queue per topic partition, in the order of offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any

from headrace.errors import SerializationError, StreamsError, TaskError
from headrace.raw_records import RawRecord
from headrace.records import Record
from headrace.task.context import TaskContext
from headrace.task.current_record import NO_HEADERS
from headrace.task.failures import Failures
from headrace.topology.nodes import Process, SourceNode
from headrace.topology.timestamps import FailOnInvalidTimestamp

_merge_key = itemgetter(0, 1, 2)

NOTHING_WAITS = 1 << 63
"""The timestamp of an empty queue: later than that of any record."""


class RecordQueue:
    """One topic partition of a task: how its records are read, and which records wait.

    Kafka Streams' RecordQueue plays this role. Here only records that come back to a task group wait. The others are
    processed page by page as the broker returns them.
    """

    def __init__(
        self, context: TaskContext, failures: Failures, source: SourceNode, topic: str, partition: int, process: Process
    ) -> None:
        key_serde = context.serde(source.key_serde, "key")
        value_serde = context.serde(source.value_serde, "value")
        self.step = source.name
        self.topic = topic
        self.partition = partition
        self.process = process
        """The steps after the source, as one function."""
        self.waiting: deque[RawRecord] = deque()
        self.partition_time: list[int] = context.cells.cell(f"partition_time/{topic}/{partition}", -1)
        self.decode_key: Callable[[bytes], Any] = key_serde.decoder(topic)
        self.decode_value: Callable[[bytes], Any] = value_serde.decoder(topic)
        self.uses_headers = key_serde.uses_headers or value_serde.uses_headers
        self._key_serde, self._value_serde = key_serde, value_serde
        self._extractor = source.timestamp_extractor or context.config.default_timestamp_extractor
        self.extracts = self._extractor is not FailOnInvalidTimestamp
        """Whether timestamps come from a function of the user, not from the topic."""
        self._context, self._failures = context, failures

    def read(self, raw: RawRecord) -> tuple[Any, Any, int] | None:
        """Deserialize a record and extract its timestamp. Return None to drop the record."""
        try:
            key, value = self._deserialize(raw)
        except Exception as error:
            self.take_in_hand(raw)
            self.fail(raw, error)
            return None
        if raw[1] >= 0 and not self.extracts:
            return key, value, raw[1]
        try:
            timestamp = self._timestamp(key, value, raw)
            if not isinstance(timestamp, int):
                raise StreamsError(f"the timestamp extractor must return an int, got {type(timestamp).__name__}")
        except Exception as error:
            self.take_in_hand(raw)
            where = self._failures.where("processing", self.step, key, value, raw[1])
            raise TaskError(f"{where}: the timestamp cannot be extracted: {error}") from error
        if timestamp < 0:
            self._context.dropped_records += 1
            return None
        return key, value, timestamp

    def fail(self, raw: RawRecord, error: Exception) -> None:
        """Let the deserialization handler decide about the record in hand."""
        try:  # deserialize once more, in the way that gives the full message
            self._key_serde.deserialize(self.topic, raw[2], list(raw[4] or ()))
            self._value_serde.deserialize(self.topic, raw[3], list(raw[4] or ()))
        except SerializationError as explained:
            error = explained
        self._failures.in_source(self.step, raw, error)

    def head_timestamp(self) -> int:
        """Return the timestamp that the first waiting record has in the topic; `NOTHING_WAITS` if none waits."""
        return self.waiting[0][1] if self.waiting else NOTHING_WAITS

    def take_in_hand(self, raw: RawRecord) -> None:
        """Take a record in hand."""
        self._context.record.restore((self.topic, self.partition, raw[4] or NO_HEADERS, raw))

    def _deserialize(self, raw: RawRecord) -> tuple[Any, Any]:
        _, _, key, value, headers, _ = raw
        if self.uses_headers:
            return (
                self._key_serde.deserialize(self.topic, key, list(headers or ())),
                self._value_serde.deserialize(self.topic, value, list(headers or ())),
            )
        return (
            None if key is None else self.decode_key(key),
            None if value is None else self.decode_value(value),
        )

    def _timestamp(self, key: Any, value: Any, raw: RawRecord) -> int:
        headers = list(raw[4]) if raw[4] else []
        return self._extractor(Record(key, value, raw[1], headers), self.partition_time[0])


class RecordQueues:
    """The queues of a task, made when their first record comes.

    Kafka Streams' PartitionGroup plays this role for waiting records: the queue whose head has the lowest timestamp is
    next. Lanes put the other records in order (`headrace.task.lanes`).
    """

    def __init__(self, context: TaskContext, failures: Failures, bound: Mapping[str, Process]) -> None:
        """Make queues for the sources of a task. `bound` has the function of every step."""
        self._context, self._failures, self._bound = context, failures, bound
        self._queues: dict[tuple[str, int], RecordQueue] = {}
        sources = context.topology.sources(context.sub_topology)
        self._sources = [(frozenset(map(context.topic_name, source.topics)), source) for source in sources]

    def queue(self, topic: str, partition: int) -> RecordQueue:
        """Return the queue of a topic partition."""
        queue = self._queues.get((topic, partition))
        if queue is None:
            source = self._source(topic)
            if source is None:
                raise StreamsError(f"task {self._context.task_id} does not read topic '{topic}'")
            queue = self._queues[topic, partition] = RecordQueue(
                self._context, self._failures, source, topic, partition, self._bound[source.name]
            )
        return queue

    def next(self) -> RecordQueue:
        """Return the queue whose head has the lowest timestamp in its topic. At least one queue must have a head."""
        return min(self._queues.values(), key=RecordQueue.head_timestamp)

    def head_timestamp(self) -> int:
        """Return the lowest timestamp at the head of a queue; `NOTHING_WAITS` if all queues are empty."""
        return min((queue.head_timestamp() for queue in self._queues.values()), default=NOTHING_WAITS)

    def reads(self, topic: str) -> bool:
        """Tell whether a source of the task reads a topic."""
        return self._source(topic) is not None

    def _source(self, topic: str) -> SourceNode | None:
        for named, node in self._sources:
            if topic in named or (node.pattern is not None and node.reads(topic)):
                return node
        return None


def merged_by_extracted_time(
    lanes: Sequence[tuple[RecordQueue, Iterable[RawRecord]]],
) -> Iterator[tuple[int, int, int, int, RecordQueue, Any, Any, RawRecord]]:
    """Walk the records of several lanes by cause, with the timestamps that their extractors return.

    Each is a tuple: the cause (time and sequence), the number of the lane, the timestamp, the queue, key and value as
    objects, and the raw record.
    """
    return merge(*(_read_ahead(number, *lane) for number, lane in enumerate(lanes)), key=_merge_key)


def _read_ahead(
    number: int, queue: RecordQueue, records: Iterable[RawRecord]
) -> Iterator[tuple[int, int, int, int, RecordQueue, Any, Any, RawRecord]]:
    """Read the records of a lane one by one: the merge holds one record of each lane, and reads no record early."""
    latest, reached = -1, -1
    for raw in records:
        read = queue.read(raw)
        if read is not None:
            key, value, timestamp = read
            if timestamp >= latest:
                latest, reached = timestamp, raw[5]
            queue.partition_time[0] = max(queue.partition_time[0], timestamp)
            yield latest, reached, number, timestamp, queue, key, value, raw
