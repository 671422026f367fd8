"""A Kafka broker on the laptop: one node, one command, no Docker.

What it keeps is in one folder: `server.properties`, written at every start, `data`, and `broker.log`.
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
from types import TracebackType
from typing import Self
from uuid import uuid4

from headrace.dev.kafka_jars import VERSION, fetch_jars
from headrace.errors import ConfigError, HeadraceError

HOST = "127.0.0.1"
_READY_SECONDS, _STOP_SECONDS, _FORMAT_SECONDS = 120, 30, 120
_MARK = "# Written by `headrace dev broker` at every start."
_JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",  # else every start lists all settings
)
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    # One node: nothing has a second copy.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # One user: quick to start, and groups that need not wait for more members.
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # Records with the timestamps of an example would be deleted after five minutes.
    "log.retention.ms": "-1",
}
_log = logging.getLogger(__name__)


class DevBroker:
    """A Kafka broker in its own process, which only this machine reaches. A context manager.

    `settings` go into its `server.properties`. `listeners` are further ones, by name and port; `PLAINTEXT` is always
    there, at `port`. When this process ends, in whatever way, so does the broker.
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
        self._begin = 0  # of this start, in the log

    @property
    def pid(self) -> int | None:
        """The id of the broker's process, None when there is none."""
        return self._process.pid if self.running and self._process is not None else None

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the broker and wait until it answers; the first time, fetch its jars."""
        from headrace.spark.runtime.java import find_java

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
                start_new_session=True,  # Ctrl-C is for this process, which then stops it
            )
        self._watchdog = _watch(self._process.pid)
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        _log.info("Kafka %s at %s, process %d, log in %s", VERSION, self.address, self._process.pid, self.log_file)

    def wait(self) -> None:
        """Wait until the broker ends; raise when nobody stopped it."""
        if self._process is None:
            return
        status = self._process.wait()
        raise HeadraceError(f"the broker at {self.address} ended with status {status}: {self._last_words()}")

    def stop(self) -> None:
        """Stop the broker as it should be, or kill it when it takes too long."""
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
        """Kill the broker without a warning, as a crash would."""
        if self._process is None:
            return
        self._forget_watchdog()
        self._process.kill()
        self._process.wait()
        self._process = None

    def restart(self) -> None:
        """Stop the broker if it runs, and start it on what it has kept."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _check_folder(self) -> None:
        """Raise when the folder holds something that is not a dev broker's."""
        if not self.folder.exists() or (self.folder.is_dir() and not set(self.folder.iterdir()) - {self.log_file}):
            return
        try:
            ours = (self.folder / "server.properties").read_text(encoding="utf-8").startswith(_MARK)
        except OSError:
            ours = False
        if not ours:
            raise ConfigError(
                f"expected a folder that is empty or a dev broker's, got '{self.folder}', which holds something else"
            )

    def _lock(self, log: int) -> None:
        """Lock the folder by its log, which the broker inherits: two brokers in one folder would ruin it."""
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another broker uses '{self.folder}'. Give another folder with --folder") from None

    def _write_properties(self) -> Path:
        # The controller is reached by its broker only, so any port will do, another one at every start.
        listeners = {**self._listeners, "CONTROLLER": free_port()}
        places = {name: f"{name}://{HOST}:{port}" for name, port in listeners.items()}
        advertised = [place for name, place in places.items() if name != "CONTROLLER"]
        settings = {
            **_SETTINGS,
            "log.dirs": (self.folder / "data").as_posix(),
            "listeners": ",".join(places.values()),
            "advertised.listeners": ",".join(advertised),
            "controller.quorum.voters": f"1@{HOST}:{listeners['CONTROLLER']}",
            **self._settings,
        }
        settings.setdefault("listener.security.protocol.map", ",".join(f"{name}:PLAINTEXT" for name in listeners))
        # Java's escapes are those of JSON.
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
            raise HeadraceError(f"cannot set up a broker in '{self.folder}': {self._last_words()}")

    def _wait_until_ready(self) -> None:
        from confluent_kafka import KafkaException

        from headrace.brokers.kafka.connection import Connection

        admin = Connection(f"{HOST}:{self.port}").admin(**{"reconnect.backoff.max.ms": 200})
        end = time.monotonic() + _READY_SECONDS
        while self.running:
            with suppress(KafkaException):
                if admin.list_topics(timeout=1).brokers:
                    return
            if time.monotonic() > end:
                raise HeadraceError(
                    f"the broker did not answer at {self.address} within {_READY_SECONDS} s: {self._last_words()}"
                )
        raise HeadraceError(f"the broker in '{self.folder}' did not start: {self._last_words()}")

    def _last_words(self) -> str:
        """Return what the log has to say about a failure since the start: errors of earlier runs are in it, too."""
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

    Not one of those that the system gives to clients: while a broker is down, a client that tries to reach it could
    be given the broker's own port.
    """
    while True:
        port = random.randrange(20_000, 30_000)
        if _is_free(port):
            return port


def _check_port(port: int) -> None:
    try:
        _bind(port)
    except PermissionError:
        reason = "may not be used: ports below 1024 mostly need root"
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
    """Listen at a port for a moment."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may linger
        tried.bind((HOST, port))


def _watch(pid: int) -> subprocess.Popen[bytes]:
    """Have a process stopped when this one is gone: the pipe between this one and the watchdog then breaks."""
    script = 'read -r _; kill "$0" && sleep "$1" && kill -9 "$0" 2>/dev/null'
    return subprocess.Popen(
        ["sh", "-c", script, str(pid), str(_STOP_SECONDS)], stdin=subprocess.PIPE, start_new_session=True
    )
