"""Failures: an exception in a task becomes messages that end the batch, so that it reaches the user unchanged.

Tests: `tests/engine/test_in_process.py`.
"""

from __future__ import annotations

from headrace.engine.application import Application
from headrace.engine.messages import FOR_DRIVER, Failure, Routed
from headrace.errors import HeadraceError, TaskError

BEFORE_ALL_LEVELS = -1
"""The level of tasks without state that read topics."""


def failure_messages(application: Application, level: int, error: Exception) -> list[Routed]:
    """Return messages that tell the driver, and all tasks of later levels, that a task of a level has failed.

    The later tasks lack the records that the failed task would have sent. So they must not write their outputs.
    """
    failure = Failure.of(_as_ours(error))
    later = [task for task, (unit, _) in application.units.items() if unit.stateful and unit.level > level]
    return [(to, failure) for to in (FOR_DRIVER, *later)]


def _as_ours(error: Exception) -> HeadraceError:
    if isinstance(error, HeadraceError):
        return error
    wrapped = TaskError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
