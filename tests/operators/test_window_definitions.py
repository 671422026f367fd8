"""Which windows can be defined, and which of them a record falls into."""

from datetime import timedelta
from typing import Any, cast

import pytest

from headrace import (
    HoppingWindows,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TopologyError,
    TumblingWindows,
    UnlimitedWindows,
    Window,
)

FOREVER = 2**63 - 1


# -- windows of a record ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("windows", "timestamp", "expected"),
    [
        (TumblingWindows(12), 21, [(12, 24)]),
        (TumblingWindows(12), 0, [(0, 12)]),
        (TumblingWindows(12), 11, [(0, 12)]),
        (TumblingWindows(12), 12, [(12, 24)]),
        (HoppingWindows(12, advance=5), 21, [(10, 22), (15, 27), (20, 32)]),
        (HoppingWindows(6, advance=5), 7, [(5, 11)]),
        (HoppingWindows(6, advance=5), 5, [(0, 6), (5, 11)]),
        (HoppingWindows(10, advance=10), 25, [(20, 30)]),
        (HoppingWindows(3, advance=1), 1, [(0, 3), (1, 4)]),
        (HoppingWindows(5000, advance=1000), 0, [(0, 5000)]),
        (UnlimitedWindows(), 0, [(0, FOREVER)]),
        (UnlimitedWindows(start=10), 10, [(10, FOREVER)]),
        (UnlimitedWindows(start=10), 11, [(10, FOREVER)]),
        (UnlimitedWindows(start=10), 9, []),
    ],
    ids=str,
)
def test_windows_of_a_record(windows: Any, timestamp: int, expected: list[tuple[int, int]]) -> None:
    assert windows.windows_for(timestamp) == [Window(start, end) for start, end in expected]


# -- what is given ----------------------------------------------------------------------------------------------------


def test_durations_are_milliseconds_or_timedeltas() -> None:
    assert TumblingWindows(timedelta(minutes=5), grace=timedelta(seconds=1)) == TumblingWindows(300_000, grace=1_000)
    assert HoppingWindows(timedelta(seconds=10), timedelta(seconds=5)) == HoppingWindows(10_000, advance=5_000)
    assert SlidingWindows(timedelta(seconds=10), timedelta(seconds=1)) == SlidingWindows(10_000, grace=1_000)
    assert SessionWindows(timedelta(minutes=5)) == SessionWindows(300_000)
    assert JoinWindows(timedelta(seconds=1)) == JoinWindows(1_000)


def test_grace_is_zero_unless_given() -> None:
    windows = (TumblingWindows(3), HoppingWindows(3, 1), SlidingWindows(3), SessionWindows(3), JoinWindows(3))

    assert [kind.grace for kind in windows] == [0] * len(windows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TumblingWindows(3), TumblingWindows(9)),
        (TumblingWindows(3), TumblingWindows(3, grace=1)),
        (HoppingWindows(3, advance=1), HoppingWindows(3, advance=2)),
        (HoppingWindows(4, advance=2), HoppingWindows(3, advance=2)),
        (HoppingWindows(4, advance=2, grace=1), HoppingWindows(4, advance=2)),
        (SlidingWindows(3), SlidingWindows(9)),
        (SlidingWindows(3), SlidingWindows(3, grace=1)),
        (SessionWindows(1), SessionWindows(9)),
        (SessionWindows(1, grace=6), SessionWindows(1, grace=9)),
        (UnlimitedWindows(), UnlimitedWindows(start=1)),
        (JoinWindows(3), JoinWindows(9)),
        (JoinWindows(3), JoinWindows(3, grace=2)),
        (JoinWindows(3), JoinWindows(3, after=2)),
        (JoinWindows(3, before=1), JoinWindows(3, before=2)),
    ],
    ids=str,
)
def test_windows_with_equal_settings_are_equal(one: Any, other: Any) -> None:
    fields = dict(vars(one))
    fields.pop("advance" if isinstance(one, TumblingWindows) else "", None)

    assert one == type(one)(**fields)
    assert hash(one) == hash(type(one)(**fields))
    assert one != other


def test_windows_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TumblingWindows(3).size = 4  # type: ignore[misc]


@pytest.mark.parametrize(
    "windows",
    [
        SessionWindows(0),
        HoppingWindows(10, advance=10),
        JoinWindows(0),
        JoinWindows(456, before=-456),
        JoinWindows(456, after=-456),
        JoinWindows(before=0, after=0),
        JoinWindows(before=100, after=-50),
    ],
    ids=str,
)
def test_bounds_that_are_allowed(windows: Any) -> None:
    assert windows.grace == 0


def test_before_and_after_leave_grace_alone() -> None:
    assert JoinWindows(123, before=1, grace=456).grace == 456
    assert JoinWindows(123, after=1, grace=456).grace == 456


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TumblingWindows(0), "TumblingWindows, size: expected at least 1 ms, got 0 ms"),
        (lambda: TumblingWindows(-1), "TumblingWindows, size: expected at least 1 ms, got -1 ms"),
        (lambda: TumblingWindows(3, grace=-1), "TumblingWindows, grace: expected at least 0 ms, got -1 ms"),
        (
            lambda: TumblingWindows(cast(Any, "1h")),
            "TumblingWindows, size: expected a timedelta or whole milliseconds, got str",
        ),
        (
            lambda: TumblingWindows(cast(Any, 1.5)),
            "TumblingWindows, size: expected a timedelta or whole milliseconds, got float",
        ),
        (
            lambda: TumblingWindows(cast(Any, None)),
            "TumblingWindows, size: expected a timedelta or whole milliseconds, got None",
        ),
        (lambda: HoppingWindows(0, 1), "HoppingWindows, size: expected at least 1 ms"),
        (lambda: HoppingWindows(5, 0), "HoppingWindows, advance: expected at least 1 ms"),
        (lambda: HoppingWindows(5, -1), "HoppingWindows, advance: expected at least 1 ms"),
        (lambda: HoppingWindows(5, 6), r"HoppingWindows, advance: expected at most the size \(5 ms\), got 6 ms"),
        (lambda: HoppingWindows(5, 1, -1), "HoppingWindows, grace: expected at least 0 ms"),
        (lambda: SlidingWindows(0), "SlidingWindows, difference: expected at least 1 ms"),
        (lambda: SlidingWindows(-1), "SlidingWindows, difference: expected at least 1 ms"),
        (lambda: SlidingWindows(10, -1), "SlidingWindows, grace: expected at least 0 ms"),
        (lambda: SessionWindows(-1), "SessionWindows, gap: expected at least 0 ms"),
        (lambda: SessionWindows(3, -1), "SessionWindows, grace: expected at least 0 ms"),
        (lambda: UnlimitedWindows(-1), "UnlimitedWindows, start: expected at least 0 ms"),
        (lambda: JoinWindows(), "JoinWindows: give a difference, or before and after"),
        (lambda: JoinWindows(before=1), "JoinWindows: give a difference, or before and after"),
        (lambda: JoinWindows(-1), "JoinWindows, difference: expected at least 0 ms"),
        (lambda: JoinWindows(3, grace=-1), "JoinWindows, grace: expected at least 0 ms"),
        (lambda: JoinWindows(123, after=-124), r"JoinWindows: before \(123 ms\) and after \(-124 ms\) must add up"),
        (lambda: JoinWindows(123, before=-124), r"JoinWindows: before \(-124 ms\) and after \(123 ms\) must add up"),
    ],
)
def test_bounds_that_are_not_allowed(make: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make()
