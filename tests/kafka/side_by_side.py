"""Kafka Streams and Headrace on one broker, for tests that compare them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import Streams, StreamsConfig, Topology
from headrace.brokers import Broker, TopicRecord
from tests.kafka.naming import unique
from tests.kafka.neighbour import Neighbour
from tests.spark.applications import wait_for

PARTITIONS = 3

Row = tuple[int, bytes | None, bytes | None, int]
Live = dict[tuple[int, bytes | None], tuple[bytes, int]]


@dataclass(frozen=True)
class Both:
    """A broker, with Kafka Streams and Headrace on it."""

    broker: Broker
    java: Neighbour
    address: str
    folder: Path

    def topic(self, name: str, partitions: int = PARTITIONS) -> str:
        """Make a topic of a name that begins like this."""
        return self.broker.create_topic(unique(name), partitions).name

    def produce(self, topic: str, *records: tuple[str, str | None, int]) -> None:
        rows = [(key.encode(), None if value is None else value.encode(), at) for key, value, at in records]
        self.broker.produce(topic, rows)

    def headrace(self, topology: Topology, application: str) -> Streams:
        return Streams(
            topology,
            StreamsConfig(
                application_id=application,
                bootstrap_servers=self.address,
                kafka={"session.timeout.ms": 6_000},
                state_dir=str(self.folder / "headrace"),
                statestore_cache_max_bytes=0,
                commit_interval_ms=10,
            ),
        )

    def settled(self, topic: str) -> list[TopicRecord]:
        """Read a topic, a partition after the other, when all of it is committed: that shows a moment later."""
        found: list[TopicRecord] = []

        def is_settled() -> bool:
            found[:] = self.broker.records(topic)
            return len(found) == sum(1 for _ in self.broker.records(topic, read_committed=False))

        wait_for(is_settled, f"the commit of what is in '{topic}'", 30, every=0.05)
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def rows(self, topic: str) -> list[Row]:
        """Return partition, key, value and timestamp of a topic's records."""
        return [(record.partition, record.key, record.value, record.timestamp) for record in self.settled(topic)]

    def live(self, topic: str) -> Live:
        """Return what a topic says last of each key, with its partition, and when."""
        last = {(partition, key): (value, at) for partition, key, value, at in self.rows(topic)}
        return {key: (value, at) for key, (value, at) in last.items() if value is not None}

    def texts(self, *sources: tuple[str, str, str], registry: str = "") -> dict[str, list[Any]]:
        """Let Kafka Streams read topics, each with the kinds of its keys and values.

        Returns, by topic, the (key, value, timestamp) it has found; those of a key in their order.
        """
        out = self.topic("texts", 1)
        self.java.run("texts", unique("java-texts"), sources=sources, out=out, registry=registry)
        found: dict[str, list[Any]] = {topic: [] for topic, _, _ in sources}
        for record in self.settled(out):
            found[(record.key or b"").decode()].append((*json.loads(record.value or b""), record.timestamp))
        return found
