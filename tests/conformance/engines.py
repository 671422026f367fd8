"""The engines that the scenarios run on, behind one call.

An engine that works in batches does not say which input led to an output, so its scenarios are compared without their
steps. It takes records in the order of their timestamps across topics, so scenarios that go back in time across topics
are left out. `in_time_order.jsonl` has these scenarios again, in the order of time.
"""

import tempfile
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, cast

from headrace import Streams, StreamsBuilder, StreamsConfig
from headrace.brokers import Broker, connect
from headrace.brokers.engine import EngineBroker
from headrace.brokers.writing import PartitionRecords
from headrace.partitioning import partition_of
from tests.conformance.running import CONFIG, Entry
from tests.conformance.scenario import STRING, ScenarioTopology
from tests.engine.memory_engine import MemoryEngine
from tests.spark.applications import caught_up, wait_for

Outputs = dict[str, list[Entry]]


class Engine(Protocol):
    """Runs scenarios."""

    def run(self, scenario: dict[str, Any]) -> Outputs:
        """Return what comes out, by topic."""


class InBatches:
    """The engine's own code in this process, with batches of a size; over all partitions, or one `only`."""

    def __init__(self, size: int | None, partitions: int = 1, only: int | None = None) -> None:
        self._size, self._partitions, self._only = size, partitions, only

    @staticmethod
    def takes(scenario: dict[str, Any]) -> bool:
        return is_in_time_order(scenario)

    def run(self, scenario: dict[str, Any]) -> Outputs:
        topology = ScenarioTopology(scenario["topology"])
        with tempfile.TemporaryDirectory() as folder:
            engine = MemoryEngine(topology.build(), CONFIG, Path(folder), self._partitions)
            for entry in scenario["input"]:
                if "advance_wall_clock" in entry:
                    engine.run(self._size)
                    engine.advance_wall_clock(engine.now + entry["advance_wall_clock"])
                elif self._takes_part(entry):
                    engine.produce(entry["topic"], raw(entry["key"]), raw(entry["value"]), entry["ts"], headers(entry))
            engine.run(self._size)
            return {
                topic: [output_entry(key, value, timestamp, said) for _, timestamp, key, value, said, _ in rows]
                for topic in topology.outputs
                for rows in [engine.records(topic)]
            }

    def _takes_part(self, entry: Entry) -> bool:
        return self._only is None or partition_of(entry["key"].encode(), self._partitions) == self._only


class OnSpark:
    """All scenarios as one application on Spark, each with topics and stores of its own.

    Every scenario is given so many records, then the application is waited for, then the next records come.
    """

    def __init__(
        self, scenarios: list[dict[str, Any]], size: int | None, folder: Path, address: str | None = None
    ) -> None:
        self._results: dict[str, Outputs] = {}
        self._scenarios = {f"s{number}-": scenario for number, scenario in enumerate(scenarios)}
        builder = StreamsBuilder()
        outputs = {
            prefix: ScenarioTopology(prefixed(scenario["topology"], prefix), builder).outputs
            for prefix, scenario in self._scenarios.items()
        }
        config = StreamsConfig(
            application_id="conformance",
            bootstrap_servers=address,
            state_dir=str(folder),
            master="local[*]",
            default_key_serde=STRING,
            default_value_serde=STRING,
            statestore_cache_max_bytes=0,
            commit_interval_ms=1,
        )
        with connect(config.bootstrap_servers) as broker, Streams(builder.build(), config) as app:
            for prefix, scenario in self._scenarios.items():
                for topic in {entry["topic"] for entry in scenario["input"]}:
                    broker.create_topic(prefix + topic)
            self._feed(broker, app, size)
            app.close()
            written = {topic for topics in outputs.values() for topic in topics}
            wait_for(partial(is_settled, broker, written), "what was committed to show", 30, every=0.1)
            for prefix, topics in outputs.items():
                self._results[self._scenarios[prefix]["id"]] = {
                    topic.removeprefix(prefix): [
                        output_entry(record.key, record.value, record.timestamp, record.headers)
                        for record in broker.records(topic)
                    ]
                    for topic in topics
                }

    def _feed(self, broker: Broker, app: Streams, size: int | None) -> None:
        longest = max(len(scenario["input"]) for scenario in self._scenarios.values())
        feeder = cast(EngineBroker, broker).begin_run("feeder", "")
        for number, first in enumerate(range(0, longest, size or longest)):
            # All at once, so that the engine finds all of them: every scenario has its records in one batch.
            written: list[PartitionRecords] = []
            for prefix, scenario in self._scenarios.items():
                # Several together where a topic has them in a row: the order over all topics stays.
                entries = scenario["input"][first : first + (size or longest)]
                for topic, run in groupby(entries, lambda entry: str(entry["topic"])):
                    records = [(raw(entry["key"]), raw(entry["value"]), entry["ts"], headers(entry)) for entry in run]
                    written.append((prefix + topic, None, records))
            cast(EngineBroker, broker).write_batch(feeder, number, written, {})
            if number == 0:
                # Topics of Kafka show what was committed one after the other: then not to one who is looking.
                given = {topic for topic, _, _ in written}
                wait_for(partial(is_settled, broker, given), "what was written to show", 30, every=0.1)
                app.start()
            wait_for(lambda: caught_up(app), "the engine to take in what it was given", 600, every=0.2)

    @staticmethod
    def takes(scenario: dict[str, Any]) -> bool:
        """Tell whether a scenario means something here: nobody can set the clock of a running application."""
        return is_in_time_order(scenario) and all("topic" in entry for entry in scenario["input"])

    def run(self, scenario: dict[str, Any]) -> Outputs:
        return self._results[scenario["id"]]


def is_settled(broker: Broker, topics: set[str]) -> bool:
    """Tell whether what was committed shows: on Kafka that takes a moment."""
    beginnings = {topic: dict.fromkeys(broker.end_offsets(topic), 0) for topic in topics}
    ends = {topic: broker.end_offsets(topic) for topic in topics}
    return cast(EngineBroker, broker).plan_batch(beginnings, None) == ends


def prefixed(value: Any, prefix: str, name: str = "") -> Any:
    """Put a prefix before all names in the nodes of a scenario."""
    if isinstance(value, dict):
        return {key: prefixed(inner, prefix, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [prefixed(inner, prefix) for inner in value]
    return f"{prefix}{value}" if name in ("id", "from", "left", "right", "topic", "store") and value else value


def is_in_time_order(scenario: dict[str, Any]) -> bool:
    """Tell whether a scenario reads one topic, or several without going back in time."""
    records = [entry for entry in scenario["input"] if "topic" in entry]
    times = [entry["ts"] for entry in records]
    return len({entry["topic"] for entry in records}) < 2 or times == sorted(times)


def without_steps(outputs: Outputs) -> Outputs:
    return {
        topic: [{name: value for name, value in entry.items() if name != "step"} for entry in entries]
        for topic, entries in outputs.items()
    }


def raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def headers(entry: Entry) -> list[tuple[str, bytes]]:
    return [(name, value.encode()) for name, value in entry.get("headers", [])]


def output_entry(key: bytes | None, value: bytes | None, timestamp: int, said: Any) -> Entry:
    entry: Entry = {
        "key": None if key is None else key.decode(),
        "value": None if value is None else value.decode(),
        "ts": timestamp,
    }
    if said:
        entry["headers"] = [[name, text.decode()] for name, text in said]
    return entry
