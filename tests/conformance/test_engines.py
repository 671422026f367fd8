"""Every recorded scenario gives what Kafka Streams gives on the engine too, whatever the size of its batches."""

from typing import Any

import pytest

from tests.conformance.engines import Engine, InBatches, without_steps
from tests.conformance.vectors import recorded_scenarios

SIZES: dict[str, int | None] = {"one by one": 1, "by sevens": 7, "all at once": None}
SCENARIOS = {scenario["id"]: scenario for scenario in recorded_scenarios()}


@pytest.fixture(params=SIZES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return InBatches(SIZES[request.param])


@pytest.mark.parametrize("name", SCENARIOS)
def test_gives_what_kafka_streams_gives(engine: Engine, name: str) -> None:
    scenario = SCENARIOS[name]
    if not engine.takes(scenario):
        pytest.skip("goes back in time across topics")

    assert engine.run(scenario) == without_steps(scenario["output"])


def test_most_scenarios_are_taken() -> None:
    taken: list[dict[str, Any]] = [scenario for scenario in SCENARIOS.values() if InBatches(1).takes(scenario)]

    assert len(taken) > 0.7 * len(SCENARIOS)
