"""`headrace run`, `reset` and `demo`.

Tests: headrace.cli.run, headrace.cli.reset, headrace.cli.demo
"""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.brokers import connect
from headrace.brokers.local.broker import LocalBroker
from headrace.cli.loading import load_application
from tests.cli.running import ADDRESS, headrace, run, started, topics
from tests.spark.applications import wait_for

APPLICATION = """
from headrace import Streams, StreamsBuilder, StreamsConfig, serdes

builder = StreamsBuilder()
counts = builder.stream("lines", value_serde=serdes.String).flat_map_values(str.split).group_by(
    lambda key, word: word, value_serde=serdes.String
).count(store="counts")
counts.to_stream().to("word-counts", value_serde=serdes.Long)
app = Streams(builder.build(), StreamsConfig(application_id="mine", master="local[*]"))


def broken(value):
    raise ValueError(f"no {value}")


other = StreamsBuilder()
other.stream("lines", value_serde=serdes.String).map_values(broken, name="breaks").to("nowhere")
"""


@pytest.fixture
def application(folder: Path) -> Path:
    (folder / "words.py").write_text(APPLICATION, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_run_reset_and_run_again_as_a_user_would(application: Path) -> None:
    headrace("topics", "create", "lines", "--partitions", "2")
    headrace("produce", "lines", given="to be or not\nto be\n")

    first = run("run", "words:app", "--until-caught-up")
    assert (first.status, first.output) == (0, "")
    assert "2 records in, 4 out" in first.errors
    assert "Streaming" not in first.errors

    read = run("consume", "word-counts", "--from-beginning", "--value-serde", "Long")
    assert sorted(line.split()[-1] for line in read.output.splitlines()) == ["1", "1", "2", "2"]

    asked = run("reset", "mine", given="n\n")
    assert asked.status == 1
    assert "Delete the state of application 'mine'" in asked.output + asked.errors
    again = run("reset", "mine", "--yes")
    assert (again.status, again.output) == (0, "reset application 'mine'\n")

    assert run("run", "words:app", "--until-caught-up").status == 0
    with topics() as broker:
        assert sum(broker.end_offsets("word-counts").values()) == 8


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_an_error_of_the_users_function_is_one_line(application: Path) -> None:
    headrace("topics", "create", "lines")
    headrace("produce", "lines", given="x\n")

    outcome = run("run", "words:other", "--until-caught-up", "--application-id", "other")

    assert outcome.status == 1
    last = outcome.errors.strip().splitlines()[-1]
    assert last == ("error: step 'breaks', topic 'lines', partition 0, offset 0, key None: ValueError: no x")
    assert "Traceback" not in outcome.errors
    assert "java" not in outcome.errors.lower()


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_finishes_the_batch_and_ends_in_order(application: Path, how: signal.Signals) -> None:
    headrace("topics", "create", "lines")
    process = started("run", "words:app")
    try:
        headrace("produce", "lines", given="a\n")
        with connect(ADDRESS) as broker:
            wait_for(
                lambda: "word-counts" in broker.topics() and sum(broker.end_offsets("word-counts").values()) == 1, "it"
            )
        refused = headrace("reset", "mine", "--yes")
        assert refused.status == 1
        assert "'mine' is already running" in refused.errors

        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert headrace("reset", "mine", "--yes").status == 0


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_the_demo_runs_without_java_on_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = folder / "tools"
    tools.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for found in Path(place).glob("*"):
            if not found.name.startswith("java"):
                (tools / found.name).unlink(missing_ok=True)
                (tools / found.name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert shutil.which("java") is None

    outcome = run("demo", "sensor-filter", "--records", "200")

    assert outcome.status == 0, outcome.errors
    assert "processed 200 records" in outcome.output
    assert "headrace consume high-temperatures" in outcome.output
    assert outcome.errors == ""


def test_there_is_no_such_demo() -> None:
    outcome = headrace("demo", "nothing")

    assert outcome.status == 1
    assert "there is no demo 'nothing' (demos: word_count, " in outcome.errors


def test_reset_looks_for_topics_where_the_state_is(folder: Path) -> None:
    state = folder / "state"
    with connect(f"local:{state}/topics.db") as broker:
        assert isinstance(broker, LocalBroker)
        broker.write_batch(broker.begin_run("mine", "x"), 0, [], {})

        assert headrace("reset", "mine", "--state-dir", str(state), "--yes").output == "reset application 'mine'\n"

        assert broker.last_batch("mine") is None
    assert not (folder / ".headrace").exists()


@pytest.mark.parametrize("settings", [{}, {"commit_interval_ms": 7}])
def test_a_function_may_return_an_application(
    application: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.syspath_prepend(str(application))
    (application / "made.py").write_text("from words import app\n\n\ndef make():\n    return app\n", encoding="utf-8")
    for name in ("made", "words"):  # of another test's folder
        monkeypatch.delitem(sys.modules, name, raising=False)

    config = load_application("made:make", settings)._config

    assert (config.application_id, config.commit_interval_ms) == ("mine", settings.get("commit_interval_ms", 100))


def test_reset_of_an_unknown_application_says_where_it_looked() -> None:
    outcome = headrace("reset", "nobody", "--yes")

    assert outcome.status == 1
    assert "application 'nobody' is unknown: there is no state in" in outcome.errors


def test_reset_refuses_state_whose_topics_are_somewhere_else(folder: Path) -> None:
    offsets = Path(".headrace/mine/checkpoint/offsets")
    offsets.mkdir(parents=True)
    (offsets / "0").touch()

    refused = headrace("reset", "mine", "--yes")

    assert refused.status == 1
    assert "its topics are somewhere else. Give their address with --bootstrap-servers" in refused.errors
    assert offsets.exists()
    assert not Path(".headrace/topics.db").exists()
    assert headrace("reset", "mine", "--yes", "-b", "local:gone.db").status == 0
    assert not offsets.exists()


def test_reset_finds_the_state_by_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_STATE_DIR", str(folder / "state"))

    assert f"there is no state in '{folder}/state/nobody'" in headrace("reset", "nobody").errors


def test_a_setting_that_is_none_is_refused(application: Path) -> None:
    assert "expected NAME=VALUE, got 'x'" in headrace("run", "words:app", "--set", "x").errors
    assert "hush" not in headrace("run", "words:app", "--set", 'kafka:{"sasl.password":"hush"}').errors
    assert "there is no such setting" in headrace("run", "words:app", "--set", "master_=x").errors
    assert "setting 'master'" in headrace("run", "words:app", "--master", "nowhere").errors


def test_describe_takes_an_application_too(application: Path) -> None:
    assert "Sub-topology: 0" in headrace("describe", "words:app").output
