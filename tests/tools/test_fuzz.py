"""The fuzzer compares a run of Headrace with the answer of Kafka Streams."""

from copy import deepcopy
from typing import Any

import pytest

from tests.conformance.vectors import recorded_scenarios
from tools.fuzz import compare

Scenario = dict[str, Any]


@pytest.fixture(scope="module")
def answer() -> Scenario:
    return next(scenario for scenario in recorded_scenarios() if scenario["id"] == "classic-word-count")


@pytest.mark.parametrize("restart", [False, True])
def test_the_same_result_is_no_difference(answer: Scenario, restart: bool) -> None:
    assert compare(answer, restart) is None


def test_another_output_is_a_difference(answer: Scenario) -> None:
    wrong = deepcopy(answer)
    wrong["output"]["out"][0]["value"] = "7"

    difference = compare(wrong, restart=False)

    assert difference is not None
    assert difference.kind == "output"
    assert "classic-word-count" in difference.text


def test_another_store_is_a_difference(answer: Scenario) -> None:
    wrong = deepcopy(answer)
    wrong["stores"]["counts"].pop()

    difference = compare(wrong, restart=False)

    assert difference is not None
    assert difference.kind == "stores"


def test_an_exception_is_a_difference_of_its_kind(answer: Scenario) -> None:
    wrong = deepcopy(answer)
    wrong["topology"][1]["fn"] = "nobody-knows-it"

    difference = compare(wrong, restart=False)

    assert difference is not None
    assert difference.kind not in ("output", "stores")
    assert "Traceback" in difference.text
