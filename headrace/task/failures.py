"""Failures: if a task cannot read, process or write a record, it asks the application's handlers what to do."""

from __future__ import annotations

from typing import Any

from headrace.errors import HeadraceError, TaskError
from headrace.handlers import DeadLetter, ErrorContext, Handler, HandlerResponse
from headrace.raw_records import RawRecord
from headrace.task.context import TaskContext


class Failures:
    """Handles the failures of one task. Each `in_` method returns to drop the record, or raises a `TaskError`."""

    def __init__(self, context: TaskContext) -> None:
        self._context = context

    def where(self, phase: str, step: str, key: Any, value: Any, timestamp: int) -> ErrorContext:
        """Describe the record in hand and the step in which it failed."""
        record = self._context.record
        return ErrorContext(
            phase,
            step,
            self._context.task_id,
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
        """Let the processing handler decide about a record for which a step's function failed."""
        where = self.where("processing", step, key, value, timestamp)
        self._decide(self._context.config.processing_exception_handler, where, error)

    def in_source(self, step: str, raw: RawRecord, error: Exception) -> None:
        """Let the deserialization handler decide about the record in hand, which a source cannot read."""
        where = self.where("deserialization", step, raw[2], raw[3], raw[1])
        self._decide(self._context.config.deserialization_exception_handler, where, error)

    def in_sink(self, step: str, error: Exception, key: Any, value: Any, timestamp: int) -> None:
        """Let the production handler decide about a record that a sink cannot write."""
        where = self.where("production", step, key, value, timestamp)
        self._decide(self._context.config.production_exception_handler, where, error)

    def _decide(self, handler: Handler, where: ErrorContext, error: Exception) -> None:
        try:
            response = handler(where, error)
        except Exception as broken:
            raise TaskError(f"{where}: the {where.phase} exception handler failed: {broken}") from broken
        if isinstance(response, DeadLetter):
            self._put_out(response, where, error)
        elif response is HandlerResponse.FAIL:
            text = str(error) if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
            raise TaskError(f"{where}: {text}") from error
        elif response is not HandlerResponse.CONTINUE:
            raise TaskError(
                f"{where}: the {where.phase} exception handler must return HandlerResponse.FAIL, "
                f"HandlerResponse.CONTINUE or a DeadLetter, got {response!r}"
            ) from error
        self._context.dropped_records += 1

    def _put_out(self, letter: DeadLetter, where: ErrorContext, error: Exception) -> None:
        timestamp, headers = max(where.timestamp, 0), letter.headers(where, error)
        ordinal = self._context.record.ordinal
        self._context.outputs.put((letter.topic, None, where.raw_key, where.raw_value, timestamp, headers, ordinal))
