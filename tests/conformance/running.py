"""Runs a scenario through the test driver and collects its outputs by topic and its named stores."""

from collections.abc import Collection
from typing import Any, NamedTuple

from headrace import StreamsConfig, Windowed
from headrace.testing import TopologyTestDriver
from tests.conformance.scenario import STRING, STRINGS, Node, ScenarioTopology, StoreKind, key_text

Entry = dict[str, Any]

# As the oracle: strings unless told otherwise, and every update is forwarded.
CONFIG = StreamsConfig(
    application_id="conformance",
    default_key_serde=STRING,
    default_value_serde=STRING,
    statestore_cache_max_bytes=0,
)


class Result(NamedTuple):
    """What came out of a scenario, in the form of its "output" and "stores"."""

    output: dict[str, list[Entry]]
    stores: dict[str, list[Entry]]


def run(scenario: dict[str, Any], restart_before: Collection[int] = ()) -> Result:
    """Feed the input, one entry at a time; at the given steps go on in a new driver made from the old one's changes."""
    nodes = scenario["topology"]
    output: dict[str, list[Entry]] = {topic: [] for topic in ScenarioTopology(nodes).outputs}
    driving = DriverRun(nodes)
    try:
        for step, entry in enumerate(scenario["input"]):
            if step in restart_before:
                snapshot = driving.driver.snapshot()
                driving.driver.close()
                driving = DriverRun(nodes, restore_from=snapshot)
            driving.feed(entry)
            driving.collect(step, output)
        return Result(output, driving.dump_stores())
    finally:
        driving.driver.close()


class DriverRun:
    """One test driver with the topics of the scenario."""

    def __init__(self, nodes: list[Node], **driver_options: Any) -> None:
        self.topology = ScenarioTopology(nodes)
        self.driver = TopologyTestDriver(self.topology.build(), CONFIG, **driver_options)
        self._inputs: dict[str, Any] = {}
        self._outputs = {topic: self.driver.create_output_topic(topic, **STRINGS) for topic in self.topology.outputs}

    def feed(self, entry: Entry) -> None:
        if "advance_wall_clock" in entry:
            self.driver.advance_wall_clock_time(entry["advance_wall_clock"])
            return
        name = entry["topic"]
        if name not in self._inputs:
            self._inputs[name] = self.driver.create_input_topic(name, **STRINGS)
        headers = [(header, value.encode()) for header, value in entry.get("headers", [])]
        self._inputs[name].pipe_input(entry["key"], entry["value"], timestamp=entry["ts"], headers=headers)

    def collect(self, step: int, output: dict[str, list[Entry]]) -> None:
        for topic, records in self._outputs.items():
            for record in records.read_records():
                entry = {"key": record.key, "value": record.value, "ts": record.timestamp, "step": step}
                if record.headers:
                    entry["headers"] = [[name, value.decode()] for name, value in record.headers]
                output[topic].append(entry)

    def dump_stores(self) -> dict[str, list[Entry]]:
        return {name: self._dump(name, kind) for name, kind in self.topology.stores.items()}

    def _dump(self, name: str, kind: StoreKind) -> list[Entry]:
        if kind in (StoreKind.PLAIN, StoreKind.SESSION):
            pairs = sorted(self.driver.state_store(name).all(), key=_dump_order)
            return [{"key": key_text(key), "value": str(value)} for key, value in pairs]
        pairs = sorted(self.driver.timestamped_store(name).all(), key=_dump_order)
        return [{"key": key_text(key), "value": str(v.value), "ts": v.timestamp} for key, v in pairs]


def _dump_order(pair: tuple[Any, Any]) -> tuple[bytes, int, int]:
    key = pair[0]
    if isinstance(key, Windowed):
        return key.key.encode(), key.window.start, key.window.end
    return key.encode(), 0, 0
