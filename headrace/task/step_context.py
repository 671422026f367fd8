"""What a task gives to the operators that it binds, and how it connects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.serdes import Serde
from headrace.serdes.renamed_topic import RenamedTopic
from headrace.task.caching import RecordCache
from headrace.topology.nodes import Process, ProcessorNode

if TYPE_CHECKING:
    from headrace.task.task import Task


class Step:
    """What a task gives to an operator that it binds."""

    def __init__(self, task: Task, node: ProcessorNode) -> None:
        self.step = node.name
        self.record = task.record
        self.children: dict[str, Process] = {}
        self._task = task
        name, fail = node.name, task.failures.in_step

        def fail_here(error: Exception, key: Any, value: Any, timestamp: int) -> None:
            fail(name, error, key, value, timestamp)

        self.fail = fail_here

    def store(self, name: str) -> Any:
        return self._task.store(name)

    def cell(self, name: str, default: Any) -> list[Any]:
        return self._task.cells.cell(f"{self.step}/{name}", default)

    def shared_cell(self, name: str, default: Any) -> list[Any]:
        return self._task.cells.cell(name, default)

    def cache(self, store: str, forward: Process, send_old: bool) -> RecordCache | None:
        task = self._task
        if not task.topology.stores[store].caching or not task.config.statestore_cache_max_bytes:
            return None
        return task.add_cache(store, forward, send_old)

    def serde(self, serde: Serde[Any] | None, part: str) -> Serde[Any]:
        return RenamedTopic(self._task.serde(serde, part), f"{self._task.config.application_id}-")

    def partition(self) -> int:
        return self._task.partition

    def dropped(self) -> None:
        self._task.dropped_records += 1


def fan_out(children: list[Process], *, changes: bool) -> Process:
    """Return the function that hands a record to all children, in order."""
    if not children:
        return _nowhere
    if len(children) == 1:
        return children[0]

    def forward(key: Any, value: Any, timestamp: int) -> None:
        for child in children:
            child(key, value, timestamp)

    def forward_change(key: Any, new: Any, old: Any, timestamp: int) -> None:
        for child in children:
            child(key, new, old, timestamp)

    return forward_change if changes else forward


def _nowhere(*_: Any) -> None:
    pass
