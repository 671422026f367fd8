"""`headrace/dev`: `DevBroker` and `headrace dev broker` start, keep their topics, and end."""

# Tests: headrace.dev.kafka_broker, headrace.dev.kafka_jars, headrace.cli.dev

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.brokers import connect
from headrace.dev.kafka_broker import DevBroker, free_port
from headrace.dev.kafka_jars import JARS, fetch_jars, jars_folder
from headrace.errors import ConfigError, HeadraceError
from tests.cli.running import headrace, started
from tests.kafka.naming import unique

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

STARTER = """
import sys
from headrace.dev.kafka_broker import DevBroker
broker = DevBroker(sys.argv[1], int(sys.argv[2]))
broker.start()
print(broker.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[DevBroker]:
    """Return a broker that has not been started, for a test that does things to it."""
    broker = DevBroker(tmp_path / "kafka", free_port(), settings={"broker.session.timeout.ms": "4000"})
    yield broker
    broker.stop()


def wait_for_end(pid: int) -> None:
    """Wait until there is no process of an id, whoever its parent is."""
    subprocess.run(["tail", f"--pid={pid}", "-f", "/dev/null"], timeout=60, check=True)


def values(address: str) -> list[bytes | None]:
    with connect(address) as broker:
        return [record.value for record in broker.records("lines")]


def test_records_outlive_a_stop_and_a_crash(own: DevBroker) -> None:
    own.start()
    with connect(own.address) as broker:
        broker.create_topic("lines")
        broker.produce("lines", [(b"k", b"first")])
    own.restart()
    with connect(own.address) as broker:
        broker.produce("lines", [(b"k", b"second")])
    first = own.pid
    own.kill()
    assert not own.running
    own.start()

    assert own.pid != first
    assert values(own.address) == [b"first", b"second"]
    own.stop()
    assert own.pid is None
    assert b"Kafka Server started" in own.log_file.read_bytes()


def test_only_this_machine_reaches_it(kafka: DevBroker) -> None:
    properties = (kafka.folder / "server.properties").read_text()
    listeners = next(line for line in properties.splitlines() if line.startswith("listeners="))

    assert all("://127.0.0.1:" in listener for listener in listeners.removeprefix("listeners=").split(","))


def test_a_port_in_use_is_told(kafka: DevBroker, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"port {kafka.port} is in use by another program"):
        DevBroker(tmp_path / "kafka", kafka.port).start()
    assert not (tmp_path / "kafka").exists()


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EACCES, "may not be used: ports below 1024 usually need root"),
        (errno.EADDRNOTAVAIL, "cannot be used: Ca"),
    ],
)
def test_a_port_without_permission_is_not_reported_as_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    def bind(tried: socket.socket, address: object) -> None:
        raise OSError(number, os.strerror(number))  # the system's, for a user who is not root

    monkeypatch.setattr(socket.socket, "bind", bind)

    with pytest.raises(ConfigError, match=f"^port 92 {reason}"):
        DevBroker(tmp_path / "kafka", 92).start()


def test_a_folder_in_use_is_told(kafka: DevBroker) -> None:
    with pytest.raises(ConfigError, match=f"another broker uses '{kafka.folder}'"):
        DevBroker(kafka.folder, free_port()).start()

    with connect(kafka.address) as broker:
        broker.create_topic(unique("lines"))  # it has not been disturbed


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=another")

    with pytest.raises(ConfigError, match=r"'.*' holds files that `headrace dev broker` did not write"):
        DevBroker(tmp_path, free_port()).start()
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


def test_a_setting_that_kafka_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(HeadraceError, match=r"cannot set up a broker in .*Invalid value many for .*num\.io\.threads"):
        DevBroker(tmp_path / "kafka", free_port(), settings={"num.io.threads": "many"}).start()


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path / "kafka"), str(free_port())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())

    starter.kill()
    starter.communicate()

    wait_for_end(pid)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_the_command_runs_a_broker_until_it_is_stopped(tmp_path: Path, ending: signal.Signals) -> None:
    port = free_port()
    running = started("dev", "broker", "--port", str(port), "--folder", str(tmp_path / "kafka"))
    assert running.stdout is not None
    said = [running.stdout.readline() for _ in range(5)]
    assert said[0].startswith(f"Kafka 4.3.1 is running at localhost:{port}, with its topics in '{tmp_path}/kafka'.")
    assert said[2] == f'  StreamsConfig(..., bootstrap_servers="localhost:{port}")\n'

    assert headrace("topics", "create", "lines", "-b", f"localhost:{port}").status == 0
    running.send_signal(ending)

    assert running.communicate() == (f"stopped Kafka at localhost:{port}\n", "")
    assert running.returncode == 0


def test_the_command_tells_when_its_broker_has_died(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "broker.log").write_text("[main] ERROR kafka.Kafka - of an earlier run\n")
    running = started("dev", "broker", "--port", str(free_port()), "--folder", str(tmp_path / "kafka"))
    assert running.stdout is not None
    running.stdout.readline()
    found = subprocess.run(["pgrep", "-P", str(running.pid), "-f", "kafka.Kafka"], capture_output=True, check=True)
    os.kill(int(found.stdout), signal.SIGKILL)

    _, errors = running.communicate()

    assert (running.returncode, errors.count("\n")) == (1, 1)
    assert "ended with status -9" in errors
    assert "of an earlier run" not in errors


# -- jars: the program that fetches them is a script of the test -------------------------------------------------------


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the `mvn` that is called, and have an empty cache."""
    script = tmp_path / "bin" / "mvn"
    script.parent.mkdir()
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return script


def write_script(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def test_jars_are_fetched_once(maven: Path) -> None:
    names = " ".join(f"{name}-{version}.jar" for _, name, version in JARS)
    write_script(maven, f"mkdir jars && cd jars && touch {names}", f"echo fetched >> {maven.parent}/calls")

    assert fetch_jars(Path("/java/bin/java")) == fetch_jars(Path("/java/bin/java")) == jars_folder()

    assert (maven.parent / "calls").read_text() == "fetched\n"
    assert sorted(path.name for path in jars_folder().iterdir()) == sorted(names.split())
    assert [path.name for path in jars_folder().parent.iterdir()] == [jars_folder().name]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["echo '[INFO] trying'", "echo '[ERROR] Unknown host'", "exit 1"], r"\[ERROR\] Unknown host"),
        (["exit 0"], "kafka_2.13, kafka-tools, slf4j-simple are missing"),
    ],
)
def test_without_a_network_there_is_no_half_a_broker(maven: Path, lines: list[str], reason: str) -> None:
    write_script(maven, *lines)

    with pytest.raises(
        HeadraceError, match=f"cannot download the jars of Kafka .* with mvn: {reason}. The first start"
    ):
        fetch_jars(Path("/java/bin/java"))
    assert list(jars_folder().parent.iterdir()) == []
