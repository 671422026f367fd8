"""`TopologyTestDriver`: all tasks of a topology in one process, one record at a time."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from types import TracebackType
from typing import Any

from headrace.config import StreamsConfig
from headrace.durations import milliseconds
from headrace.errors import ConfigError, InvalidStateStoreError, StreamsError, TopicError, TopologyError
from headrace.raw_records import RecordToWrite
from headrace.records import Headers
from headrace.serdes import Serde, as_serde
from headrace.state.builders import Store
from headrace.state.image import MemoryImage
from headrace.state.views import plain_view
from headrace.task.processors import check_supplier
from headrace.task.task import Task
from headrace.task.turns import TaskTurns
from headrace.testing.produced import ProducedRecords
from headrace.testing.snapshot import CommittedState, Snapshot
from headrace.testing.topics import TestInputTopic, TestOutputTopic
from headrace.topology.nodes import SinkNode, SourceNode
from headrace.topology.topology import Topology


class TopologyTestDriver:
    """Run a topology without Spark and without Kafka.

    Each piped record is processed and committed, and caches are flushed, before the call returns. The wall clock stands
    still unless it is advanced.

    >>> from headrace import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> builder.stream("in").map_values(str.upper).to("out")
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in").pipe_input("a", "x")
    ...     driver.create_output_topic("out").read_key_values()
    [('a', 'X')]
    """

    __test__ = False

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | dict[str, Any] | None = None,
        initial_wall_clock: int = 0,
        *,
        restore_from: Snapshot | None = None,
    ) -> None:
        if not isinstance(topology, Topology):
            raise TopologyError(
                f"TopologyTestDriver: expected a Topology, got {type(topology).__name__}. "
                "Call build() on a StreamsBuilder to get one"
            )
        topology.validate()
        for node in topology.processors():
            if node.supplier is not None:
                check_supplier(node)
        self._topology = topology
        self.config = _config(config)
        self._now = restore_from.now if restore_from else milliseconds(initial_wall_clock, "initial_wall_clock")
        self._offsets: dict[str, int] = dict(restore_from.offsets) if restore_from else {}
        self._produced = ProducedRecords()
        self._topics_produced: set[str] = set()
        self._closed = False
        self._committed = CommittedState(restore_from)
        self._tasks = self._make_tasks()
        self._turns = TaskTurns(self._tasks, self._commit)

    def _make_tasks(self) -> list[Task]:
        """Make a task for each sub-topology. Global tables come first, because the others read their stores."""
        tasks = []
        global_stores: dict[str, Store] = {}
        for sub in sorted(self._topology.sub_topologies(), key=lambda sub: not sub.is_global):
            task_id = f"{sub.id}_0"
            image, state = MemoryImage(self._committed.stores(task_id)), self._committed.state(task_id)
            task = Task(
                self._topology, sub, self.config, image=image, state=state, global_stores=global_stores, now=self._now
            )
            if sub.is_global:
                global_stores.update(task.stores)
            tasks.append(task)
        return tasks

    # -- topics -----------------------------------------------------------------------------------------------------

    def create_input_topic(
        self,
        topic: str,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        start_timestamp: int | None = None,
        auto_advance: int | timedelta = 0,
    ) -> TestInputTopic:
        """Return a topic to pipe records into.

        Without serdes, the topic has those of the source that reads it, or the defaults. A record without a timestamp
        gets the topic's time. This starts at `start_timestamp`, or at the wall clock, and advances by `auto_advance`
        after each of these records.
        """
        self._check_read(topic)
        source = self._source(topic)
        return TestInputTopic(
            self.pipe,
            topic,
            self._serde(key_serde, source.key_serde if source else None, "key"),
            self._serde(value_serde, source.value_serde if source else None, "value"),
            self._now if start_timestamp is None else milliseconds(start_timestamp, "start_timestamp"),
            milliseconds(auto_advance, "auto_advance"),
        )

    def create_output_topic(
        self, topic: str, *, key_serde: Serde[Any] | None = None, value_serde: Serde[Any] | None = None
    ) -> TestOutputTopic:
        """Return a topic to read results from.

        Without serdes, the topic has those of the sink that writes it, or the defaults.
        """
        sink = self._sink(topic)
        return TestOutputTopic(
            self._produced,
            topic,
            self._serde(key_serde, sink.key_serde if sink else None, "key"),
            self._serde(value_serde, sink.value_serde if sink else None, "value"),
        )

    def pipe(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Append a raw record to a topic. Process it and everything that follows from it."""
        self._check_open()
        self._check_read(topic)
        self._append(topic, key, value, timestamp, headers)
        self._turns.settle(0)

    def queue(self, topic: str) -> deque[RecordToWrite]:
        """Return the records that were produced to a topic and not read yet."""
        return self._produced.queue(topic)

    def waiting(self) -> dict[str, int]:
        """Return how many records wait to be read, by topic."""
        return self._produced.waiting()

    def produced_topic_names(self) -> set[str]:
        """Return the topics to which the topology has produced records, internal topics included."""
        return set(self._topics_produced)

    # -- time and stores --------------------------------------------------------------------------------------------

    def advance_wall_clock_time(self, duration: int | timedelta) -> None:
        """Advance the wall clock and run the punctuations that are due.

        >>> class Tick(Processor):
        ...     def init(self, context):
        ...         super().init(context)
        ...         context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tick)
        ...     def tick(self, timestamp):
        ...         self.context.forward(Record("tick", None, timestamp))
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").process(Tick).to("out")
        >>> with TopologyTestDriver(builder.build(), initial_wall_clock=100) as driver:
        ...     driver.advance_wall_clock_time(10)
        ...     driver.create_output_topic("out").read_record().timestamp
        110
        """
        self._check_open()
        self._now += milliseconds(duration, "advance_wall_clock_time")
        # As in Kafka Streams' driver, all tasks punctuate before any of them takes the resulting records. A TaskGroup
        # settles after each task, because its tasks stand for tasks that punctuate independently of each other.
        for task in self._tasks:
            task.advance_wall_clock(self._now)
            self._commit(task)
        self._turns.settle(0)

    def state_store(self, name: str) -> Any:
        """Return a store with plain values, even if it also keeps their timestamps.

        >>> builder = StreamsBuilder()
        >>> _ = builder.stream("in").group_by_key().count(store="counts")
        >>> with TopologyTestDriver(builder.build()) as driver:
        ...     driver.create_input_topic("in").pipe_input("a", "x", timestamp=7)
        ...     driver.state_store("counts").get("a")
        ...     driver.timestamped_store("counts").get("a")
        1
        ValueAndTimestamp(value=1, timestamp=7)
        """
        return plain_view(self._store(name))

    def timestamped_store(self, name: str) -> Any:
        """Return a store with values and timestamps: a `ValueAndTimestamp` for each row of a table."""
        return self._store(name)

    def state_stores(self) -> dict[str, Any]:
        """Return all stores by name, with plain values."""
        return {name: plain_view(store) for task in self._tasks for name, store in task.stores.items()}

    def snapshot(self) -> Snapshot:
        """Return everything that is committed. Pass it to another driver as `restore_from`."""
        return self._committed.snapshot(self._offsets, self._now)

    def close(self) -> None:
        """Close the processors. The driver cannot be used afterwards."""
        if not self._closed:
            self._closed = True
            self._turns.close()

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- records and commits ----------------------------------------------------------------------------------------

    def _append(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        """Append a record to a topic, where it waits for the tasks that read the topic."""
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        self._turns.enqueue(topic, 0, (offset, timestamp, key, value, headers, 0))

    def _commit(self, task: Task) -> None:
        """Commit a task after its turn, and append its outputs to their topics."""
        [commit] = task.commit()
        self._committed.add(task.id, commit)
        for topic, _, key, value, timestamp, headers, _ in task.outputs.take():
            self._topics_produced.add(topic)
            self._append(topic, key, value, timestamp, headers)
            if not self._is_internal(topic):
                self._produced.queue(topic).append((key, value, timestamp, headers))

    # -- looking things up ------------------------------------------------------------------------------------------

    def _store(self, name: str) -> Store:
        for task in self._tasks:
            if name in task.stores:
                return task.stores[name]
        known = ", ".join(sorted(name for task in self._tasks for name in task.stores)) or "none"
        raise InvalidStateStoreError(f"there is no store '{name}' (stores: {known})")

    def _is_internal(self, topic: str) -> bool:
        return topic in self._topology.internal_names(self.config.application_id)

    def _source_topics(self) -> list[str]:
        sources, internal = self._topology.sources(), self._topology.internal_topics
        names = [topic for source in sources for topic in source.topics if topic not in internal]
        return names + [source.pattern.pattern for source in sources if source.pattern is not None]

    def _source(self, topic: str) -> SourceNode | None:
        return next((source for source in self._topology.sources() if source.reads(topic)), None)

    def _sink(self, topic: str) -> SinkNode | None:
        return next((sink for sink in self._topology.sinks() if sink.topic == topic), None)

    def _serde(self, given: Serde[Any] | None, known: Serde[Any] | None, role: str) -> Serde[Any]:
        return self.config.serde(known if given is None else as_serde(given, f"{role}_serde"), role)

    def _check_read(self, topic: str) -> None:
        if not self._turns.readers(topic, 0):
            known = ", ".join(self._source_topics()) or "nothing"
            raise TopicError(f"the topology does not read topic '{topic}' (it reads: {known})")

    def _check_open(self) -> None:
        if self._closed:
            raise StreamsError("the driver is closed. Make a new TopologyTestDriver")


def _config(config: StreamsConfig | dict[str, Any] | None) -> StreamsConfig:
    if isinstance(config, StreamsConfig):
        return config
    if config is not None and not isinstance(config, dict):
        raise ConfigError(f"TopologyTestDriver: expected a StreamsConfig, a dict of settings or None, got {config!r}")
    return StreamsConfig(**({"application_id": "test"} | (config or {})))
