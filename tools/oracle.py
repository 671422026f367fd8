"""The conformance oracle as a process: it takes scenarios and returns the results of Kafka Streams, in order."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CONFORMANCE = Path(__file__).parents[1] / "conformance"

Scenario = dict[str, Any]


class OracleError(Exception):
    """The oracle cannot be built, or it has stopped."""


def build_oracle() -> None:
    """Compile the oracle unless its classes are newer than its sources."""
    _require("java", "Java 17 or later")
    compiled = CONFORMANCE / "target" / "classes" / "Oracle.class"
    sources = [CONFORMANCE / "pom.xml", *CONFORMANCE.glob("src/main/java/*.java")]
    libraries = CONFORMANCE / "target" / "lib"
    if libraries.is_dir() and compiled.exists():
        built = compiled.stat().st_mtime
        if all(source.stat().st_mtime <= built for source in sources):
            return
    _require("mvn", "Maven")
    print("building the oracle with Maven", flush=True)
    if subprocess.run(["mvn", "-B", "-q", "clean", "package"], cwd=CONFORMANCE, check=False).returncode:
        raise OracleError("Maven could not build the oracle in conformance/. Its output is above")


def _require(command: str, what: str) -> None:
    if shutil.which(command) is None:
        raise OracleError(
            f"the fuzzer runs the real Kafka Streams and needs {what}, but there is no {command} on the PATH"
        )


class Oracle:
    """A running oracle; a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [CONFORMANCE / "run.sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", bufsize=1
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, scenario: Scenario) -> Scenario:
        """Run a scenario; the answer has an "error" if Kafka Streams refuses it."""
        self._send(scenario)
        return self._receive()

    def answers(self, scenarios: Iterable[Scenario]) -> Iterator[Scenario]:
        """Run many scenarios; the oracle works on the next ones while the caller looks at an answer."""
        pending = list(scenarios)
        # A thread fills the pipe, which is small: otherwise both sides could wait for each other.
        writer = threading.Thread(target=self._send_all, args=(pending,), daemon=True)
        writer.start()
        for _ in pending:
            yield self._receive()
        writer.join()

    def _send_all(self, scenarios: list[Scenario]) -> None:
        for scenario in scenarios:
            try:
                self._send(scenario)
            except (OSError, ValueError):
                return  # the oracle is gone; `_receive` reports it

    def _send(self, scenario: Scenario) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(scenario, ensure_ascii=False) + "\n")

    def _receive(self) -> Scenario:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OracleError(f"the oracle has stopped with exit code {self._process.wait()}")
        answer: Scenario = json.loads(line)
        return answer
