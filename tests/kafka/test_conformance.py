"""Recorded scenarios of every family give on Kafka what Kafka Streams gives.

Kafka has no order over topics, and its client library cannot write the timestamp 0: scenarios that need these are left
out.
"""

from itertools import pairwise
from typing import Any

import pytest

from headrace.dev.kafka_broker import DevBroker
from tests.conformance.engines import OnSpark, without_steps
from tests.conformance.vectors import recorded_scenarios

OF_A_FAMILY = 2


def means_something(scenario: dict[str, Any]) -> bool:
    if not OnSpark.takes(scenario):
        return False
    times = [entry["ts"] for entry in scenario["input"]]
    written = [entry["ts"] for entries in scenario["output"].values() for entry in entries]
    one_topic = len({entry["topic"] for entry in scenario["input"]}) == 1
    return 0 not in times and 0 not in written and (one_topic or all(one < other for one, other in pairwise(times)))


def sample() -> dict[str, dict[str, Any]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for scenario in filter(means_something, recorded_scenarios()):
        found.setdefault(scenario["id"].rsplit("-", 1)[0], []).append(scenario)
    return {scenario["id"]: scenario for family in found.values() for scenario in family[:OF_A_FAMILY]}


SAMPLE = sample()


@pytest.fixture(scope="module")
def on_kafka(kafka: DevBroker, tmp_path_factory: pytest.TempPathFactory) -> OnSpark:
    return OnSpark(list(SAMPLE.values()), None, tmp_path_factory.mktemp("conformance"), kafka.address)


@pytest.mark.slow
@pytest.mark.xdist_group("kafka")
@pytest.mark.parametrize("name", SAMPLE)
def test_on_kafka(on_kafka: OnSpark, name: str) -> None:
    assert on_kafka.run(SAMPLE[name]) == without_steps(SAMPLE[name]["output"])
