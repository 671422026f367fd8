"""Run `headrace`: inside this process, or as the command of users."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from headrace.brokers import Broker, connect
from headrace.cli import app

COMMAND = [str(Path(sys.executable).with_name("headrace"))]
ADDRESS = "local:.headrace/topics.db"


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    status: int
    output: str
    errors: str


def headrace(*arguments: str, given: str | bytes = "") -> Outcome:
    """Run a command inside this process."""
    result = CliRunner().invoke(app, arguments, input=given, prog_name="headrace")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def run(*arguments: str, given: str = "", command: list[str] = COMMAND) -> Outcome:
    """Run the real command."""
    done = subprocess.run([*command, *arguments], input=given, capture_output=True, text=True, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def started(*arguments: str) -> "subprocess.Popen[str]":
    """Start the real command, with its own process group: as a shell does."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        preexec_fn=_hear_interrupts,
    )


def _hear_interrupts() -> None:
    # A shell lets what it starts in the background ignore them, and so would the command.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def topics() -> Broker:
    """Open the topics of the working directory."""
    return connect(ADDRESS)
