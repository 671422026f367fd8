"""Asks the reader as Spark does."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from pyspark.sql.streaming.datasource import ReadAllAvailable

from headrace.brokers import Broker
from headrace.engine.batches import Reading, Share, TopicsReader

Read = dict[tuple[str, int], tuple[int, int]]
"""By topic and partition, the first offset that a batch reads and the one behind the last."""


def reading_of(address: str, tasks: dict[str, list[list[int]]], **others: Any) -> Reading:
    """Return a reading of topics with few records, from their beginning unless told otherwise."""
    usual: dict[str, Any] = {
        "settings": pickle.dumps({}),
        "resets": dict.fromkeys(tasks, "earliest"),
        "limit": 100,
        "ticking": [],
        "tick_ms": 0,
        "last": [7],
        "stop_file": "no-such-file",
        "readers": 2,
        "goes_on": False,
    }
    return Reading(address=address, tasks=tasks, **{**usual, **others})


@dataclass
class Query:
    """Asks a reader as Spark does; a reader may be replaced, as by a restart."""

    reading: Reading
    broker: Broker

    def __post_init__(self) -> None:
        self.restart()
        self.begin()

    def begin(self) -> None:
        """Ask where to begin, as Spark does as long as no batch is done."""
        self.offset = travelled(self.reader.initialOffset())

    def restart(self, **changes: Any) -> None:
        self.reading = replace(self.reading, **changes)
        self.reader = TopicsReader(Reading.loads(self.reading.dumps()))

    def plan(self) -> dict[str, Any]:
        return travelled(self.reader.latestOffset(self.offset, ReadAllAvailable()))

    def read(self, end: dict[str, Any]) -> Read:
        """Return what the batch that ends there reads."""
        shares = self.reader.partitions(self.offset, end)
        self.notes: list[str] = []
        found: Read = {}
        for share in shares:
            assert isinstance(share, Share)
            self.notes += share.notes
            found.update({(each.topic, each.partition): (each.start, each.end) for each, _ in share.stretches})
        return found

    def batch(self) -> Read | None:
        """Plan a batch, read and commit it; return what it read, None when there was nothing to do."""
        end = self.plan()
        if end == self.offset:
            return None
        found = self.read(end)
        self.offset = end
        return found

    def add(self, topic: str, count: int, partition: int = 0) -> None:
        self.broker.produce(topic, [(None, b"v", 1000)] * count, partition)


def travelled(offset: dict[str, Any]) -> dict[str, Any]:
    """Return an offset as it comes back from Spark's checkpoint."""
    found: dict[str, Any] = json.loads(json.dumps(offset))
    return found
