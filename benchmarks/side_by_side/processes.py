"""A peer's processes: start them together, watch their memory, and end all of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_SAMPLE_SECONDS, _LOOK_AROUND_SECONDS, _STOP_SECONDS = 0.2, 2.0, 15.0
_FAILURE = re.compile(r"(Caused by: )?(\w+\.)*\w*(Error|Exception)\b")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class PeerError(Exception):
    """A peer cannot be set up, has failed, or does not finish."""


class Processes:
    """Programs, and everything that they start. Each has its own session, by which its processes are found."""

    def __init__(self, commands: Sequence[Sequence[str]], variables: Mapping[str, str], log: Path) -> None:
        self._log = log
        self._peak = 0
        self._sampling = threading.Event()
        self._programs: list[subprocess.Popen[bytes]] = []
        self.started = time.perf_counter()
        try:
            with open(log, "ab") as output:
                for command in commands:
                    self._programs.append(
                        subprocess.Popen(
                            command,
                            env={**os.environ, **variables},
                            stdin=subprocess.DEVNULL,
                            stdout=output,
                            stderr=subprocess.STDOUT,
                            start_new_session=True,
                        )
                    )
        except BaseException:
            self.stop()
            raise
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def check(self) -> None:
        """Raise if one of them has ended."""
        for program in self._programs:
            if program.poll() is not None:
                raise PeerError(f"the peer ended with status {program.returncode}: {self.last_words()}")

    def last_words(self) -> str:
        """Return the line of the log that most likely says what went wrong."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line.strip() for line in lines if line.strip()]
        told = [line for line in said if _FAILURE.match(line)]
        return (told[:1] or said[-1:] or ["its log is empty"])[0][:300]

    @property
    def peak_bytes(self) -> int:
        """The largest resident memory of all of them together."""
        return self._peak

    def stop(self) -> None:
        """End them, and all processes that they have started."""
        self._sampling.set()
        for program in self._programs:
            with suppress(ProcessLookupError):
                program.terminate()
        end = time.monotonic() + _STOP_SECONDS
        for program in self._programs:
            with suppress(subprocess.TimeoutExpired):
                program.wait(max(0.1, end - time.monotonic()))
        for pid in self._members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for program in self._programs:
            program.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _sample(self) -> None:
        members: list[int] = []
        looked = 0.0
        while not self._sampling.wait(_SAMPLE_SECONDS):
            now = time.monotonic()
            if now - looked > _LOOK_AROUND_SECONDS:
                members, looked = self._members(), now
            self._peak = max(self._peak, sum(map(_resident_bytes, members)))

    def _members(self) -> list[int]:
        """Return the processes of the sessions."""
        sessions = {program.pid for program in self._programs}
        return [pid for pid in _all_processes() if _session(pid) in sessions]


def _all_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:  # not Linux, so memory is not known
        return []


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0
