"""The few values that a task keeps beside its stores: stream times, sequence numbers, schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SmallState:
    """Values in cells by name. A cell is a list of one element: a closure can change it, and nothing is cheaper.

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
        """Return the cell with a name. It begins with the restored value if there is one."""
        if name not in self._cells:
            self._cells[name] = [self._restored.pop(name, default)]
        return self._cells[name]

    def renew(self, name: str, value: Any) -> list[Any]:
        """Replace the cell with a name, so that the holder of the old cell no longer changes the state."""
        self._cells[name] = [value]
        return self._cells[name]

    def values(self) -> dict[str, Any]:
        """Return the values of all cells, including restored values whose cells are not in use yet."""
        return self._restored | {name: cell[0] for name, cell in self._cells.items()}
