"""What a task does with a record that cannot be read, processed or written: it asks the application's handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError, SerializationError, TaskError
from headrace.handlers import DeadLetter, ErrorContext, Handler, HandlerResponse

if TYPE_CHECKING:
    from headrace.raw_records import RawRecord
    from headrace.task.queues import InputQueue
    from headrace.task.task import Task


class Failures:
    """The failures of one task. Each method returns to drop the record, or raises a `TaskError`."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def where(self, phase: str, step: str, key: Any, value: Any, timestamp: int) -> ErrorContext:
        """Describe the record in hand and the step it failed in."""
        record = self._task.record
        return ErrorContext(
            phase,
            step,
            self._task.id,
            record.topic,
            record.partition,
            record.offset,
            timestamp,
            list(record.headers),
            key,
            value,
            record.raw_key,
            record.raw_value,
        )

    def in_step(self, step: str, error: Exception, key: Any, value: Any, timestamp: int) -> None:
        """Let the processing handler decide about a record that a step's function failed on."""
        where = self.where("processing", step, key, value, timestamp)
        self._decide(self._task.config.processing_exception_handler, where, error)

    def in_source(self, queue: InputQueue, raw: RawRecord, error: Exception) -> None:
        """Let the deserialization handler decide about a record, which is in hand, that a source cannot read."""
        try:
            queue.explain(raw)
        except SerializationError as explained:
            error = explained
        where = self.where("deserialization", queue.step, raw[2], raw[3], raw[1])
        self._decide(self._task.config.deserialization_exception_handler, where, error)

    def in_sink(self, step: str, error: Exception, key: Any, value: Any, timestamp: int) -> None:
        """Let the production handler decide about a record that a sink cannot write."""
        where = self.where("production", step, key, value, timestamp)
        self._decide(self._task.config.production_exception_handler, where, error)

    def _decide(self, handler: Handler, where: ErrorContext, error: Exception) -> None:
        task = self._task
        try:
            response = handler(where, error)
        except Exception as broken:
            raise TaskError(f"{where}: the {where.phase} exception handler failed: {broken}") from broken
        if isinstance(response, DeadLetter):
            headers = response.headers(where, error)
            task.outputs.put(
                (
                    response.topic,
                    None,
                    where.raw_key,
                    where.raw_value,
                    max(where.timestamp, 0),
                    headers,
                    task.record.ordinal,
                )
            )
        elif response is HandlerResponse.FAIL:
            text = str(error) if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
            raise TaskError(f"{where}: {text}") from error
        elif response is not HandlerResponse.CONTINUE:
            raise TaskError(
                f"{where}: the {where.phase} exception handler must return HandlerResponse.FAIL, "
                f"HandlerResponse.CONTINUE or a DeadLetter, got {response!r}"
            ) from error
        task.dropped_records += 1
