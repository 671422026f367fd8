"""Durations: a timedelta, or whole milliseconds."""

from __future__ import annotations

from datetime import timedelta

from headrace.errors import TopologyError


def milliseconds(duration: int | timedelta, what: str, *, at_least: int | None = 0) -> int:
    """Turn a duration into milliseconds.

    >>> milliseconds(timedelta(seconds=2), "grace")
    2000
    """
    if isinstance(duration, timedelta):
        value = duration // timedelta(milliseconds=1)
    elif isinstance(duration, int) and not isinstance(duration, bool):
        value = duration
    else:
        raise TopologyError(
            f"{what}: expected a timedelta or whole milliseconds, got {type(duration).__name__} ({duration!r})"
        )
    if at_least is not None and value < at_least:
        raise TopologyError(f"{what}: expected at least {at_least} ms, got {value} ms")
    return value
