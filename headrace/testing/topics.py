"""The topics of a test: pipe records in, read results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from headrace.durations import milliseconds
from headrace.errors import TopicError
from headrace.records import Headers, Record
from headrace.serdes import Serde
from headrace.testing.produced import ProducedRecords

Pipe: TypeAlias = Callable[[str, bytes | None, bytes | None, int, Headers], None]
"""Processes a record: pipe(topic, key, value, timestamp, headers)."""


class TestInputTopic:
    """Pipes records into a topic. Each is processed before the call returns.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").to("out")
    >>> driver = TopologyTestDriver(builder.build())
    >>> topic = driver.create_input_topic("in", start_timestamp=100, auto_advance=10)
    >>> topic.pipe_input("a", 1)
    >>> topic.pipe_input("b", 2, timestamp=42)
    >>> topic.pipe_key_values([("c", 3), ("d", 4)])
    >>> topic.pipe_values([5])
    >>> [(record.key, record.timestamp) for record in driver.create_output_topic("out").read_records()]
    [('a', 100), ('b', 42), ('c', 110), ('d', 120), (None, 130)]
    """

    __test__ = False

    def __init__(
        self,
        pipe: Pipe,
        topic: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        start_timestamp: int,
        auto_advance: int,
    ) -> None:
        self.topic = topic
        self._pipe = pipe
        self._key_serde, self._value_serde = key_serde, value_serde
        self._time = start_timestamp
        self._advance = auto_advance

    def __repr__(self) -> str:
        return f"TestInputTopic({self.topic!r}, {self._key_serde!r}, {self._value_serde!r})"

    def pipe_input(
        self,
        key: Any,
        value: Any = None,
        timestamp: int | None = None,
        headers: Headers | Mapping[str, bytes] | None = None,
    ) -> None:
        """Pipe one record: key and value, or a `Record`."""
        if isinstance(key, Record):
            key, value, timestamp, headers = key.key, key.value, key.timestamp, key.headers
        pairs = _headers(self.topic, headers)
        if timestamp is None:
            timestamp = self._time
            self._time += self._advance
        elif type(timestamp) is not int:
            timestamp = milliseconds(timestamp, f"topic '{self.topic}', timestamp", at_least=None)
        self._pipe(
            self.topic,
            self._key_serde.serialize(self.topic, key, pairs),
            self._value_serde.serialize(self.topic, value, pairs),
            timestamp,
            pairs,
        )

    def pipe_values(self, values: Iterable[Any]) -> None:
        """Pipe records without a key."""
        for value in values:
            self.pipe_input(None, value)

    def pipe_key_values(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Pipe records from (key, value) pairs."""
        for key, value in pairs:
            self.pipe_input(key, value)

    def pipe_records(self, records: Iterable[Record[Any, Any]]) -> None:
        """Pipe records."""
        for record in records:
            self.pipe_input(record)

    def advance_time(self, duration: int | timedelta) -> None:
        """Advance the time that records without a timestamp get."""
        self._time += milliseconds(duration, "advance_time")


class TestOutputTopic:
    """Reads the records that were written to a topic, each once.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").to("out")
    >>> driver = TopologyTestDriver(builder.build())
    >>> driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2), ("a", 3), ("b", 4)])
    >>> topic = driver.create_output_topic("out")
    >>> topic.read_value()
    1
    >>> topic.read_key_value()
    ('b', 2)
    >>> topic.read_key_values_to_dict()
    {'a': 3, 'b': 4}
    >>> topic.is_empty()
    True
    """

    __test__ = False

    def __init__(self, produced: ProducedRecords, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> None:
        self.topic = topic
        self._produced = produced
        self._key_serde, self._value_serde = key_serde, value_serde

    def __repr__(self) -> str:
        waiting = f"{self.queue_size()} waiting"
        return f"TestOutputTopic({self.topic!r}, {self._key_serde!r}, {self._value_serde!r}, {waiting})"

    def read_record(self) -> Record[Any, Any]:
        """Take the next record; raise if there is none."""
        queue = self._produced.queue(self.topic)
        if not queue:
            waiting = self._produced.waiting()
            elsewhere = ", ".join(f"'{topic}' ({count})" for topic, count in waiting.items()) or "none in any topic"
            raise TopicError(f"topic '{self.topic}' has no record to read (records waiting: {elsewhere})")
        key, value, timestamp, headers = queue[0]
        record = Record(
            self._key_serde.deserialize(self.topic, key, headers),
            self._value_serde.deserialize(self.topic, value, headers),
            timestamp,
            list(headers or ()),
        )
        queue.popleft()
        return record

    def read_value(self) -> Any:
        """Take the next record's value."""
        return self.read_record().value

    def read_key_value(self) -> tuple[Any, Any]:
        """Take the next record's key and value."""
        record = self.read_record()
        return record.key, record.value

    def read_records(self) -> list[Record[Any, Any]]:
        """Take all records."""
        return [self.read_record() for _ in range(self.queue_size())]

    def read_values(self) -> list[Any]:
        """Take all values."""
        return [record.value for record in self.read_records()]

    def read_key_values(self) -> list[tuple[Any, Any]]:
        """Take all keys and values."""
        return [(record.key, record.value) for record in self.read_records()]

    def read_key_values_to_dict(self) -> dict[Any, Any]:
        """Take all records and return the last value of every key. All records need a key."""
        records = self.read_records()
        for record in records:
            if record.key is None:
                raise TopicError(f"topic '{self.topic}' has a record without a key: {record!r}. Use read_key_values()")
        return {record.key: record.value for record in records}

    def is_empty(self) -> bool:
        """Tell whether nothing is left to read."""
        return not self._produced.queue(self.topic)

    def queue_size(self) -> int:
        """Return how many records are left to read."""
        return len(self._produced.queue(self.topic))


def _headers(topic: str, headers: Headers | Mapping[str, bytes] | None) -> Headers:
    if not headers:
        return []
    pairs = []
    try:
        for name, value in headers.items() if isinstance(headers, Mapping) else headers:
            data = value.encode() if isinstance(value, str) else value
            if not isinstance(name, str) or not isinstance(data, bytes):
                raise TypeError
            pairs.append((name, data))
    except (TypeError, ValueError):
        raise TopicError(
            f"topic '{topic}': headers must be a dict, or pairs of a name and bytes (or str), got {headers!r}"
        ) from None
    return pairs
