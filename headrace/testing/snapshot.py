"""The committed state of a test driver, from which another driver can continue.

Tests: `tests/testing/test_driver.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.state.image import Changes
from headrace.task.task import Commit


@dataclass(frozen=True)
class Snapshot:
    """Everything that the tasks of a driver have committed. Another driver of the same topology can continue from it.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").group_by_key().count().to_stream().to("out")
    >>> topology = builder.build()
    >>> with TopologyTestDriver(topology) as driver:
    ...     driver.create_input_topic("in").pipe_input("a", "x")
    ...     snapshot = driver.snapshot()
    >>> with TopologyTestDriver(topology, restore_from=snapshot) as driver:
    ...     driver.create_input_topic("in").pipe_input("a", "y")
    ...     driver.create_output_topic("out").read_key_value()
    ('a', 2)
    """

    stores: dict[str, dict[str, Changes]]
    """The entries of each store, by task and store."""
    states: dict[str, dict[str, Any]]
    """The small state of each task."""
    offsets: dict[str, int] = field(default_factory=dict)
    """The end offset of every topic."""
    now: int = 0
    """The wall clock."""


class CommittedState:
    """The commits of a driver's tasks so far, by the task's id."""

    def __init__(self, restored: Snapshot | None) -> None:
        self._stores: dict[str, dict[str, Changes]] = _copied(restored.stores) if restored else {}
        self._states = dict(restored.states) if restored else {}

    def stores(self, task_id: str) -> dict[str, Changes]:
        """Return the entries of a task's stores."""
        return self._stores.setdefault(task_id, {})

    def state(self, task_id: str) -> dict[str, Any]:
        """Return a task's small state."""
        return self._states.setdefault(task_id, {})

    def add(self, task_id: str, commit: Commit) -> None:
        """Add a commit of a task."""
        stores = self.stores(task_id)
        for name, changes in commit.stores.items():
            stores.setdefault(name, {}).update(changes)
        self._states[task_id] = commit.state

    def snapshot(self, offsets: dict[str, int], now: int) -> Snapshot:
        """Return a copy of the state so far, which later commits do not change."""
        states = {task_id: dict(state) for task_id, state in self._states.items()}
        return Snapshot(_copied(self._stores), states, dict(offsets), now)


def _copied(stores: dict[str, dict[str, Changes]]) -> dict[str, dict[str, Changes]]:
    return {task_id: {name: dict(changes) for name, changes in spaces.items()} for task_id, spaces in stores.items()}
