"""The windows of aggregations and joins, as users define them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from headrace.durations import milliseconds
from headrace.errors import TopologyError
from headrace.records import Window

MAX_TIME = (1 << 63) - 1


@dataclass(frozen=True)
class TumblingWindows:
    """Windows of one size, without gaps or overlaps: every record is in exactly one.

    A window takes late records until stream time is `grace` past its end, which is exclusive.

    >>> TumblingWindows(10).windows_for(25)
    [Window(start=20, end=30)]
    >>> from datetime import timedelta
    >>> TumblingWindows(timedelta(minutes=1), grace=timedelta(seconds=5))
    TumblingWindows(size=60000, grace=5000, advance=60000)
    """

    size: int
    grace: int
    advance: int = field(init=False)

    def __init__(self, size: int | timedelta, grace: int | timedelta = 0) -> None:
        _set(self, size=milliseconds(size, "TumblingWindows, size", at_least=1))
        _set(self, advance=self.size, grace=milliseconds(grace, "TumblingWindows, grace"))

    @property
    def retention(self) -> int:
        """Return the shortest time that windows may be kept; it is the default."""
        return self.size + self.grace

    def windows_for(self, timestamp: int) -> list[Window]:
        """Return the windows that contain a record of this time, earliest first."""
        start = timestamp - timestamp % self.size
        return [Window(start, start + self.size)]


@dataclass(frozen=True)
class HoppingWindows:
    """Windows of one size that start every `advance`. They overlap if `advance` is less than the size.

    A window takes late records until stream time is `grace` past its end, which is exclusive.

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
                f"HoppingWindows, advance: expected at most the size ({self.size} ms), got {self.advance} ms. "
                "Some records would be in no window"
            )

    @property
    def retention(self) -> int:
        """Return the shortest time that windows may be kept; it is the default."""
        return self.size + self.grace

    def windows_for(self, timestamp: int) -> list[Window]:
        """Return the windows that contain a record of this time, earliest first."""
        first = max(0, timestamp - self.size + self.advance) // self.advance * self.advance
        return [Window(start, start + self.size) for start in range(first, timestamp + 1, self.advance)]


@dataclass(frozen=True)
class UnlimitedWindows:
    """One window that starts at `start` and never ends. Earlier records are in no window.

    >>> UnlimitedWindows(start=100).windows_for(99)
    []
    >>> UnlimitedWindows(start=100).windows_for(100)
    [Window(start=100, end=9223372036854775807)]
    """

    start: int
    size = MAX_TIME
    grace = 0

    def __init__(self, start: int = 0) -> None:
        _set(self, start=milliseconds(start, "UnlimitedWindows, start"))

    @property
    def retention(self) -> int:
        """Return the shortest time that windows may be kept; it is the default."""
        return MAX_TIME

    def windows_for(self, timestamp: int) -> list[Window]:
        """Return the window, if a record of this time is in it."""
        return [Window(self.start, MAX_TIME)] if timestamp >= self.start else []


@dataclass(frozen=True)
class SlidingWindows:
    """Windows that end at a record or start just after one. Records that are at most `difference` apart share a window.

    Both ends are inclusive. A window takes late records until stream time is more than `grace` past its end.

    >>> builder = StreamsBuilder()
    >>> windowed = builder.stream("in").group_by_key().windowed_by(SlidingWindows(10))
    >>> windowed.count().to_stream().to("out")
    >>> for result in run(builder, [("a", "x", 20), ("a", "y", 25)]):
    ...     print(*result)
    [a@10/20] 1 20
    [a@21/31] 1 25
    [a@15/25] 2 25
    """

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
        """Return the shortest time that windows may be kept; it is the default."""
        return 2 * self.difference + self.grace


@dataclass(frozen=True)
class SessionWindows:
    """Windows of activity. A session ends when its key has had no records for more than `gap`.

    Both ends are inclusive. A session takes late records until stream time is more than `gap` and `grace` past its end.

    >>> builder = StreamsBuilder()
    >>> windowed = builder.stream("in").group_by_key().windowed_by(SessionWindows(10))
    >>> windowed.count().to_stream().to("out")
    >>> for result in run(builder, [("a", "x", 0), ("a", "y", 10), ("a", "z", 21)]):
    ...     print(*result)
    [a@0/0] 1 0
    [a@0/0] None 0
    [a@0/10] 2 10
    [a@21/21] 1 21
    """

    gap: int
    grace: int

    def __init__(self, gap: int | timedelta, grace: int | timedelta = 0) -> None:
        _set(self, gap=milliseconds(gap, "SessionWindows, gap"))
        _set(self, grace=milliseconds(grace, "SessionWindows, grace"))

    @property
    def retention(self) -> int:
        """Return the shortest time that sessions may be kept; it is the default."""
        return self.gap + self.grace


@dataclass(frozen=True)
class JoinWindows:
    """How far apart in time two records may be to join.

    A left record at t joins right records from t - before to t + after; `difference` sets both. One of them may be
    negative as long as their sum is not. A record without a match waits for one until stream time is more than `grace`
    past the end of its window.

    >>> JoinWindows(10, grace=5)
    JoinWindows(before=10, after=10, grace=5)
    >>> JoinWindows(before=0, after=60_000)
    JoinWindows(before=0, after=60000, grace=0)
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
        """Return the length of a record's window."""
        return self.before + self.after

    @property
    def retention(self) -> int:
        """Return how long records are kept."""
        return self.size + self.grace


TimeWindows = TumblingWindows | HoppingWindows | UnlimitedWindows


@dataclass(frozen=True)
class EmitStrategy:
    """When a windowed aggregation emits results: at every update, or once when the window closes.

    Without a cache, the step first writes the record that closes windows to the store, then reads the results from
    there. But the store forgets windows that are older than its retention, which is by default the windows' size plus
    grace: if stream time jumps further than that, results are lost, as in Kafka Streams. A larger
    `Materialized(retention=...)` keeps them.

    >>> def count(retention):
    ...     builder = StreamsBuilder()
    ...     windowed = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10))
    ...     final = windowed.emit_strategy(EmitStrategy.on_window_close())
    ...     final.count(store=Materialized(retention=retention)).to_stream().to("out")
    ...     return run(builder, [("a", "x", 5), ("a", "y", 25)], config={"statestore_cache_max_bytes": 0})
    >>> count(retention=None)
    []
    >>> count(retention=1000)
    [(Windowed(key='a', window=Window(start=0, end=10)), 1, 5)]
    """

    on_close: bool

    @staticmethod
    def on_window_close() -> EmitStrategy:
        """Emit one final result per window.

        >>> EmitStrategy.on_window_close()
        EmitStrategy(on_close=True)
        """
        return EmitStrategy(True)

    @staticmethod
    def on_window_update() -> EmitStrategy:
        """Emit every update (the default).

        >>> EmitStrategy.on_window_update()
        EmitStrategy(on_close=False)
        """
        return EmitStrategy(False)


def _set(windows: object, **values: int) -> None:
    for name, value in values.items():
        object.__setattr__(windows, name, value)
