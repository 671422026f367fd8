"""Windows: how time is cut for an aggregation or a join."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from headrace.durations import milliseconds
from headrace.errors import TopologyError
from headrace.records import Window

MAX_TIME = (1 << 63) - 1


@dataclass(frozen=True)
class TumblingWindows:
    """Windows of one size, side by side: every record is in exactly one.

    >>> TumblingWindows(10).windows_for(25)
    [Window(start=20, end=30)]
    """

    size: int
    grace: int
    advance: int = field(init=False)

    def __init__(self, size: int | timedelta, grace: int | timedelta = 0) -> None:
        _set(self, size=milliseconds(size, "TumblingWindows, size", at_least=1))
        _set(self, advance=self.size, grace=milliseconds(grace, "TumblingWindows, grace"))

    @property
    def retention(self) -> int:
        """Return how long windows are kept at least, and by default."""
        return self.size + self.grace

    def windows_for(self, timestamp: int) -> list[Window]:
        """Return the windows a record of that time falls into, earliest first."""
        start = timestamp - timestamp % self.size
        return [Window(start, start + self.size)]


@dataclass(frozen=True)
class HoppingWindows:
    """Windows of one size that start every `advance`: they overlap when it is less than the size.

    >>> HoppingWindows(10, advance=5).windows_for(12)
    [Window(start=5, end=15), Window(start=10, end=20)]
    """

    size: int
    advance: int
    grace: int

    def __init__(self, size: int | timedelta, advance: int | timedelta, grace: int | timedelta = 0) -> None:
        _set(self, size=milliseconds(size, "HoppingWindows, size", at_least=1))
        _set(self, advance=milliseconds(advance, "HoppingWindows, advance", at_least=1))
        _set(self, grace=milliseconds(grace, "HoppingWindows, grace"))
        if self.advance > self.size:
            raise TopologyError(
                f"HoppingWindows, advance: expected at most the size ({self.size} ms), got {self.advance} ms: "
                "some records would be in no window"
            )

    @property
    def retention(self) -> int:
        """Return how long windows are kept at least, and by default."""
        return self.size + self.grace

    def windows_for(self, timestamp: int) -> list[Window]:
        """Return the windows a record of that time falls into, earliest first."""
        first = max(0, timestamp - self.size + self.advance) // self.advance * self.advance
        return [Window(start, start + self.size) for start in range(first, timestamp + 1, self.advance)]


@dataclass(frozen=True)
class UnlimitedWindows:
    """One window, from `start` for ever; earlier records are in none."""

    start: int
    size = MAX_TIME
    grace = 0

    def __init__(self, start: int = 0) -> None:
        _set(self, start=milliseconds(start, "UnlimitedWindows, start"))

    @property
    def retention(self) -> int:
        """Return how long windows are kept at least, and by default."""
        return MAX_TIME

    def windows_for(self, timestamp: int) -> list[Window]:
        """Return the window, for a record that falls into it."""
        return [Window(self.start, MAX_TIME)] if timestamp >= self.start else []


@dataclass(frozen=True)
class SlidingWindows:
    """Windows that end at a record or start just after one: records that are at most `difference` apart share one."""

    difference: int
    grace: int

    def __init__(self, difference: int | timedelta, grace: int | timedelta = 0) -> None:
        _set(self, difference=milliseconds(difference, "SlidingWindows, difference", at_least=1))
        _set(self, grace=milliseconds(grace, "SlidingWindows, grace"))

    @property
    def size(self) -> int:
        """Return the time from a window's start to its end."""
        return self.difference

    @property
    def retention(self) -> int:
        """Return how long windows are kept at least, and by default."""
        return 2 * self.difference + self.grace


@dataclass(frozen=True)
class SessionWindows:
    """Windows of activity: a session ends when a key has been silent for more than `gap`."""

    gap: int
    grace: int

    def __init__(self, gap: int | timedelta, grace: int | timedelta = 0) -> None:
        _set(self, gap=milliseconds(gap, "SessionWindows, gap", at_least=1))
        _set(self, grace=milliseconds(grace, "SessionWindows, grace"))

    @property
    def retention(self) -> int:
        """Return how long sessions are kept at least, and by default."""
        return self.gap + self.grace


@dataclass(frozen=True)
class JoinWindows:
    """How far apart in time two records may be to join.

    A left record at t joins right records from t - before to t + after; `difference` sets both. One of them may be
    negative as long as their sum is not.
    """

    before: int
    after: int
    grace: int

    def __init__(
        self,
        difference: int | timedelta | None = None,
        *,
        before: int | timedelta | None = None,
        after: int | timedelta | None = None,
        grace: int | timedelta = 0,
    ) -> None:
        if difference is None and (before is None or after is None):
            raise TopologyError("JoinWindows: give a difference, or before and after")
        both = 0 if difference is None else milliseconds(difference, "JoinWindows, difference")
        _set(
            self,
            before=both if before is None else milliseconds(before, "JoinWindows, before", at_least=None),
            after=both if after is None else milliseconds(after, "JoinWindows, after", at_least=None),
            grace=milliseconds(grace, "JoinWindows, grace"),
        )
        if self.before + self.after < 0:
            raise TopologyError(
                f"JoinWindows: before ({self.before} ms) and after ({self.after} ms) must add up to at least 0"
            )

    @property
    def size(self) -> int:
        """Return the length of the span."""
        return self.before + self.after

    @property
    def retention(self) -> int:
        """Return how long records are kept."""
        return self.size + self.grace


TimeWindows = TumblingWindows | HoppingWindows | UnlimitedWindows


@dataclass(frozen=True)
class EmitStrategy:
    """When a windowed aggregation puts out results: at every update, or once when the window closes."""

    on_close: bool

    @staticmethod
    def on_window_close() -> EmitStrategy:
        """Put out one final result per window."""
        return EmitStrategy(True)

    @staticmethod
    def on_window_update() -> EmitStrategy:
        """Put out every update (the default)."""
        return EmitStrategy(False)


def _set(windows: object, **values: int) -> None:
    for name, value in values.items():
        object.__setattr__(windows, name, value)
