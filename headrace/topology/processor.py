"""The Processor API: what a user writes, and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from headrace.records import Record, RecordMetadata

KIn = TypeVar("KIn")
VIn = TypeVar("VIn")


class PunctuationType(Enum):
    """Which clock drives a punctuation."""

    STREAM_TIME = "stream-time"
    WALL_CLOCK_TIME = "wall-clock-time"


class Cancellable(Protocol):
    """A scheduled punctuation."""

    def cancel(self) -> None:
        """Stop calling the punctuation."""


class ProcessorContext(Protocol):
    """What a processor can see and do; handed to `init`."""

    @property
    def application_id(self) -> str:
        """Return the application's id."""

    @property
    def task_id(self) -> str:
        """Return the task's id: sub-topology and partition, such as 0_3."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Return topic, partition and offset of the record in hand; None in a punctuation."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Hand a record to all children, or to the named one."""

    def schedule(
        self, interval: int | timedelta, type: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable:
        """Call back every interval of stream or wall-clock time, with that time."""

    def state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor."""

    def current_stream_time(self) -> int:
        """Return the largest timestamp the task has seen, -1 before the first record."""

    def current_system_time(self) -> int:
        """Return the wall-clock time in epoch milliseconds."""

    def commit(self) -> None:
        """Ask for a commit soon."""


class Processor(Generic[KIn, VIn]):
    """A step of your own: override `process`, and what else you need of `init` and `close`.

    Stateless or stateful, as you write it. A processor may change the key: a later grouping or join repartitions.
    Null keys and values are handed to it as they are.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Take the context, get stores, schedule punctuations."""
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Handle one record; forward any number of records."""
        raise NotImplementedError(f"{type(self).__name__} must override process(record)")

    def close(self) -> None:
        """Release what `init` took."""


class FixedKeyProcessor(Processor[KIn, VIn]):
    """A step of your own that keeps the key: forwarding a record with another key is an error."""
