"""`tools/chaos.py`: a short round of `make chaos BROKER=kafka`."""

from pathlib import Path

import pytest

from tools.chaos import run_on_kafka


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
    kills, problems = run_on_kafka(name, tmp_path, "5", 900, points)

    assert problems == []
    assert sorted(kills) == sorted(points)
