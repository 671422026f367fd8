"""How commands start and end: errors, interruptions, closed pipes.

Tests: headrace.__main__, headrace.cli.app, headrace.cli.reporting
"""

import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import headrace as package
from tests.cli.running import COMMAND, Outcome, headrace, run, started, topics

MODULE = [sys.executable, "-m", "headrace"]
ERROR = "error: there is no module 'nowhere' in '{}' or among the installed packages\n"


@pytest.mark.parametrize("command", [COMMAND, MODULE], ids=["headrace", "python -m headrace"])
def test_both_ways_to_start_are_the_same(command: list[str], folder: Path) -> None:
    assert run("--version", command=command) == Outcome(0, f"{version('headrace')}\n", "")
    assert run("describe", "nowhere:app", command=command) == Outcome(1, "", ERROR.format(folder))
    assert "Usage: headrace [OPTIONS] COMMAND" in run("--help", command=command).output


def test_help_names_the_commands() -> None:
    printed = headrace("--help").output

    assert [name for name in ("describe", "topics", "produce", "consume") if name not in printed] == []


def test_without_arguments_there_is_help() -> None:
    assert "Usage: headrace" in headrace().output
    assert "Usage: headrace topics" in headrace("topics").output


def test_a_misspelt_command_is_a_usage_error() -> None:
    outcome = headrace("topics", "lst")

    assert outcome.status == 2
    assert "Did you mean 'list'?" in outcome.errors


@pytest.mark.parametrize(
    "arguments", [["--traceback", "describe", "nowhere:app"], ["describe", "nowhere:app", "--traceback"]]
)
def test_a_traceback_is_shown_when_asked_for(arguments: list[str], folder: Path) -> None:
    outcome = headrace(*arguments)

    assert outcome.status == 1
    assert "Traceback (most recent call last)" in outcome.errors
    assert "No module named 'nowhere'" in outcome.errors
    assert outcome.errors.endswith(ERROR.format(folder))


def test_an_error_of_several_lines_is_one_line() -> None:
    Path("multi_line_error.py").write_text("raise ValueError('one\\ntwo')")

    assert headrace("describe", "multi_line_error:app").errors.count("\n") == 1


def test_an_unexpected_error_is_not_hidden() -> None:
    code = ["class Broken:", "    def __getattr__(self, name):", "        raise OSError(name)", "broken = Broken()"]
    Path("broken_app.py").write_text("\n".join(code))

    with pytest.raises(OSError, match="topology"):
        headrace("describe", "broken_app:broken.topology")


def fill(count: int) -> None:
    with topics() as broker:
        broker.create_topic("lines")
        broker.produce("lines", [(b"k", b"%d" % number) for number in range(count)])


def test_ctrl_c_ends_a_follower_quietly() -> None:
    fill(1)
    consumer = started("consume", "lines", "--follow", "--from-beginning")
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "k\t0\n"

    consumer.send_signal(signal.SIGINT)

    assert consumer.communicate() == ("", "")
    assert consumer.returncode == 130


def test_ctrl_c_ends_a_producer_quietly_and_keeps_its_lines() -> None:
    fill(0)
    producer = started("produce", "lines")
    assert producer.stdin is not None
    producer.stdin.write("hello\n")
    producer.stdin.flush()
    with topics() as broker:
        assert next(broker.records("lines", until_end=False)).value == b"hello"

        producer.send_signal(signal.SIGINT)

        assert producer.communicate() == ("", "")
        assert producer.returncode == 130
        assert broker.end_offsets("lines") == {0: 1}


@pytest.mark.parametrize("count", [3, 50_000], ids=["less than a buffer", "more than a buffer"])
def test_a_closed_pipe_ends_quietly(count: int) -> None:
    fill(count)
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run([*COMMAND, "consume", "lines"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")


def test_head_ends_a_command_quietly() -> None:
    fill(50_000)
    script = f"'{COMMAND[0]}' consume lines | head -n 2; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("k\t0\nk\t1\n0\n", "")


def test_nothing_heavy_is_imported_for_help() -> None:
    code = f"""
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in {{"pyspark", "pandas", "numpy", "pyarrow", "confluent_kafka", "fastapi", "uvicorn"}}:
            print("imported", name)
sys.meta_path.insert(0, Watch())
sys.path.insert(0, {str(Path(package.__file__).parents[1])!r})
sys.argv = ["headrace", "--help"]
from headrace.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: headrace" in done.stdout
    assert "imported" not in done.stdout
