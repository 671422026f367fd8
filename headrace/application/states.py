"""What an application is doing, and what to do when a batch fails.

Tests: `tests/application/test_streams.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias


class StreamsState(Enum):
    """What an application is doing, in Kafka Streams' words."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    """Starting, or starting again after a failure."""
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending shutdown"
    """Finishing the current batch."""
    NOT_RUNNING = "not running"
    PENDING_ERROR = "pending error"
    ERROR = "error"

    def is_running(self) -> bool:
        """Tell whether records are processed, or will be in a moment."""
        return self in (StreamsState.REBALANCING, StreamsState.RUNNING)


class StreamThreadExceptionResponse(Enum):
    """What to do about an exception that ended the running query."""

    REPLACE_THREAD = "replace thread"
    """Start again from the last committed batch."""
    SHUTDOWN_CLIENT = "shutdown client"
    SHUTDOWN_APPLICATION = "shutdown application"


StateListener: TypeAlias = Callable[[StreamsState, StreamsState], None]
ExceptionHandler: TypeAlias = Callable[[BaseException], StreamThreadExceptionResponse]
