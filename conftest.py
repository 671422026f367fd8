"""The names that examples in docstrings and in `docs/` use without an import: `run`, `serdes`, all of `headrace`."""

from typing import Any

import pytest
from hypothesis import settings

import headrace
from headrace import StreamsBuilder, Topology, serdes
from headrace.testing import TopologyTestDriver


def run(
    topology: StreamsBuilder | Topology, records: list[Any], source: str = "in", sink: str = "out", config: Any = None
) -> list[Any]:
    """Pipe (key, value, timestamp) or (topic, key, value, timestamp) in; return the (key, value, timestamp) out."""
    if isinstance(topology, StreamsBuilder):
        topology = topology.build()
    with TopologyTestDriver(topology, config) as driver:
        for *topic, key, value, timestamp in records:
            driver.create_input_topic(topic[0] if topic else source).pipe_input(key, value, timestamp)
        results = driver.create_output_topic(sink).read_records()
        return [(result.key, result.value, result.timestamp) for result in results]


# A busy machine must not fail a test.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

NAMES = {"run": run, "serdes": serdes, "TopologyTestDriver": TopologyTestDriver} | {
    name: getattr(headrace, name) for name in headrace.__all__
}


@pytest.fixture(autouse=True)
def _names_for_examples(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        for (
            name,
            value,
        ) in NAMES.items():  # a module's own names come first, because there is also a serde named Windowed
            request.node.dtest.globs.setdefault(name, value)
