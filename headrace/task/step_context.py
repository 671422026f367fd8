"""The context that a task gives to an operator when it binds it.

Tests: `tests/task/test_task.py`.
"""

from __future__ import annotations

from typing import Any

from headrace.serdes import Serde
from headrace.serdes.renamed_topic import RenamedTopic
from headrace.task.caching import RecordCache
from headrace.task.context import TaskContext
from headrace.task.failures import Failures
from headrace.topology.names import topic_prefix
from headrace.topology.nodes import Process, ProcessorNode


class TaskStepContext:
    """The task as one of its steps sees it: see `headrace.topology.nodes.StepContext`."""

    def __init__(
        self, context: TaskContext, failures: Failures, node: ProcessorNode, children: dict[str, Process]
    ) -> None:
        self.step = node.name
        self.record = context.record
        self.children = children
        self._context = context
        name, in_step = node.name, failures.in_step

        def fail(error: Exception, key: Any, value: Any, timestamp: int) -> None:
            in_step(name, error, key, value, timestamp)

        self.fail = fail

    def store(self, name: str) -> Any:
        return self._context.store(name)

    def cell(self, name: str, default: Any) -> list[Any]:
        return self._context.cells.cell(f"{self.step}/{name}", default)

    def shared_cell(self, name: str, default: Any) -> list[Any]:
        return self._context.cells.cell(name, default)

    def cache(self, store: str, forward: Process, send_old: bool) -> RecordCache | None:
        context = self._context
        limit = context.config.statestore_cache_max_bytes
        if not context.topology.stores[store].caching or not limit:
            return None
        if store not in context.caches:  # the inputs of a cogroup share a cache, because they have the same next step
            context.caches[store] = RecordCache(forward, send_old, limit, self.record)
        return context.caches[store]

    def serde(self, serde: Serde[Any] | None, role: str) -> Serde[Any]:
        return RenamedTopic(self._context.serde(serde, role), topic_prefix(self._context.config.application_id))

    def partition(self) -> int:
        return self._context.partition

    def dropped(self) -> None:
        self._context.dropped_records += 1
