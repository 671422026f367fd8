"""The oracle as a process: answers come in the order of the scenarios, and its death is reported."""

from pathlib import Path

import pytest

from tools import oracle
from tools.oracle import Oracle, OracleError, Scenario, build_oracle


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(oracle, "CONFORMANCE", tmp_path)
    return tmp_path


def script(folder: Path, text: str) -> None:
    """Let the oracle be a script."""
    (folder / "run.sh").write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (folder / "run.sh").chmod(0o755)


def test_answers_come_in_order(folder: Path) -> None:
    script(folder, "cat")
    scenarios: list[Scenario] = [{"id": f"s-{number}", "text": "é" * 1000} for number in range(500)]

    with Oracle() as running:
        assert running.ask({"id": "first"}) == {"id": "first"}
        assert list(running.answers(scenarios)) == scenarios


def test_an_oracle_that_has_stopped_is_an_error(folder: Path) -> None:
    script(folder, "read -r line; exit 3")

    with Oracle() as running, pytest.raises(OracleError, match="exit code 3"):
        running.ask({"id": "first"})


def test_without_java_the_error_says_what_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))

    with pytest.raises(OracleError, match="needs Java 17 or later"):
        build_oracle()
