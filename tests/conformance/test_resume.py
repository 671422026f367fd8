"""A task that is rebuilt from its committed changes continues as if it had never stopped."""

from typing import Any

import pytest

from tests.conformance.rendering import render_difference
from tests.conformance.running import run
from tests.conformance.vectors import recorded_result, recorded_scenarios


@pytest.mark.parametrize("scenario", recorded_scenarios(), ids=lambda scenario: scenario["id"])
def test_gives_the_same_after_a_restart_halfway(scenario: dict[str, Any]) -> None:
    expected, actual = recorded_result(scenario), run(scenario, restart_before={len(scenario["input"]) // 2})

    if actual != expected:
        pytest.fail(render_difference(scenario, expected, actual), pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", recorded_scenarios(), ids=lambda scenario: scenario["id"])
def test_gives_the_same_when_restarted_before_every_record(scenario: dict[str, Any]) -> None:
    expected, actual = recorded_result(scenario), run(scenario, restart_before=range(len(scenario["input"])))

    if actual != expected:
        pytest.fail(render_difference(scenario, expected, actual), pytrace=False)
