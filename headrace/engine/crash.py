"""Named points at which a test can make the process die.

`HEADRACE_CRASH=POINT@N:FILE` kills the process that gets to POINT for the N-th time, counted in FILE over all
processes. `POINT@N,M:FILE` kills again at the M-th time. Separate several of these by blanks. `HEADRACE_CRASH_PID`
names another process to kill first, for example the application when a worker dies. Without these variables a point
costs only a look at an empty list.

Tests: `tests/spark/test_recovery.py`.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "after-read",
    "mid-task",
    "after-state-write",
    "before-commit",
    "after-commit",
    "before-commit-log",
)
"""In the order of a batch: in a reading task, in a task (twice), around the commit, before Spark notes the batch."""

POINTS_WHERE_TASKS_WRITE = ("after-send", "after-task-commit")
"""Around the transaction of a task that writes its outputs itself."""

_wanted = [wish.partition("@")[::2] for wish in os.environ.get("HEADRACE_CRASH", "").split()]


def crash_point(name: str) -> None:
    """Die here if a test wants it."""
    for point, when in _wanted:
        if point == name:
            _maybe_die(when)


def _maybe_die(when: str) -> None:
    numbers, _, file = when.partition(":")
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, b".")
        passed = os.fstat(handle).st_size
    finally:
        os.close(handle)
    if str(passed) in numbers.split(","):
        other = os.environ.get("HEADRACE_CRASH_PID")
        if other:
            os.kill(int(other), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
