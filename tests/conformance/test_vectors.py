"""Every recorded scenario gives the records and stores that Kafka Streams gives."""

from typing import Any

import pytest

from tests.conformance.rendering import render_difference
from tests.conformance.running import run
from tests.conformance.vectors import recorded_result, recorded_scenarios


@pytest.mark.parametrize("scenario", recorded_scenarios(), ids=lambda scenario: scenario["id"])
def test_gives_what_kafka_streams_gives(scenario: dict[str, Any]) -> None:
    expected, actual = recorded_result(scenario), run(scenario)

    if actual != expected:
        pytest.fail(render_difference(scenario, expected, actual), pytrace=False)
