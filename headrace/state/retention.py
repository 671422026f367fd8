"""How long stores keep entries: the latest time that was put, less a period."""

from __future__ import annotations

import struct

from headrace.state.small_state import SmallState

MAX_TIME = 0x7FFFFFFFFFFFFFFF
_pack_time = struct.Struct(">q").pack


class Expiry:
    """Decide at each commit whether to delete expired entries: once in half a period.

    To find them takes a walk by time. Until then stores hide expired entries.
    """

    __slots__ = ("_half", "_last")

    def __init__(self, period: int) -> None:
        self._half = max(period // 2, 1)
        self._last = -MAX_TIME

    def bound(self, floor: int) -> bytes | None:
        """Return the time key before which to delete, or None to delete nothing."""
        if floor - self._last < self._half:
            return None
        self._last = floor
        return _pack_time(max(floor, 0))


class Retention:
    """Follow the latest time that was put into a store, and the earliest time that the store still keeps.

    These are `latest` and `floor`, two cells of the task's small state that only rise. A time is too old when it is
    `period` or more before the latest (`keep_oldest`: more than `period`).
    """

    __slots__ = ("_expiry", "floor", "lag", "latest", "period")

    def __init__(self, name: str, small_state: SmallState, period: int, *, keep_oldest: bool) -> None:
        self.period = period
        self.latest = small_state.cell(f"{name}/latest", -MAX_TIME)
        self.floor = small_state.cell(f"{name}/floor", -MAX_TIME)
        self.lag = period - (0 if keep_oldest else 1)
        self._expiry = Expiry(period)

    def keep_longer(self, time: int) -> None:
        """Keep entries for `time` longer than the period."""
        self.lag = self.period - 1 + time

    def admit(self, time: int) -> bool:
        """Follow the time of a put; tell whether the store still keeps that time."""
        latest, floor = self.latest, self.floor
        if time > latest[0]:
            latest[0] = time
            if time - self.lag > floor[0]:
                floor[0] = time - self.lag
            return True
        return time >= floor[0]  # type: ignore[no-any-return]

    def expired_before(self) -> bytes | None:
        """Return the time key before which a commit deletes, or None when it deletes nothing."""
        return self._expiry.bound(self.floor[0])
