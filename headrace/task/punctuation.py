"""Punctuations: callbacks at intervals of stream time or of the wall clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

NEVER = (1 << 63) - 1
"""A time after all timestamps."""


@dataclass
class Schedule:
    """One scheduled callback."""

    step: str
    interval: int
    callback: Callable[[int], None]
    due: list[int | None]
    """When it is called next; None if it is cancelled. This is a cell, so it survives a restart."""

    def cancel(self) -> None:
        """Stop the callbacks."""
        self.due[0] = None

    def set_next(self, now: int) -> None:
        """Set the next call to the first multiple of the interval after now."""
        due = self.due[0]
        assert due is not None
        following = due + self.interval
        if following <= now:
            following = due + ((now - due) // self.interval + 1) * self.interval
        self.due[0] = following


@dataclass
class Schedules:
    """The schedules of one clock. `next_due` is checked after every record, so it is an attribute."""

    entries: list[Schedule] = field(default_factory=list)
    next_due: int = NEVER

    def add(self, schedule: Schedule) -> None:
        """Add a schedule."""
        self.entries.append(schedule)
        self._find_next()

    def punctuate(self, now: int, call: Callable[[Schedule, int], None]) -> None:
        """Call the schedules that are due, earliest first and each at most once."""
        due = [entry for entry in self.entries if entry.due[0] is not None and entry.due[0] <= now]
        due.sort(key=lambda entry: entry.due[0] or 0)
        for entry in due:
            if entry.due[0] is None:  # an earlier callback has cancelled it
                continue
            entry.set_next(now)
            call(entry, now)
        self._find_next()

    def _find_next(self) -> None:
        self.entries = [entry for entry in self.entries if entry.due[0] is not None]
        self.next_due = min((entry.due[0] for entry in self.entries if entry.due[0] is not None), default=NEVER)
