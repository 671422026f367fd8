"""The fuzzer's minimizer, against failures whose smallest form is known."""

from typing import Any

import pytest

from tools.minimize import minimize

Scenario = dict[str, Any]


@pytest.fixture
def scenario() -> Scenario:
    entries: list[dict[str, Any]] = [{"topic": "in", "key": "a", "value": str(i), "ts": 5000 + i} for i in range(40)]
    entries += [{"topic": "in2", "key": "b", "value": "1", "ts": 6000, "headers": [["h", "1"]]}]
    return {
        "id": "s",
        "tags": [],
        "topology": [
            {"id": "n1", "op": "stream", "topic": "in"},
            {"id": "n2", "op": "filter", "from": "n1", "fn": "even"},
            {"id": "n3", "op": "stream", "topic": "in2"},
            {"id": "n4", "op": "merge", "left": "n2", "right": "n3"},
            {"id": "n5", "op": "branch", "from": "n4", "branches": ["even", "lt:3"], "default": True},
            {"id": "n6", "op": "group_by_key", "from": "n5#default"},
            {"id": "n7", "op": "count", "from": "n6", "store": "counts"},
            {"id": "n8", "op": "to_stream", "from": "n7"},
            {"id": "n9", "op": "to", "from": "n8", "topic": "out"},
        ],
        "input": entries,
    }


def ops(scenario: Scenario) -> list[str]:
    return [node["op"] for node in scenario["topology"]]


def test_keeps_only_the_entries_that_matter(scenario: Scenario) -> None:
    def needs_two_entries(candidate: Scenario) -> bool:
        return {"7", "31"} <= {e["value"] for e in candidate["input"]}

    assert [e["value"] for e in minimize(scenario, needs_two_entries)["input"]] == ["7", "31"]


def test_keeps_only_the_nodes_that_matter_and_what_feeds_them(scenario: Scenario) -> None:
    def is_valid_and_counts(candidate: Scenario) -> bool:
        return {"stream", "group_by_key", "count", "to_stream", "to"} <= set(ops(candidate))

    smallest = minimize(scenario, is_valid_and_counts)

    assert ops(smallest) == ["stream", "group_by_key", "count", "to_stream", "to"]
    assert smallest["topology"][1]["from"] == smallest["topology"][0]["id"]
    assert "store" not in smallest["topology"][2]


def test_drops_the_input_of_sources_that_are_gone(scenario: Scenario) -> None:
    def reads_second_topic(candidate: Scenario) -> bool:
        return any(e["topic"] == "in2" for e in candidate["input"])

    smallest = minimize(scenario, reads_second_topic)

    assert smallest["input"] == [{"topic": "in2", "key": "b", "value": "1", "ts": 0}]


def test_stops_after_the_given_number_of_attempts(scenario: Scenario) -> None:
    calls = 0

    def never_fails(candidate: Scenario) -> bool:
        nonlocal calls
        calls += 1
        return False

    minimize(scenario, never_fails, attempts=10)

    assert calls == 10
