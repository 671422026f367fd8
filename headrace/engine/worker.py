"""A worker: a process in which tasks run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from headrace.brokers.batches import BatchSource
from headrace.brokers.writing import BatchWriter
from headrace.engine.application import Application
from headrace.engine.messages import TopicRange
from headrace.raw_records import RawRecord


class WorkerBroker(BatchSource, BatchWriter, Protocol):
    """The calls of a broker that tasks use."""


class Worker:
    """What the tasks of one process share: the application, and this process's broker."""

    def __init__(self, application: Application, open_broker: Callable[[], WorkerBroker]) -> None:
        self.application, self._open_broker = application, open_broker
        self._counts: dict[str, int] = {}

    @property
    def broker(self) -> WorkerBroker:
        """The broker, opened when it is first used: a task that fails to open it says so as for any other failure."""
        return self._open_broker()

    def pages(self, wanted: TopicRange) -> Iterator[list[RawRecord]]:
        """Read the records of a range, page by page."""
        return self.broker.read_range(wanted.topic, wanted.partition, wanted.start, wanted.end)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, or will have when it is created."""
        count = self.application.plan.partitions.get(topic) or self._counts.get(topic)
        if count is None:
            count = self.broker.partition_counts().get(topic, self.application.config.num_partitions)
            self._counts[topic] = count
        return count

    def create_topics(self, topics: Iterable[str]) -> None:
        """Create topics that only a record has named: topics of dead letters, and topics that a function chooses."""
        application = self.application
        planned = application.plan.partitions.keys() | application.changelog_topics
        named = set(topics) - planned
        if named:
            wanted = dict.fromkeys(sorted(named), application.config.num_partitions)
            self.broker.ensure_topics(wanted, application.config.replication_factor)
