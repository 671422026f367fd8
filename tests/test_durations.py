"""Durations: a timedelta, or whole milliseconds. The calls that take them have their own tests of wrong durations."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import TopologyError
from headrace.durations import milliseconds


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(0, 0), (1500, 1500), (timedelta(seconds=2), 2000), (timedelta(microseconds=1999), 1)],
)
def test_a_duration_is_whole_milliseconds(duration: Any, expected: int) -> None:
    assert milliseconds(duration, "grace") == expected


@pytest.mark.parametrize("duration", [1.5, "10", True, None])
def test_other_types_are_refused(duration: Any) -> None:
    with pytest.raises(TopologyError, match=r"^grace: expected a timedelta or whole milliseconds, got "):
        milliseconds(duration, "grace")


def test_a_duration_has_a_least_value() -> None:
    with pytest.raises(TopologyError, match=r"^size: expected at least 1 ms, got 0 ms$"):
        milliseconds(0, "size", at_least=1)
    assert milliseconds(-5, "before", at_least=None) == -5
