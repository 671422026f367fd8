"""The Processor API: the processors that users write, and the context that they get.

Tests: `tests/task/test_processor_context.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from headrace.records import Record, RecordMetadata

KIn = TypeVar("KIn")
VIn = TypeVar("VIn")


class PunctuationType(Enum):
    """Which clock drives a punctuation.

    Stream time moves with the records and stands still without them; wall-clock time moves by itself (in a test, by
    `driver.advance_wall_clock_time`).

    >>> [kind.name for kind in PunctuationType]
    ['STREAM_TIME', 'WALL_CLOCK_TIME']
    """

    STREAM_TIME = "stream-time"
    WALL_CLOCK_TIME = "wall-clock-time"


class Cancellable(Protocol):
    """A scheduled punctuation."""

    def cancel(self) -> None:
        """Stop calling the punctuation."""


class ProcessorContext(Protocol):
    """The task as a processor sees it. It is passed to `init`.

    >>> class Where(Processor):
    ...     def process(self, record):
    ...         context = self.context
    ...         where = context.record_metadata
    ...         self.context.forward(record.with_value([context.task_id, where.topic, where.partition, where.offset]))
    >>> builder = StreamsBuilder()
    >>> builder.stream("in").process(Where).to("out")
    >>> run(builder, [("a", "x", 0), ("a", "y", 5)])
    [('a', ['0_0', 'in', 0, 0], 0), ('a', ['0_0', 'in', 0, 1], 5)]
    """

    @property
    def application_id(self) -> str:
        """Return the application's id."""

    @property
    def task_id(self) -> str:
        """Return the task's id: sub-topology and partition, such as 0_3."""

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Return topic, partition and offset of the current record; None in a punctuation."""

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Send a record to all children, or to the named one.

        >>> class Route(Processor):
        ...     def process(self, record):
        ...         self.context.forward(record, "small" if record.value < 10 else "large")
        >>> topology = Topology().add_source("source", "in").add_processor("route", Route, "source")
        >>> topology = topology.add_sink("small", "out", "route").add_sink("large", "more", "route")
        >>> run(topology, [("a", 1, 0), ("b", 12, 5)])
        [('a', 1, 0)]
        """

    def schedule(
        self, interval: int | timedelta, type: PunctuationType, callback: Callable[[int], None]
    ) -> Cancellable:
        """Call back every interval of stream or wall-clock time, with that time.

        Stream time: the first call comes after the first record, later ones when stream time has reached the next
        multiple of the interval, at most one per record. Wall-clock time: the first call comes one interval after the
        start. `cancel()` of the returned handle stops the calls.

        >>> class Every(Processor):
        ...     def init(self, context):
        ...         super().init(context)
        ...         self.count = 0
        ...         context.schedule(10, PunctuationType.STREAM_TIME, self.report)
        ...     def process(self, record):
        ...         self.count += 1
        ...     def report(self, timestamp):
        ...         self.context.forward(Record("seen", self.count, timestamp))
        >>> builder = StreamsBuilder()
        >>> builder.stream("in").process(Every).to("out")
        >>> run(builder, [("a", "x", 3), ("a", "y", 9), ("a", "z", 14)])
        [('seen', 1, 3), ('seen', 3, 14)]
        """

    def state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor.

        See `Stores` for the kinds of stores and what they can do.
        """

    def current_stream_time(self) -> int:
        """Return the largest timestamp that the task has seen, -1 before the first record."""

    def current_system_time(self) -> int:
        """Return the wall-clock time in epoch milliseconds."""

    def commit(self) -> None:
        """Ask for a commit. It changes nothing here: the batch is committed at its end, whether or not you ask."""


class Processor(Generic[KIn, VIn]):
    """A step of your own: override `process`, and `init` and `close` where you need them.

    Stateless or stateful, as you write it. A processor may change the key: a later grouping or join repartitions. It
    gets null keys and values, too.

    >>> class Double(Processor):
    ...     def process(self, record):
    ...         self.context.forward(record)
    ...         self.context.forward(record.with_timestamp(record.timestamp + 1))
    >>> topology = Topology()
    >>> _ = topology.add_source("source", "in")
    >>> _ = topology.add_processor("double", Double, "source")
    >>> _ = topology.add_sink("sink", "out", "double")
    >>> run(topology, [("a", "x", 5)])
    [('a', 'x', 5), ('a', 'x', 6)]
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Keep the context. Override this to get stores and schedule punctuations."""
        self.context = context

    def process(self, record: Record[KIn, VIn]) -> None:
        """Handle one record; forward any number of records."""
        raise NotImplementedError(f"{type(self).__name__} must override process(record)")

    def close(self) -> None:
        """Release everything that `init` opened."""


class FixedKeyProcessor(Processor[KIn, VIn]):
    """A step of your own that keeps the key: forwarding a record with another key is an error.

    For `KStream.process_values`.

    >>> class Length(FixedKeyProcessor):
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(len(record.value)))
    >>> builder = StreamsBuilder()
    >>> builder.stream("in").process_values(Length).to("out")
    >>> run(builder, [("a", "tea", 5)])
    [('a', 3, 5)]
    """
