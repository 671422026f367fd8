"""Run a user's processor as a step of a task."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.durations import milliseconds
from headrace.errors import StreamsError, TaskError, TopologyError
from headrace.records import Record, RecordMetadata
from headrace.task.punctuation import Schedule
from headrace.topology.nodes import Process, ProcessorNode, StepContext
from headrace.topology.processor import PunctuationType

if TYPE_CHECKING:
    from headrace.task.task import Task

_NO_KEY = object()


class TaskProcessorContext:
    """The context that a processor of a task is given."""

    def __init__(self, task: Task, node: ProcessorNode, children: dict[str, Process]) -> None:
        self._task = task
        self._node = node
        self._children = children
        self._all = tuple(children.values())
        self._record = task.record
        self._schedules = 0
        self.key_in_hand: Any = _NO_KEY

    @property
    def application_id(self) -> str:
        return self._task.config.application_id

    @property
    def task_id(self) -> str:
        return self._task.id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        return self._record.metadata()

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        if not isinstance(record, Record):
            raise StreamsError(f"forward: expected a Record, got {type(record).__name__} ({record!r})")
        if self.key_in_hand is not _NO_KEY and record.key != self.key_in_hand:
            raise StreamsError(
                f"forward: a FixedKeyProcessor keeps the key {self.key_in_hand!r}, got {record.key!r}. "
                "Use process() with a Processor to change it"
            )
        current = self._record
        before = current.headers
        current.headers = record.headers
        try:
            for process in self._all if child is None else (self._child(child),):
                process(record.key, record.value, record.timestamp)
        finally:
            current.headers = before

    def schedule(self, interval: int | timedelta, type: PunctuationType, callback: Callable[[int], None]) -> Schedule:
        every = milliseconds(interval, f"step '{self._node.name}', schedule", at_least=1)
        first = 0 if type is PunctuationType.STREAM_TIME else self._task.now + every
        due = self._task.cells.cell(f"{self._node.name}/schedule/{self._schedules}", first)
        self._schedules += 1
        schedule = Schedule(self._node.name, every, callback, due)
        if due[0] is not None:
            self._task.schedules[type].add(schedule)
        return schedule

    def state_store(self, name: str) -> Any:
        if name not in self._node.stores and name not in self._task.global_stores:
            known = ", ".join(self._node.stores) or "none"
            raise TopologyError(
                f"step '{self._node.name}' is not connected to store '{name}' (connected: {known}). Connect it with "
                f"add_state_store(builder, '{self._node.name}') or by naming the store in process(supplier, '{name}')"
            )
        return self._task.store(name)

    def current_stream_time(self) -> int:
        return self._task.stream_time[0]  # type: ignore[no-any-return]

    def current_system_time(self) -> int:
        return self._task.now

    def commit(self) -> None:
        self._task.commit_requested = True

    def _child(self, name: str) -> Process:
        if name not in self._children:
            known = ", ".join(self._children) or "none"
            raise StreamsError(f"forward: step '{self._node.name}' has no child '{name}' (children: {known})")
        return self._children[name]


def bind_processor(
    task: Task, node: ProcessorNode, step: StepContext, children: dict[str, Process]
) -> tuple[Process, Any, TaskProcessorContext]:
    """Make a processor; return the function that processes one record, the processor, and its context."""
    assert node.supplier is not None
    processor = node.supplier()
    if not callable(getattr(processor, "process", None)):
        raise TopologyError(
            f"step '{node.name}': the supplier must give a Processor, got {type(processor).__name__} ({processor!r})"
        )
    context = TaskProcessorContext(task, node, children)
    current, fail, handle = task.record, step.fail, processor.process

    def process(key: Any, value: Any, timestamp: int) -> None:
        try:
            handle(Record(key, value, timestamp, list(current.headers)))
        except TaskError:
            raise
        except Exception as error:
            fail(error, key, value, timestamp)

    def process_fixed_key(key: Any, value: Any, timestamp: int) -> None:
        context.key_in_hand = key
        try:
            process(key, value, timestamp)
        finally:
            context.key_in_hand = _NO_KEY

    return (process_fixed_key if node.fixed_key else process), processor, context
