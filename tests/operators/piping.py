"""Transcripts: the inputs of a topology, and its outputs.

    a=1@0  -> a@0-10=1@0
    a=1@12 -> a@10-20=1@12

A record is `key=value@timestamp`, with `None` for null. The key of a window is `key@start-end`. Records go into topic
`in`, unless their line begins with the name of another topic. Results are the records of topic `out`. Values are
strings unless the topology has a serde of its own. Any other value is written as JSON.
"""

import json
import re
from collections.abc import Iterable
from difflib import ndiff
from itertools import count
from typing import Any

import pytest

from headrace import KTable, Materialized, StreamsBuilder, StreamsConfig, Topology, Windowed, serdes
from headrace.raw_records import RawRecord
from headrace.records import Record
from headrace.task.group import TaskGroup
from headrace.task.lanes import Lane
from headrace.task.task import Task
from headrace.testing import TopologyTestDriver

_RECORD = re.compile(r"(?P<key>[^=]*)=(?P<value>.*)@(?P<timestamp>\d+)")

Step = tuple[str, list[str]]


def check(
    topology: StreamsBuilder | Topology,
    transcript: str,
    *,
    cached: bool | None = None,
    stores: dict[str, dict[str, Any]] | None = None,
    **config: Any,
) -> None:
    """Pipe the records of a transcript one by one and compare the results of each, then what the stores hold.

    With `cached=None` the results must be the same with and without caches.
    """
    topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
    expected = _steps(transcript)
    for caching in (False, True) if cached is None else (cached,):
        with TopologyTestDriver(topology, _config(caching, config)) as driver:
            out = driver.create_output_topic("out")
            seen = []
            for given, _ in expected:
                topic, texts = _split(given)
                for text in texts:
                    driver.create_input_topic(topic).pipe_input(_record(text))
                seen.append((given, [_text(result) for result in out.read_records()]))
            _compare(expected, seen, "with caches" if caching else "without caches")
            for name, content in (stores or {}).items():
                assert {_key(key): value for key, value in driver.state_store(name).all()} == content


def check_batches(topology: StreamsBuilder | Topology, transcript: str, *, cached: bool = True, **config: Any) -> None:
    """Feed the records of each line at once, commit once, and compare the results: the way the engine runs tasks."""
    topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
    batches = Batches(topology, StreamsConfig(**_config(cached, config)))
    expected = _steps(transcript)
    seen = []
    for given, _ in expected:
        topic, texts = _split(given)
        batches.feed(topic, [_record(text) for text in texts])
        batches.process()
        batches.commit()
        seen.append((given, batches.results()))
    _compare(expected, seen, "in batches")


class Batches:
    """The tasks of a topology as one group, fed with batches of records and committed when told to."""

    def __init__(self, topology: Topology, config: StreamsConfig) -> None:
        self.tasks = [Task(topology, sub, config) for sub in topology.sub_topologies()]
        self._group = TaskGroup(self.tasks, lambda *_: 0)
        self._fed: dict[str, list[RawRecord]] = {}
        self._sequence = count()
        # Deserializes what comes out, with the serdes of the sinks.
        self._reader = TopologyTestDriver(topology, config)
        self._out = self._reader.create_output_topic("out")

    def feed(self, topic: str, records: Iterable[Record[Any, Any]]) -> None:
        """Add records to the next batch."""
        for record in records:
            number = next(self._sequence)
            key = serdes.String.serialize(topic, record.key)
            value = serdes.String.serialize(topic, record.value)
            self._fed.setdefault(topic, []).append((number, record.timestamp, key, value, record.headers, number))

    def process(self) -> None:
        """Process the records that were fed, and all that follows from them."""
        self._group.process_lanes([Lane.of_source(topic, 0, records) for topic, records in self._fed.items()])
        self._fed.clear()

    def commit(self) -> None:
        """Commit every task."""
        self._group.commit()

    def results(self) -> list[str]:
        """Return what has come out since the last call."""
        for topic, columns in self._group.take_outputs():
            if topic == "out":
                self._reader.queue("out").extend(zip(columns.keys, columns.values, columns.timestamps, columns.headers))
        return [_text(record) for record in self._out.read_records()]


def dropped(topology: StreamsBuilder | Topology, records: str) -> int:
    """Return how many of these records are counted as dropped."""
    topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
    batches = Batches(topology, StreamsConfig(**_config(False, {})))
    batches.feed("in", [_record(text) for text in records.split()])
    batches.process()
    return sum(task.dropped_records for task in batches.tasks)


def append(key: Any, value: Any, aggregate: list[Any]) -> list[Any]:
    """Aggregate into a list, changing it in place as many a user's function does."""
    aggregate.append(value)
    return aggregate


def log_of(table: KTable[Any, Any]) -> None:
    """Write the updates of a table as one growing text: `-` and the old value, `+` and the new one."""
    rows = table.group_by(lambda key, value: ("all", str(value)), value_serde=serdes.String)
    rows.aggregate(
        lambda: "",
        lambda key, value, log: f"{log}+{value}",
        lambda key, value, log: f"{log}-{value}",
        store=Materialized(value_serde=serdes.String),
    ).to_stream().to("out")


def _config(cached: bool, config: dict[str, Any]) -> dict[str, Any]:
    settings = {"application_id": "test", "default_value_serde": serdes.String} | config
    return settings if cached else settings | {"statestore_cache_max_bytes": 0}


def _steps(transcript: str) -> list[Step]:
    return [_step(line) for line in transcript.splitlines() if line.strip()]


def _step(line: str) -> Step:
    given, arrow, results = line.partition("->")
    assert arrow, f"a line reads `records -> results`, got {line!r}"
    return " ".join(given.split()), results.split()


def _split(given: str) -> tuple[str, list[str]]:
    words = given.split()
    return ("in", words) if "=" in words[0] else (words[0], words[1:])


def _record(text: str) -> Record[Any, Any]:
    match = _RECORD.fullmatch(text)
    assert match, f"a record reads `key=value@timestamp`, got {text!r}"
    key, value, timestamp = match.groups()
    return Record(None if key == "None" else key, None if value == "None" else value, int(timestamp))


def _text(record: Record[Any, Any]) -> str:
    return f"{_key(record.key)}={_value(record.value)}@{record.timestamp}"


def _key(key: Any) -> str:
    return f"{key.key}@{key.window.start}-{key.window.end}" if isinstance(key, Windowed) else str(key)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else "None" if value is None else json.dumps(value, separators=(",", ":"))


def _compare(expected: list[Step], seen: list[Step], how: str) -> None:
    if seen != expected:
        pytest.fail("\n".join([how, *ndiff(_lines(expected), _lines(seen))]), pytrace=False)


def _lines(steps: list[Step]) -> list[str]:
    return [f"{given} -> {' '.join(results)}" for given, results in steps]
