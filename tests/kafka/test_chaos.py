"""A short round of `make chaos BROKER=kafka`."""

import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.dev.kafka_broker import DevBroker, free_port
from tools.chaos import QUICK_BROKER, BrokerForgotError, Round


def run(name: str, folder: Path, points: list[str]) -> tuple[Counter[str], list[str]] | None:
    """Run a round; None when the broker itself has broken its word."""
    folder.mkdir()
    with DevBroker(folder / "kafka", free_port(), settings=QUICK_BROKER) as kafka, suppress(BrokerForgotError):
        return Round(name, folder, random.Random(5), records=900, kafka=kafka).run(points)
    return None


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
    result = run(name, tmp_path / "first", points) or run(name, tmp_path / "second", points)

    assert result is not None
    kills, problems = result
    assert problems == []
    assert sorted(kills) == sorted(points)
