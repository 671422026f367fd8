"""A Kafka broker on your laptop: one node, one command, no Docker.

Its files are in one folder: `server.properties`, which every start writes, `data` and `broker.log`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import random
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self
from uuid import uuid4

from confluent_kafka import KafkaException

from headrace.brokers.kafka.connection import Connection
from headrace.dev.kafka_jars import VERSION, fetch_jars
from headrace.errors import ConfigError, HeadraceError
from headrace.spark.runtime.java import find_java

HOST = "127.0.0.1"
_READY_SECONDS, _STOP_SECONDS, _FORMAT_SECONDS = 120, 30, 120
_MARK = "# Written by `headrace dev broker` at every start."
_JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",  # otherwise every start lists all settings
)
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    # There is one node, so nothing is replicated.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # There is one user: start quickly, and do not let groups wait for more members.
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # Without this, records with the timestamps of an example would be deleted after five minutes.
    "log.retention.ms": "-1",
}
_log = logging.getLogger(__name__)


class DevBroker:
    """A Kafka broker in its own process, which only this machine can reach. A context manager.

    `settings` go into its `server.properties`. `listeners` adds listeners by name and port; `PLAINTEXT` always listens
    at `port`. The broker ends when this process ends, however it ends.
    """

    def __init__(
        self,
        folder: str | Path = ".headrace/kafka",
        port: int = 9092,
        *,
        settings: Mapping[str, str] | None = None,
        listeners: Mapping[str, int] | None = None,
    ) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.port = port
        self.address = f"localhost:{port}"
        self.log_file = self.folder / "broker.log"
        self._settings = dict(settings or {})
        self._listeners = {"PLAINTEXT": port, **(listeners or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._begin = 0  # where this start begins in the log

    @property
    def pid(self) -> int | None:
        """The id of the broker's process; None if it does not run."""
        return self._process.pid if self.running and self._process is not None else None

    @property
    def running(self) -> bool:
        """Whether the broker's process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the broker and wait until it answers; download its jars if they are missing."""
        if self.running:
            return
        self._check_folder()
        for port in self._listeners.values():
            _check_port(port)
        java = find_java() / "bin" / "java"
        command = [str(java), *_JAVA_OPTIONS, "-cp", str(fetch_jars(java) / "*")]
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.log_file, "ab") as log:
            self._lock(log.fileno())
            self._begin = log.tell()
            properties = self._write_properties()
            if not (self.folder / "data" / "meta.properties").exists():
                self._format(command, properties, log.fileno())
            self._process = subprocess.Popen(
                [*command, "kafka.Kafka", str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches only this process, which then stops the broker
            )
        self._watchdog = _watch(self._process.pid)
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        _log.info("Kafka %s at %s, process %d, log in %s", VERSION, self.address, self._process.pid, self.log_file)

    def wait(self) -> None:
        """Wait until the broker ends; raise an error if `stop` did not end it."""
        if self._process is None:
            return
        status = self._process.wait()
        raise HeadraceError(f"the broker at {self.address} ended with status {status}: {self._first_error()}")

    def stop(self) -> None:
        """Stop the broker in order; kill it if that takes too long."""
        if self._process is None:
            return
        self._forget_watchdog()
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Kill the broker without warning, as a crash would."""
        if self._process is None:
            return
        self._forget_watchdog()
        self._process.kill()
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        """Stop the broker if it runs, and start it again with its data."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _check_folder(self) -> None:
        """Raise if the folder holds files that no development broker has written."""
        if not self.folder.exists() or (self.folder.is_dir() and not set(self.folder.iterdir()) - {self.log_file}):
            return
        try:
            ours = (self.folder / "server.properties").read_text(encoding="utf-8").startswith(_MARK)
        except OSError:
            ours = False
        if not ours:
            raise ConfigError(
                f"'{self.folder}' holds files that `headrace dev broker` did not write. "
                "Give an empty folder with --folder"
            )

    def _lock(self, log: int) -> None:
        """Lock the folder by its log, which the broker inherits: two brokers would ruin a shared folder."""
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another broker uses '{self.folder}'. Give another folder with --folder") from None

    def _write_properties(self) -> Path:
        # Only the broker itself connects to its controller, so every start can take any free port.
        listeners = {**self._listeners, "CONTROLLER": free_port()}
        addresses = {name: f"{name}://{HOST}:{port}" for name, port in listeners.items()}
        advertised = [address for name, address in addresses.items() if name != "CONTROLLER"]
        settings = {
            **_SETTINGS,
            "log.dirs": (self.folder / "data").as_posix(),
            "listeners": ",".join(addresses.values()),
            "advertised.listeners": ",".join(advertised),
            "controller.quorum.voters": f"1@{HOST}:{listeners['CONTROLLER']}",
            **self._settings,
        }
        settings.setdefault("listener.security.protocol.map", ",".join(f"{name}:PLAINTEXT" for name in listeners))
        # Properties files escape characters as JSON does.
        lines = [f"{name}={json.dumps(value)[1:-1]}" for name, value in settings.items()]
        file = self.folder / "server.properties"
        file.write_text("\n".join([_MARK, *lines, ""]), encoding="ascii")
        return file

    def _format(self, command: list[str], properties: Path, log: int) -> None:
        cluster = uuid4().hex[:22]
        format_storage = ["kafka.tools.StorageTool", "format", "--config", str(properties), "--cluster-id", cluster]
        done = subprocess.run(
            [*command, *format_storage],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=_FORMAT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise HeadraceError(f"cannot set up a broker in '{self.folder}': {self._first_error()}")

    def _wait_until_ready(self) -> None:
        admin = Connection(f"{HOST}:{self.port}").admin(**{"reconnect.backoff.max.ms": 200})
        end = time.monotonic() + _READY_SECONDS
        while self.running:
            with suppress(KafkaException):
                if admin.list_topics(timeout=1).brokers:
                    return
            if time.monotonic() > end:
                raise HeadraceError(
                    f"the broker did not answer at {self.address} within {_READY_SECONDS} s: {self._first_error()}"
                )
        raise HeadraceError(f"the broker in '{self.folder}' did not start: {self._first_error()}")

    def _first_error(self) -> str:
        """Return the first error in the log since this start; errors of earlier starts are in it too."""
        with open(self.log_file, "rb") as log:
            log.seek(self._begin)
            lines = log.read().decode(errors="replace").splitlines()
        marks = (" ERROR ", "Exception")
        said = next((line.strip() for line in lines if any(mark in line for mark in marks)), "")
        return f"{said} (see {self.log_file})" if said else f"see {self.log_file}"

    def _forget_watchdog(self) -> None:
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.kill()
            watchdog.communicate()


def free_port() -> int:
    """Return a port that nobody uses.

    It is outside the range that the system gives to clients: while a broker is down, a client that tries to reach it
    could otherwise be given the broker's own port.
    """
    while True:
        port = random.randrange(20_000, 30_000)
        if _is_free(port):
            return port


def _check_port(port: int) -> None:
    try:
        _bind(port)
    except PermissionError:
        reason = "may not be used: ports below 1024 usually need root"
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        reason = "is in use by another program" if in_use else f"cannot be used: {error.strerror}"
    else:
        return
    raise ConfigError(f"port {port} {reason}. Give another one with --port")


def _is_free(port: int) -> bool:
    try:
        _bind(port)
    except OSError:
        return False
    return True


def _bind(port: int) -> None:
    """Listen on a port for a moment."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # earlier connections may linger
        tried.bind((HOST, port))


def _watch(pid: int) -> subprocess.Popen[bytes]:
    """Start a watchdog that stops a process when this one ends, which breaks the pipe between the two."""
    script = 'read -r _; kill "$0" && sleep "$1" && kill -9 "$0" 2>/dev/null'
    return subprocess.Popen(
        ["sh", "-c", script, str(pid), str(_STOP_SECONDS)], stdin=subprocess.PIPE, start_new_session=True
    )
