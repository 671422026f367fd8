"""What the workers that Spark's daemon forks print when they die."""

import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.spark.runtime.java import worker_variables
from headrace.spark.runtime.worker_daemon import print_exception
from tests.spark.applications import wait_for

Daemon = subprocess.Popen[bytes]


@pytest.mark.parametrize(
    ("error", "printed"), [(BrokenPipeError(), ""), (ConnectionResetError(), ""), (ValueError("no"), "ValueError: no")]
)
def test_all_but_a_socket_that_spark_has_closed_is_printed(
    error: Exception, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise error
    except Exception:
        print_exception()

    assert capsys.readouterr().err.strip().rpartition("\n")[2] == printed


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """Start the daemon as Spark does."""
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    variables = {"PYTHON_UNIX_DOMAIN_ENABLED": "true", "PYTHON_WORKER_FACTORY_SOCK_DIR": "."} | worker_variables()
    command = [variables["PYSPARK_PYTHON"], "-m", "pyspark.daemon", "pyspark.worker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | variables, stdin=pipe, stdout=pipe, stderr=pipe) as started:
        yield started
        started.kill()


def fork_worker(daemon: Daemon) -> tuple[socket.socket, int]:
    """Return the socket and the process id of a new worker."""
    assert daemon.stdout is not None
    (length,) = struct.unpack("!i", daemon.stdout.read(4))
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(daemon.stdout.read(length))
    return connected, struct.unpack("!i", connected.recv(4))[0]


def errors_at_the_end(daemon: Daemon, worker: int) -> str:
    """Wait for a worker to end, end the daemon, and return what they have printed."""
    wait_for(lambda: not is_there(worker), "the worker's end")
    return daemon.communicate()[1].decode()


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_is_quiet_when_spark_has_closed_its_socket(daemon: Daemon) -> None:
    connected, worker = fork_worker(daemon)

    connected.close()

    assert errors_at_the_end(daemon, worker) == ""
