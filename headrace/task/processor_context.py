"""The context that a task gives to a user's processor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.durations import milliseconds
from headrace.errors import StreamsError, TopologyError
from headrace.records import Record, RecordMetadata
from headrace.state.views import ReadOnlyView
from headrace.task.context import TaskContext
from headrace.task.punctuation import Schedule
from headrace.topology.nodes import Process, ProcessorNode
from headrace.topology.processor import PunctuationType

NO_KEY = object()
"""The key in hand of a processor that may change keys, or that has no record in hand."""


class TaskProcessorContext:
    """The task as one of its processors sees it: see `headrace.topology.processor.ProcessorContext`."""

    def __init__(self, context: TaskContext, node: ProcessorNode, children: dict[str, Process]) -> None:
        self._context = context
        self._node = node
        self._children = children
        self._all = tuple(children.values())
        self._record = context.record
        self._schedules: dict[int, Schedule] = {}
        self._made_by_init: int | None = None
        self.key_in_hand: Any = NO_KEY

    @property
    def application_id(self) -> str:
        return self._context.config.application_id

    @property
    def task_id(self) -> str:
        return self._context.task_id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        return self._record.metadata()

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        if not isinstance(record, Record):
            raise StreamsError(f"forward: expected a Record, got {type(record).__name__} ({record!r})")
        if self.key_in_hand is not NO_KEY and record.key != self.key_in_hand:
            raise StreamsError(
                f"forward: a FixedKeyProcessor keeps the key {self.key_in_hand!r}, got {record.key!r}. "
                "Use process() with a Processor to change it"
            )
        current = self._record
        before = current.headers
        current.headers = list(record.headers)
        try:
            for process in self._all if child is None else (self._child(child),):
                process(record.key, record.value, record.timestamp)
        finally:
            current.headers = before

    def schedule(self, interval: int | timedelta, type: PunctuationType, callback: Callable[[int], None]) -> Schedule:
        where = f"step '{self._node.name}', schedule"
        every = milliseconds(interval, where, at_least=1)
        if not isinstance(type, PunctuationType):
            known = " or ".join(str(kind) for kind in PunctuationType)
            raise TopologyError(f"{where}: expected {known}, got {type!r}")
        if not callable(callback):
            raise TopologyError(f"{where}: expected a function to call with the time, got {callback!r}")
        first = 0 if type is PunctuationType.STREAM_TIME else self._context.now + every
        number = self._next_number()
        schedule = self._schedules[number] = Schedule(self._node.name, every, callback, self._due(number, first))
        if schedule.due[0] is not None:
            self._context.schedules[type].add(schedule)
        return schedule

    def started(self) -> None:
        """Note that `init` has been called."""
        self._made_by_init = len(self._schedules)

    def _next_number(self) -> int:
        """Return the number of a new schedule: the next one, or after `init` that of a cancelled schedule.

        The number is in the name of a schedule's cell. `init` gives the same numbers each time, so schedules find their
        cells after a restart.
        """
        if self._made_by_init is not None:
            for number, schedule in self._schedules.items():
                if number >= self._made_by_init and schedule.due[0] is None:
                    return number
        return len(self._schedules)

    def _due(self, number: int, first: int) -> list[int | None]:
        """Return the cell with the due time of a schedule. It survives a restart."""
        name = f"{self._node.name}/schedule/{number}"
        if number in self._schedules:
            return self._context.cells.renew(name, first)
        due = self._context.cells.cell(name, first)
        if due[0] is None and self._made_by_init is not None:
            due[0] = first  # before the restart a schedule of this number was cancelled; this is a new one
        return due

    def state_store(self, name: str) -> Any:
        if name in self._context.global_stores:
            return ReadOnlyView(self._context.global_stores[name])
        if name not in self._node.stores:
            known = ", ".join(self._node.stores) or "none"
            raise TopologyError(
                f"step '{self._node.name}' is not connected to store '{name}' (connected: {known}). Connect it with "
                f"add_state_store(builder, '{self._node.name}') or process(supplier, '{name}')"
            )
        return self._context.store(name)

    def current_stream_time(self) -> int:
        return self._context.stream_time[0]  # type: ignore[no-any-return]

    def current_system_time(self) -> int:
        return self._context.now

    def commit(self) -> None:
        pass  # every batch ends with a commit, however many processors ask for one

    def _child(self, name: str) -> Process:
        if name not in self._children:
            known = ", ".join(self._children) or "none"
            raise StreamsError(f"forward: step '{self._node.name}' has no child '{name}' (children: {known})")
        return self._children[name]
