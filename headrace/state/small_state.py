"""Small values that survive a commit beside the stores: observed stream times, sequence numbers, schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SmallState:
    """Hand out cells by name: a cell is a list of one element, the cheapest thing a closure can change.

    >>> state = SmallState({"count/stream_time": 7})
    >>> cell = state.cell("count/stream_time", -1)
    >>> cell[0] += 1
    >>> state.values()
    {'count/stream_time': 8}
    """

    def __init__(self, restored: Mapping[str, Any] | None = None) -> None:
        self._restored = dict(restored or {})
        self._cells: dict[str, list[Any]] = {}

    def cell(self, name: str, default: Any) -> list[Any]:
        """Return the cell of that name, with the restored value if there is one."""
        if name not in self._cells:
            self._cells[name] = [self._restored.pop(name, default)]
        return self._cells[name]

    def renew(self, name: str, value: Any) -> list[Any]:
        """Return a new cell of that name; who has the one before can no longer change it."""
        self._cells[name] = [value]
        return self._cells[name]

    def values(self) -> dict[str, Any]:
        """Return what every cell holds, including restored ones that nobody asked for yet."""
        return self._restored | {name: cell[0] for name, cell in self._cells.items()}
