"""Punctuations: callbacks that stream time or the wall clock make due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

NEVER = (1 << 63) - 1


@dataclass
class Schedule:
    """One scheduled callback. `due` is a cell: it survives a commit; None means cancelled."""

    step: str
    interval: int
    callback: Callable[[int], None]
    due: list[int | None]

    def cancel(self) -> None:
        """Stop calling back."""
        self.due[0] = None

    def fire(self, now: int) -> None:
        """Move on to the first multiple of the interval after now."""
        due = self.due[0]
        assert due is not None
        following = due + self.interval
        if following <= now:
            following = due + ((now - due) // self.interval + 1) * self.interval
        self.due[0] = following


@dataclass
class Schedules:
    """The schedules of one clock."""

    entries: list[Schedule] = field(default_factory=list)
    next_due: int = NEVER

    def add(self, schedule: Schedule) -> None:
        """Add a schedule."""
        self.entries.append(schedule)
        self._find_next()

    def run(self, now: int, call: Callable[[Schedule, int], None]) -> bool:
        """Call what is due, earliest first and each at most once; tell whether anything was."""
        due = [entry for entry in self.entries if entry.due[0] is not None and entry.due[0] <= now]
        due.sort(key=lambda entry: entry.due[0] or 0)
        for entry in due:
            if entry.due[0] is None:
                continue
            entry.fire(now)
            call(entry, now)
        self._find_next()
        return bool(due)

    def _find_next(self) -> None:
        self.entries = [entry for entry in self.entries if entry.due[0] is not None]
        self.next_due = min((entry.due[0] for entry in self.entries if entry.due[0] is not None), default=NEVER)
