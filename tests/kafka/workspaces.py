"""An application and topics of its own on a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from headrace import Streams, StreamsBuilder, StreamsConfig, serdes
from headrace.dev.kafka_broker import DevBroker
from tests.kafka.naming import unique
from tests.spark.applications import Workspace, wait_for


class OnKafka(Workspace):
    """Counts the words of lines, unless told otherwise."""

    def __init__(self, folder: Path, kafka: DevBroker) -> None:
        self.name = unique("app")
        super().__init__(folder, {"application_id": self.name, "bootstrap_servers": kafka.address})
        self.lines, self.counts = f"{self.name}-lines", f"{self.name}-counts"

    def word_count(self, **settings: Any) -> Streams:
        builder = StreamsBuilder()
        words = builder.stream(self.lines, value_serde=serdes.String).flat_map_values(str.split)
        counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="words")
        counts.to_stream().to(self.counts, value_serde=serdes.Long)
        own = {name: getattr(self.config, name) for name in self.config.model_fields_set}
        return Streams(builder.build(), StreamsConfig(**{**own, **settings}))

    def counted(self) -> dict[str, int]:
        """Return the last count of each word."""
        return {word: count for word, count, _ in self.read(self.counts, serdes.Long)}

    def wait_for_counts(self, expected: dict[str, int]) -> None:
        """What is committed shows a moment later."""
        wait_for(lambda: self.counted() == expected, f"{expected}", 20, every=0.1)

    def add_partitions(self, topic: str, count: int) -> None:
        """Let a topic have so many, and wait until that shows."""
        admin = AdminClient({"bootstrap.servers": self.config.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, count)])[topic].result(30)
        with self.broker() as broker:
            wait_for(lambda: len(broker.end_offsets(topic)) == count, f"{count} partitions of '{topic}'", 30, every=0.1)

    def delete_records(self, before: int) -> None:
        """Let the first records of the lines be gone, as retention would."""
        delete_records(self.config.bootstrap_servers, self.lines, before)


def delete_records(address: str, topic: str, before: int) -> None:
    """Let the first records of a topic's first partition be gone."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)
