"""Small applications over an embedded log of their own, for tests that need the real engine."""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from traceback import format_stack
from typing import Any

from pyspark import SparkContext

from headrace import Streams, StreamsBuilder, StreamsConfig, Topology, serdes
from headrace.brokers import Broker, connect


def word_count() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines", value_serde=serdes.String).flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="counts")
    counts.to_stream().to("counts", value_serde=serdes.Long)
    return builder.build()


@dataclass
class Workspace:
    """A folder with topics and state."""

    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> StreamsConfig:
        return StreamsConfig(
            **{
                "application_id": "app",
                "state_dir": str(self.folder),
                "master": "local[*]",
                "statestore_cache_max_bytes": 0,
                "commit_interval_ms": 10,
                **self.settings,
            }
        )

    def broker(self) -> Broker:
        return connect(self.config.bootstrap_servers)

    def streams(self, topology: Topology) -> Streams:
        return Streams(topology, self.config)

    def create(self, *topics: str, partitions: int = 1) -> None:
        with self.broker() as broker:
            for topic in topics:
                broker.create_topic(topic, partitions)

    def produce(self, topic: str, *records: tuple[str | None, str | None, int]) -> None:
        with self.broker() as broker:
            broker.produce(topic, [(_raw(key), _raw(value), timestamp) for key, value, timestamp in records])

    def read(self, topic: str, value_serde: Any = serdes.String) -> list[tuple[Any, Any, int]]:
        """Return the keys, values and timestamps of a topic, a partition after the other."""
        with self.broker() as broker:
            return [
                (
                    serdes.String.deserialize(topic, record.key),
                    value_serde.deserialize(topic, record.value),
                    record.timestamp,
                )
                for record in broker.records(topic)
            ]


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 120, every: float = 0.01) -> None:
    """Wait until something holds; a test that waits for ever says for what."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, f"waited {seconds} s for {what}\n{_what_it_does()}"
        sleep(every)


def _what_it_does() -> str:
    """Return where the threads of this process stand, and those of Spark's that run queries and tasks."""
    found = ["".join(format_stack(frame)) for frame in sys._current_frames().values()]
    context: Any = SparkContext._active_spark_context
    if context is not None:
        with suppress(Exception):  # Java may be gone
            stacks = context._jvm.java.lang.Thread.getAllStackTraces()
            for thread in stacks.keySet().toArray():
                name = thread.getName()
                if name.startswith(("stream execution", "Executor task")):
                    found.append("\n".join([name, *(f"  {line}" for line in stacks.get(thread))]))
    return "\n".join(found)


def still_runs(app: Streams) -> bool:
    """Return True, or raise what ended the application."""
    if not app.state.is_running():
        app.close()
        raise AssertionError(f"the application is {app.state.value}") from app.error
    return True


def caught_up(app: Streams) -> bool:
    """Tell whether nothing is left to read; raise what ended the application."""
    return still_runs(app) and not any(
        behind for partitions in app.metrics()["lag"].values() for behind in partitions.values()
    )


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
