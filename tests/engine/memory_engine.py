"""The engine in one process, over topics in lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from headrace import StreamsConfig, Topology
from headrace.brokers.engine import EngineBroker
from headrace.engine.batches import BatchPlanner
from headrace.engine.in_process import InProcessEngine
from headrace.engine.read_plan import read_plan_of
from headrace.raw_records import RawRecord
from tests.engine.memory_broker import MemoryBroker

_NO_LIMIT = 1 << 60


class MemoryEngine(InProcessEngine):
    """Runs a topology in batches of any size."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        folder: Path,
        partitions: int = 1,
        *,
        in_place: bool = False,
    ) -> None:
        self.broker = MemoryBroker(in_place=in_place)
        named = {t for source in topology.sources() for t in source.topics if t not in topology.internal_topics}
        self.broker.ensure_topics(dict.fromkeys(named, partitions))
        super().__init__(topology, config, cast(EngineBroker, self.broker), folder)

    def produce(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Any = None) -> None:
        self.broker.produce_one(topic, key, value, timestamp, headers)

    def run(self, batch_size: int | None = None) -> None:
        """Run batches of at most so many records until none are left."""
        plan = replace(read_plan_of(self.application), limit=batch_size or _NO_LIMIT)
        self.planner = BatchPlanner(plan, cast(EngineBroker, self.broker), clock=lambda: self.now)
        self.run_until_caught_up()

    def records(self, topic: str) -> list[RawRecord]:
        return [record for partition in self.broker.topic_records.get(topic, []) for record in partition]
