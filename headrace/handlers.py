"""What to do with a record that cannot be read, processed or written.

A handler is any callable `f(context, error)` that returns a `HandlerResponse`, or a `DeadLetter` to write the
record to a topic of its own. Ready-made: `LogAndFail` (the default), `LogAndContinue`, `DeadLetter(topic)`.

Tests: `tests/task/test_failures.py`.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, overload

from headrace.errors import ConfigError
from headrace.records import Headers

_log = logging.getLogger(__name__)


class HandlerResponse(Enum):
    """The decision of a handler.

    >>> def handler(context, error):
    ...     return HandlerResponse.CONTINUE if context.topic == "guesses" else HandlerResponse.FAIL
    >>> config = {"processing_exception_handler": handler}
    >>> builder = StreamsBuilder()
    >>> builder.stream("guesses").map_values(int).to("out")
    >>> with TopologyTestDriver(builder.build(), config) as driver:
    ...     driver.create_input_topic("guesses").pipe_values(["1", "two", "3"])
    ...     driver.create_output_topic("out").read_values()
    [1, 3]
    """

    FAIL = "fail"
    CONTINUE = "continue"


@dataclass(frozen=True)
class ErrorContext:
    """Where an error happened: the step, and the record it happened on."""

    phase: str
    """deserialization, processing or production"""
    step: str
    task_id: str
    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers
    key: Any
    """The key as the step saw it; the raw bytes in deserialization."""
    value: Any
    raw_key: bytes | None
    """The key of the source record, as it was read."""
    raw_value: bytes | None

    def __str__(self) -> str:
        where = (
            f"topic '{self.topic}', partition {self.partition}, offset {self.offset}" if self.topic else "punctuation"
        )
        return f"step '{self.step}', {where}, key {self.key!r}"


@dataclass(frozen=True)
class DeadLetter:
    """Write the source record to a topic of its own, with the error in its headers, and continue.

    >>> builder = StreamsBuilder()
    >>> builder.stream("in").map_values(int).to("out")
    >>> config = {"processing_exception_handler": DeadLetter("bad")}
    >>> with TopologyTestDriver(builder.build(), config) as driver:
    ...     driver.create_input_topic("in").pipe_input("a", "two")
    ...     letter = driver.create_output_topic("bad").read_record()
    >>> letter.value
    'two'
    >>> dict(letter.headers)["__streams.errors.exception"]
    b'builtins.ValueError'
    """

    topic: str

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise ConfigError(f"DeadLetter: expected the name of a topic, got {self.topic!r}")

    def __call__(self, context: ErrorContext, error: Exception) -> DeadLetter:
        _log.warning("%s failed, the record goes to '%s': %s: %s", context, self.topic, type(error).__name__, error)
        return self

    def headers(self, context: ErrorContext, error: Exception) -> Headers:
        """Return the record's headers, and headers that say what went wrong and where."""
        trace = "".join(traceback.format_exception(error))
        said = {
            "exception": f"{type(error).__module__}.{type(error).__qualname__}",
            "message": str(error),
            "stacktrace": trace,
            "topic": context.topic or "",
            "partition": str(context.partition),
            "offset": str(context.offset),
        }
        return [*context.headers, *((f"__streams.errors.{name}", text.encode()) for name, text in said.items())]


Handler: TypeAlias = Callable[[ErrorContext, Exception], "HandlerResponse | DeadLetter"]


class _LoggingHandler:
    """A ready-made handler; calling it without arguments returns it, so that `LogAndFail()` works, too."""

    def __init__(self, name: str, response: HandlerResponse, level: int) -> None:
        self._name, self._response, self._level = name, response, level

    @overload
    def __call__(self) -> _LoggingHandler: ...

    @overload
    def __call__(self, context: ErrorContext, error: Exception) -> HandlerResponse: ...

    def __call__(self, context: ErrorContext | None = None, error: Exception | None = None) -> Any:
        if context is None:
            return self
        _log.log(self._level, "%s failed in %s: %s: %s", context, context.phase, type(error).__name__, error)
        return self._response

    def __repr__(self) -> str:
        return self._name


LogAndFail = _LoggingHandler("LogAndFail", HandlerResponse.FAIL, logging.ERROR)
LogAndContinue = _LoggingHandler("LogAndContinue", HandlerResponse.CONTINUE, logging.WARNING)
