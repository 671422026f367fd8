"""The sinks of a task: serialize records and add them to the outputs."""

from __future__ import annotations

from typing import Any

from headrace.errors import StreamsError
from headrace.task.context import TaskContext
from headrace.task.failures import Failures
from headrace.topology.nodes import Process, SinkNode
from headrace.topology.partitioners import WindowedPartitioner


class RecordContext:
    """The record in hand, as a function that names a topic sees it."""

    __slots__ = ("headers", "offset", "partition", "timestamp", "topic")

    def __init__(self, topic: str | None, partition: int, offset: int, timestamp: int, headers: Any) -> None:
        self.topic, self.partition, self.offset = topic, partition, offset
        self.timestamp, self.headers = timestamp, headers


def bind_sink(context: TaskContext, failures: Failures, node: SinkNode) -> Process:
    """Return the function that serializes a record and adds it to the outputs."""
    name, record, put_out, fail = node.name, context.record, context.outputs.put, failures.in_sink
    key_serde, value_serde = context.serde(node.key_serde, "key"), context.serde(node.value_serde, "value")

    decides = node.partitioner is not None and not isinstance(node.partitioner, WindowedPartitioner)
    if callable(node.topic) or decides or key_serde.uses_headers or value_serde.uses_headers:
        return _bind_general_sink(context, failures, node)

    topic = context.topic_name(node.topic)
    encode_key, encode_value = key_serde.encoder(topic), value_serde.encoder(topic)

    def sink(key: Any, value: Any, timestamp: int) -> None:
        try:
            raw_key = None if key is None else encode_key(key)
            raw_value = None if value is None else encode_value(value)
            if timestamp < 0:
                raise StreamsError(_negative(timestamp))
        except Exception as error:
            fail(name, _explain(topic, key_serde, key, value_serde, value, error), key, value, timestamp)
            return
        put_out((topic, None, raw_key, raw_value, timestamp, record.headers, record.ordinal))

    return sink


def _bind_general_sink(context: TaskContext, failures: Failures, node: SinkNode) -> Process:
    """Return a sink that chooses topic or partition record by record, or whose serdes read headers."""
    name, record, put_out = node.name, context.record, context.outputs.put
    key_serde, value_serde = context.serde(node.key_serde, "key"), context.serde(node.value_serde, "value")
    choose, partitioner = node.topic, node.partitioner

    def sink(key: Any, value: Any, timestamp: int) -> None:
        try:
            if callable(choose):
                seen = list(record.headers)
                where = RecordContext(record.topic, record.partition, record.offset, timestamp, seen)
                topic = choose(key, value, where)
                if not isinstance(topic, str) or not topic:
                    raise StreamsError(f"the function that names the topic must return a str, got {topic!r}")
            else:
                topic = context.topic_name(choose)
            headers = list(record.headers)  # a copy, because serdes may add headers that are only for this topic
            raw_key = key_serde.serialize(topic, key, headers)
            raw_value = value_serde.serialize(topic, value, headers)
            if timestamp < 0:
                raise StreamsError(_negative(timestamp))
            partitions = _partitions(partitioner, topic, key, value, context.partition_count)
        except Exception as error:
            failures.in_sink(name, error, key, value, timestamp)
            return
        for partition in partitions:
            put_out((topic, partition, raw_key, raw_value, timestamp, headers, record.ordinal))

    return sink


def _partitions(partitioner: Any, topic: str, key: Any, value: Any, count: Any) -> tuple[int | None, ...]:
    """Return the partitions that a record goes to. None lets the key decide."""
    if partitioner is None:
        return (None,)
    partition_count = count(topic)
    chosen = partitioner(topic, key, value, partition_count)
    if chosen is None:
        return (None,)
    several = (chosen,) if isinstance(chosen, int) else tuple(chosen)
    for partition in several:
        if not isinstance(partition, int) or not 0 <= partition < partition_count:
            raise StreamsError(
                f"the partitioner must return 0 to {partition_count - 1} for topic '{topic}', got {partition!r}"
            )
    return several


def _explain(topic: str, key_serde: Any, key: Any, value_serde: Any, value: Any, error: Exception) -> Exception:
    """Serialize once more, in the way that gives the full message."""
    try:
        key_serde.serialize(topic, key)
        value_serde.serialize(topic, value)
    except Exception as explained:
        return explained
    return error


def _negative(timestamp: int) -> str:
    return f"a record that is written needs a timestamp of at least 0, got {timestamp}"
