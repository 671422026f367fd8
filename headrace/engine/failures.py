"""What becomes of an exception in a task: messages that end the batch, so that it reaches the user as it is.

Tests: `tests/engine/test_in_process.py`.
"""

from __future__ import annotations

from headrace.engine.application import Application
from headrace.engine.messages import FOR_DRIVER, Failure, Routed
from headrace.errors import HeadraceError, TaskError

BEFORE_ALL_LEVELS = -1
"""The level of tasks without state that read topics."""


def failure_messages(application: Application, level: int, error: Exception) -> list[Routed]:
    """Tell the driver that a task of a level has failed, and all tasks of the levels after it.

    These lack the records that it would have sent them. If they wrote what they make of the rest, it would count.
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
