"""On the engine, too, every recorded scenario gives the results of Kafka Streams, in batches of any size.

The engine runs twice: its own code over lists, with every scenario, and as a whole on Spark, with a sample of them.
`HEADRACE_CONFORMANCE=all` runs every scenario on Spark, too.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.conformance.engines import Engine, InBatches, OnSpark, without_steps
from tests.conformance.vectors import recorded_scenarios

SIZES: dict[str, int | None] = {"one by one": 1, "by sevens": 7, "all at once": None}
SCENARIOS = {scenario["id"]: scenario for scenario in recorded_scenarios()}
EVERY = {"one by one": 8, "by sevens": 2, "all at once": 1}
"""Of so many scenarios one runs on Spark in the suite."""


def sample(size: str) -> list[dict[str, Any]]:
    step = 1 if os.environ.get("HEADRACE_CONFORMANCE") == "all" else EVERY[size]
    return [scenario for scenario in list(SCENARIOS.values())[::step] if OnSpark.takes(scenario)]


@pytest.fixture(scope="session")
def on_spark(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Engine]:
    """Give the engine of a batch size: all its scenarios run when the first is asked for."""

    @cache
    def run(size: str) -> Engine | Exception:
        try:
            return OnSpark(sample(size), SIZES[size], tmp_path_factory.mktemp("conformance"))
        except Exception as error:  # once is enough: all tests of the size share it
            return error

    def engine(size: str) -> Engine:
        ran = run(size)
        if isinstance(ran, Exception):
            raise ran
        return ran

    return engine


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [name for name in SCENARIOS if InBatches.takes(SCENARIOS[name])])
def test_in_batches(size: str, name: str) -> None:
    scenario = SCENARIOS[name]

    assert InBatches(SIZES[size]).run(scenario) == without_steps(scenario["output"])


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(("size", "name"), [(size, scenario["id"]) for size in SIZES for scenario in sample(size)])
def test_on_spark(on_spark: Callable[[str], Engine], size: str, name: str) -> None:
    scenario = SCENARIOS[name]

    assert on_spark(size).run(scenario) == without_steps(scenario["output"])


def splits_by_key(scenario: dict[str, Any]) -> bool:
    """Tell whether every record has a key and stays with the records of its key."""
    moving = {"group_by", "repartition", "select_key", "map"} | {"fk_join", "fk_left_join", "join_global"}
    moving.add("left_join_global")
    stays = not moving & {node["op"] for node in scenario["topology"]}
    return stays and all("topic" in entry and entry["key"] is not None for entry in scenario["input"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, scenario in SCENARIOS.items() if InBatches.takes(scenario) and splits_by_key(scenario)]
)
def test_three_partitions_are_three_tasks_of_their_own(name: str) -> None:
    """Each partition gives what it gives alone: the same records for every key."""
    scenario = SCENARIOS[name]

    together = InBatches(7, partitions=3).run(scenario)
    alone = [InBatches(7, partitions=3, only=partition).run(scenario) for partition in range(3)]

    for topic, entries in together.items():
        assert keyed(entries) == {key: found for part in alone for key, found in keyed(part[topic]).items()}


def keyed(entries: list[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for entry in entries:
        found.setdefault(entry["key"], []).append(entry)
    return found


def test_most_scenarios_are_taken() -> None:
    taken = [scenario for scenario in SCENARIOS.values() if InBatches.takes(scenario)]

    assert len(taken) > 0.7 * len(SCENARIOS)
