"""The Java neighbours: Kafka Streams in a process of its own, and Kafka's console consumer."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.dev.kafka_jars import VERSION, fetch_jars
from headrace.spark.runtime.java import OLDEST, find_java, inspect_java

PROJECT = Path(__file__).parent / "java"
BUILT = Path(__file__).parents[2] / "build" / "neighbour"
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
_ANSWER_SECONDS, _END_SECONDS, _CONSUME_MS = 150, 20, 60_000


class NeighbourError(Exception):
    """The Java side cannot be built, or has failed."""


def is_built() -> bool:
    """Tell whether the classes are newer than their sources."""
    compiled = BUILT / "classes" / "Neighbour.class"
    sources = [PROJECT / "pom.xml", *PROJECT.glob("src/main/java/*.java")]
    if not compiled.exists() or not (BUILT / "lib").is_dir():
        return False
    return all(source.stat().st_mtime <= compiled.stat().st_mtime for source in sources)


def what_is_missing() -> str:
    """Say what it takes to build the neighbour and is not here; nothing when all is."""
    missing = [] if shutil.which("mvn") else ["Maven"]
    if _jdk() is None:
        missing.append(f"a JDK {OLDEST} or later")
    return " and ".join(missing)


def build() -> None:
    """Compile the neighbour unless that is done already."""
    if is_built():
        return
    done = subprocess.run(
        ["mvn", "--batch-mode", "--quiet", "process-classes"],
        cwd=PROJECT,
        env={**os.environ, "JAVA_HOME": str(_jdk())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NeighbourError(f"Maven could not build tests/kafka/java:\n{done.stdout}")
    (BUILT / "classes" / "Neighbour.class").touch()  # Maven leaves what has not changed


def _jdk() -> Path | None:
    """Return the home of the Java that Maven would take, if that can compile."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    java = inspect_java(Path(command)) if command else None
    return java.home if java and java.version >= OLDEST and shutil.which("javac", path=java.home / "bin") else None


class Neighbour:
    """A Java process that runs Kafka Streams applications, one after the other. A context manager."""

    def __init__(self, address: str, folder: Path) -> None:
        self._log = folder / "neighbour.log"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*_java(BUILT / "classes", BUILT / "lib" / "*"), "Neighbour", address, str(folder / "state")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._process.communicate(timeout=_END_SECONDS)  # it ends with its input
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def run(self, topology: str, application: str, **needs: Any) -> None:
        """Run an application until it has processed all that is there."""
        command = {"topology": topology, "application": application, **needs}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        answer = json.loads(self._answer() or b'{"error": "it has ended"}')
        if "error" in answer:
            raise NeighbourError(f"Kafka Streams: {answer['error']}\nIts log:\n{self._log.read_text()}")

    def _answer(self) -> bytes:
        out = self._process.stdout
        assert out is not None
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([out], [], [], _ANSWER_SECONDS)[0]:
                raise NeighbourError(f"no answer in {_ANSWER_SECONDS} s. Its log:\n{self._log.read_text()}")
            part = out.read(1 << 16)
            if not part:
                break
            line += part
        return line


def console_consumer(address: str, topic: str, count: int, **formats: str) -> list[str]:
    """Return the lines that Kafka's console consumer prints of so many committed records, sorted.

    `formats` are properties of its formatter, with `_` for `.`.
    """
    jars = fetch_jars(find_java() / "bin" / "java")
    streams = BUILT / "lib" / f"kafka-streams-{VERSION}.jar"  # for its deserializers
    command = [*_java(jars / "*", streams), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    command += ["--bootstrap-server", address, "--topic", topic, "--from-beginning"]
    command += ["--isolation-level", "read_committed"]
    command += ["--max-messages", str(count), "--timeout-ms", str(_CONSUME_MS)]
    for name, value in formats.items():
        command += ["--formatter-property", f"{name.replace('_', '.')}={value}"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode or len(done.stdout.splitlines()) != count:
        raise NeighbourError(f"the console consumer of '{topic}': {done.stdout}{done.stderr}")
    return sorted(done.stdout.splitlines())


def _java(*places: Path) -> list[str]:
    return [str(find_java() / "bin" / "java"), *_OPTIONS, "-cp", os.pathsep.join(map(str, places))]
