"""The output on a terminal: tables, colours and questions.

Tests: headrace.cli.output
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, topics

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(*arguments: str, typed: str = "") -> tuple[int, str]:
    """Run the real command on a terminal; return its exit status and what can be seen."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    return process.wait(), seen.decode().replace("\r\n", "\n")


@pytest.fixture(autouse=True)
def lines(folder: Path) -> None:
    with topics() as broker:
        broker.create_topic("lines", 2, retention_ms=1000)
        broker.create_topic("prices-by-symbol", compact=True)
        broker.produce("lines", [(b"k", b"v", 1000)], 0)


def test_topics_are_a_table() -> None:
    status, seen = on_terminal("topics", "list")

    assert status == 0
    assert [line.split() for line in COLOURS.sub("", seen).splitlines()] == [
        ["topic", "partitions", "cleanup", "retention", "(ms)"],
        ["lines", "2", "delete", "1000"],
        ["prices-by-symbol", "1", "compact", "-"],
    ]
    assert COLOURS.search(seen)


def test_partitions_are_a_table() -> None:
    _, seen = on_terminal("topics", "describe", "lines")

    assert [line.split() for line in COLOURS.sub("", seen).splitlines()] == [
        ["topic", "partition", "end", "offset"],
        ["lines", "0", "1"],
        ["lines", "1", "0"],
    ]


def test_records_have_colours() -> None:
    _, seen = on_terminal("consume", "lines")

    assert COLOURS.search(seen)
    assert COLOURS.sub("", seen).split() == ["k", "v"]


def test_a_value_cannot_command_the_terminal() -> None:
    with topics() as broker:
        broker.create_topic("evil")
        broker.produce("evil", [(None, b"\x1b]0;title\x07[red]bold[/red]\x1b[2J")])

    _, seen = on_terminal("consume", "evil", "--print", "value")

    assert "\x1b[2J" not in seen
    assert "\x07" not in seen
    assert COLOURS.sub("", seen) == "\\x1b]0;title\\x07[red]bold[/red]\\x1b[2J\n"


def test_errors_are_red_and_one_line() -> None:
    status, seen = on_terminal("consume", "nope" * 60)

    assert status == 1
    assert seen.startswith("\x1b[31merror: there is no topic 'nope")
    assert seen.count("\n") == 1


def test_lines_are_typed_until_ctrl_d() -> None:
    status, seen = on_terminal("produce", "lines", "--partition", "1", typed="hello\nworld\n\x04")

    assert status == 0
    assert "Type one record per line. Press Ctrl-D to finish." in seen
    assert "2 records to topic 'lines'" in seen
    with topics() as broker:
        assert [record.value for record in broker.range("lines", 1, 0, 9)] == [b"hello", b"world"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "status", "left"), [("y\n", 0, ["prices-by-symbol"]), ("n\n", 1, ["lines", "prices-by-symbol"])]
)
def test_delete_asks_first(answer: str, status: int, left: list[str]) -> None:
    ended, seen = on_terminal("topics", "delete", "lines", typed=answer)

    assert ended == status
    assert "Delete 'lines' and all records? [y/N]" in seen
    with topics() as broker:
        assert list(broker.topics()) == left


def test_delete_does_not_ask_when_told() -> None:
    status, seen = on_terminal("topics", "delete", "lines", "--yes")

    assert (status, seen) == (0, "deleted topic 'lines'\n")
