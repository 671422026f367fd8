"""The inputs of a task: one queue per topic partition, read in the order of offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from headrace.raw_records import RawRecord
from headrace.records import Record
from headrace.serdes import Serde
from headrace.topology.nodes import Process
from headrace.topology.timestamps import FailOnInvalidTimestamp, TimestampExtractor


class InputQueue:
    """The records of one topic partition that a task has still to process."""

    def __init__(
        self,
        step: str,
        topic: str,
        partition: int,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
        extractor: TimestampExtractor,
        process: Process,
        partition_time: list[int],
    ) -> None:
        self.step = step
        self.topic = topic
        self.partition = partition
        self.process = process
        self.records: deque[RawRecord] = deque()
        self.partition_time = partition_time
        self._key_serde, self._value_serde = key_serde, value_serde
        self.decode_key: Callable[[bytes], Any] = key_serde.decoder(topic)
        self.decode_value: Callable[[bytes], Any] = value_serde.decoder(topic)
        self.uses_headers = key_serde.uses_headers or value_serde.uses_headers
        self._extractor = extractor
        self.extracts = extractor is not FailOnInvalidTimestamp

    def taken(self) -> Iterator[RawRecord]:
        """Take the records off the queue, one when it is asked for."""
        while self.records:
            yield self.records.popleft()

    def deserialize(self, raw: RawRecord) -> tuple[Any, Any]:
        """Turn a record's key and value into objects."""
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

    def explain(self, raw: RawRecord) -> None:
        """Deserialize once more in the way that gives the full message; return when nothing is wrong after all."""
        self._key_serde.deserialize(self.topic, raw[2], list(raw[4] or ()))
        self._value_serde.deserialize(self.topic, raw[3], list(raw[4] or ()))

    def timestamp(self, key: Any, value: Any, raw: RawRecord) -> int:
        """Extract a record's timestamp; negative means that the record is to be dropped."""
        headers = list(raw[4]) if raw[4] else []
        return self._extractor(Record(key, value, raw[1], headers), self.partition_time[0])
