"""A short round of `make chaos BROKER=kafka`."""

import random
from pathlib import Path

import pytest

from headrace.dev.kafka_broker import DevBroker, free_port
from tools.chaos import QUICK_BROKER, Round


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("windowed", ["after-send", "after-task-commit", "after-commit", "broker"]),
        ("mapped", ["after-send", "after-task-commit", "zombie"]),
    ],
    ids=["killed", "superseded"],
)
def test_it_loses_and_doubles_nothing(tmp_path: Path, name: str, points: list[str]) -> None:
    with DevBroker(tmp_path / "kafka", free_port(), settings=QUICK_BROKER) as kafka:
        kills, problems = Round(name, tmp_path, random.Random(5), records=900, kafka=kafka).run(points)

    assert problems == []
    assert sorted(kills) == sorted(points)
