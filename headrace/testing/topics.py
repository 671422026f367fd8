"""The topics of a test: pipe records in, read results out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.durations import milliseconds
from headrace.errors import TopicError
from headrace.records import Headers, Record
from headrace.serdes import Serde

if TYPE_CHECKING:
    from headrace.testing.driver import TopologyTestDriver


class TestInputTopic:
    """Pipes records into a topic; each is processed before the call returns."""

    __test__ = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        topic: str,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        start_timestamp: int,
        auto_advance: int,
    ) -> None:
        self.topic = topic
        self._driver = driver
        self._key_serde, self._value_serde = key_serde, value_serde
        self._time = start_timestamp
        self._advance = auto_advance

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
        if timestamp is None:
            timestamp = self._time
            self._time += self._advance
        pairs = _headers(headers)
        self._driver.pipe(
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
        """Move on the time that records without a timestamp get."""
        self._time += milliseconds(duration, "advance_time")


class TestOutputTopic:
    """Reads what was written to a topic, each record once."""

    __test__ = False

    def __init__(self, driver: TopologyTestDriver, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]) -> None:
        self.topic = topic
        self._driver = driver
        self._key_serde, self._value_serde = key_serde, value_serde

    def read_record(self) -> Record[Any, Any]:
        """Take the next record; raise when there is none."""
        queue = self._driver.queue(self.topic)
        if not queue:
            waiting = self._driver.waiting()
            elsewhere = ", ".join(f"'{topic}' ({count})" for topic, count in waiting.items()) or "nothing anywhere"
            raise TopicError(
                f"topic '{self.topic}': expected a record, the queue is empty (records waiting: {elsewhere})"
            )
        key, value, timestamp, headers = queue.popleft()
        return Record(
            self._key_serde.deserialize(self.topic, key, headers),
            self._value_serde.deserialize(self.topic, value, headers),
            timestamp,
            list(headers),
        )

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
        """Take all records and return the last value of every key; records need a key."""
        records = self.read_records()
        for record in records:
            if record.key is None:
                raise TopicError(f"topic '{self.topic}': expected records with a key, got {record!r}")
        return {record.key: record.value for record in records}

    def is_empty(self) -> bool:
        """Tell whether nothing is left to read."""
        return not self._driver.queue(self.topic)

    def queue_size(self) -> int:
        """Return how many records are left to read."""
        return len(self._driver.queue(self.topic))


def _headers(headers: Headers | Mapping[str, bytes] | None) -> Headers:
    if headers is None:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]
