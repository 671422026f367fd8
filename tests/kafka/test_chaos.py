"""A short round of `make chaos BROKER=kafka`."""

import random
from pathlib import Path

import pytest

from headrace.dev.kafka_broker import DevBroker, free_port
from tools.chaos import QUICK_BROKER, Round


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_killed_and_superseded_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with DevBroker(tmp_path / "kafka", free_port(), settings=QUICK_BROKER) as kafka:
        chaos = Round("windowed", tmp_path, random.Random(5), records=900, kafka=kafka)
        kills, problems = chaos.run(["after-send", "after-task-commit", "after-commit", "zombie", "broker"])

    assert problems == []
    # The last start may have come to its end before the broker was to be killed.
    assert sorted(kills.keys() - {"broker"}) == ["after-commit", "after-send", "after-task-commit", "zombie"]
