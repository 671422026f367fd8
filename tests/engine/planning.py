"""Asks a planner for batches, as the source does for Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from headrace.brokers.engine import EngineBroker
from headrace.engine.batches import BatchEnd, BatchPlanner, ReadPlan

Read = dict[tuple[str, int], tuple[int, int]]
"""By topic and partition, the first offset that a batch reads and the one behind the last."""


def read_plan(tasks: dict[str, list[list[int]]], **others: Any) -> ReadPlan:
    """Return a plan for topics with few records, from their beginning unless told otherwise."""
    usual: dict[str, Any] = {
        "resets": dict.fromkeys(tasks, "earliest"),
        "limit": 100,
        "ticking": [],
        "tick_ms": 0,
        "goes_on_after_loss": False,
    }
    return ReadPlan(tasks=tasks, **{**usual, **others})


@dataclass
class Query:
    """Asks a planner, which may be replaced, as by a restart."""

    read_plan: ReadPlan
    broker: EngineBroker

    def __post_init__(self) -> None:
        self.restart()
        self.begin()

    def begin(self) -> None:
        """Ask where to begin, as Spark does as long as no batch is done."""
        self.end = through_json(self.planner.first())

    def restart(self, **changes: Any) -> None:
        self.read_plan = replace(self.read_plan, **changes)
        self.planner = BatchPlanner(self.read_plan, self.broker)

    def plan(self) -> BatchEnd | None:
        """Plan the next batch; return None when there is nothing to do."""
        end = self.planner.next(self.end)
        return None if end is None else through_json(end)

    def planned(self) -> BatchEnd:
        """Plan a batch that has something to do."""
        end = self.plan()
        assert end is not None
        return end

    def read(self, end: BatchEnd) -> Read:
        """Return what the batch that ends there reads."""
        ranges, self.notes = self.planner.ranges(end)
        return {(one.topic, one.partition): (one.start, one.end) for one, _ in ranges}

    def batch(self) -> Read | None:
        """Plan a batch, read and commit it; return what it read, None when there was nothing to do."""
        end = self.plan()
        if end is None:
            return None
        found = self.read(end)
        self.end = end
        return found

    def add(self, topic: str, count: int, partition: int = 0) -> None:
        self.broker.produce(topic, [(None, b"v", 1000)] * count, partition)


def through_json(end: BatchEnd) -> BatchEnd:
    """Return an end as it comes back from the checkpoint."""
    return BatchEnd.from_json(json.loads(json.dumps(end.to_json())))
