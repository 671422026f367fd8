"""On Kafka, recorded scenarios of every family give the results of Kafka Streams.

Kafka has no order over topics, so a scenario ends before records of the same time in two topics. Kafka's client library
cannot write the timestamp 0, so a scenario with this timestamp is moved by a day, unless that changes its meaning. The
clock of a running application cannot be set, so scenarios that set it are left out.
"""

import re
from collections import Counter
from typing import Any

import pytest

from headrace.dev.kafka_broker import DevBroker
from tests.conformance.engines import OnSpark, without_steps
from tests.conformance.running import Entry, run
from tests.conformance.vectors import recorded_scenarios

OF_A_FAMILY = 4
LONG_ENOUGH = 10
DAY = 86_400_000
"""A multiple of all sizes of windows, and of the minutes that stores keep together."""
WINDOW = re.compile(r"@(\d+)-(\d+)$")

Scenario = dict[str, Any]


def fits(scenario: Scenario) -> bool:
    """Tell whether enough of a scenario can be had on Kafka."""
    if not OnSpark.takes(scenario):
        return False
    cut = beginning(scenario)
    if len(cut["input"]) < min(LONG_ENOUGH, len(scenario["input"])) or not any(cut["output"].values()):
        return False
    # Windows that overlap are fewer where time begins, since none begins before it.
    return not (has_time_zero(cut) and {"hopping", "sliding"} & {node.get("kind") for node in windows(cut)})


def fitted(scenario: Scenario) -> Scenario:
    """Return what can be had of a scenario."""
    cut = beginning(scenario)
    return a_day_later(cut) if has_time_zero(cut) else cut


def beginning(scenario: Scenario) -> Scenario:
    """Return a scenario up to the first time that two topics share, with what comes out until then."""
    topics: dict[int, str] = {}
    end = next(
        (
            step
            for step, entry in enumerate(scenario["input"])
            if topics.setdefault(entry["ts"], entry["topic"]) != entry["topic"]
        ),
        len(scenario["input"]),
    )
    output = {
        topic: [entry for entry in entries if entry["step"] < end] for topic, entries in scenario["output"].items()
    }
    return scenario | {"input": scenario["input"][:end], "output": output}


def has_time_zero(scenario: Scenario) -> bool:
    entries = [*scenario["input"], *(entry for entries in scenario["output"].values() for entry in entries)]
    return any(entry["ts"] == 0 for entry in entries)


def windows(scenario: Scenario) -> list[dict[str, Any]]:
    return [part for node in scenario["topology"] for part in (node, node.get("window")) if part]


def a_day_later(scenario: Scenario) -> Scenario:
    def later(entry: Entry) -> Entry:
        moved = entry | {"ts": entry["ts"] + DAY}
        if entry["key"] is not None:
            moved["key"] = WINDOW.sub(lambda found: f"@{int(found[1]) + DAY}-{int(found[2]) + DAY}", entry["key"])
        return moved

    output = {topic: [later(entry) for entry in entries] for topic, entries in scenario["output"].items()}
    return scenario | {"input": [later(entry) for entry in scenario["input"]], "output": output}


def sample() -> dict[str, Scenario]:
    """Return some of every family: from its beginning, its end, and in between."""
    found: dict[str, list[Scenario]] = {}
    for scenario in filter(fits, recorded_scenarios()):
        found.setdefault(scenario["tags"][0], []).append(fitted(scenario))
    return {
        family[index]["id"]: family[index]
        for family in found.values()
        for index in (number * (len(family) - 1) // (OF_A_FAMILY - 1) for number in range(OF_A_FAMILY))
    }


SAMPLE = sample()


def test_every_family_is_represented() -> None:
    taken = Counter(scenario["tags"][0] for scenario in SAMPLE.values())

    families = {scenario["tags"][0] for scenario in recorded_scenarios()}
    assert {family: taken[family] for family in families if taken[family] < OF_A_FAMILY} == {}
    assert any("headers" in entry for scenario in SAMPLE.values() for entry in scenario["input"])


@pytest.mark.parametrize("name", SAMPLE)
def test_the_part_of_a_scenario_that_fits_is_a_scenario(name: str) -> None:
    assert run(SAMPLE[name]).output == SAMPLE[name]["output"]


@pytest.fixture(scope="module")
def on_kafka(kafka: DevBroker, tmp_path_factory: pytest.TempPathFactory) -> OnSpark:
    return OnSpark(list(SAMPLE.values()), None, tmp_path_factory.mktemp("conformance"), kafka.address)


@pytest.mark.slow
@pytest.mark.xdist_group("kafka-conformance")
@pytest.mark.parametrize("name", SAMPLE)
def test_on_kafka(on_kafka: OnSpark, name: str) -> None:
    scenario = SAMPLE[name]

    assert on_kafka.run(scenario) == without_steps(scenario["output"])
