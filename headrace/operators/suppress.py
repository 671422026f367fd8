"""suppress: pass on fewer updates of a table, or only the final ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.durations import milliseconds
from headrace.errors import StreamsError, TaskError, TopologyError
from headrace.topology.nodes import Process, StepContext

UNBOUNDED = (1 << 63) - 1


@dataclass(frozen=True)
class Buffer:
    """How much a suppress may hold back, and what to do when the buffer is full.

    >>> Buffer.max_records(1000).emit_early_when_full()
    Buffer(records=1000, bytes=9223372036854775807, emits_early=True)
    >>> Buffer.max_records(1000).with_max_bytes(1 << 20).shut_down_when_full()
    Buffer(records=1000, bytes=1048576, emits_early=False)
    """

    records: int = UNBOUNDED
    bytes: int = UNBOUNDED
    emits_early: bool | None = None
    """True: release the oldest updates early; False: stop the application; None: not chosen yet."""

    @staticmethod
    def unbounded() -> Buffer:
        """Hold back all updates, without a limit."""
        return Buffer(emits_early=False)

    @staticmethod
    def max_records(records: int) -> Buffer:
        """Hold back at most this many keys. A full buffer emits the oldest early, unless told to shut down."""
        return Buffer(records=_positive(records, "max_records"))

    @staticmethod
    def max_bytes(size: int) -> Buffer:
        """Hold back at most this many bytes. A full buffer emits the oldest early, unless told to shut down."""
        return Buffer(bytes=_positive(size, "max_bytes"))

    def with_max_records(self, records: int) -> Buffer:
        """Limit the number of keys, too."""
        return Buffer(_positive(records, "max_records"), self.bytes, self.emits_early)

    def with_max_bytes(self, size: int) -> Buffer:
        """Limit the number of bytes, too."""
        return Buffer(self.records, _positive(size, "max_bytes"), self.emits_early)

    def shut_down_when_full(self) -> Buffer:
        """Stop the application when the buffer is full."""
        return Buffer(self.records, self.bytes, False)

    def emit_early_when_full(self) -> Buffer:
        """Release the oldest updates when the buffer is full."""
        return Buffer(self.records, self.bytes, True)

    def with_no_bound(self) -> Buffer:
        """Hold back all updates, without a limit."""
        return Buffer.unbounded()


@dataclass(frozen=True)
class Suppressed:
    """When a suppress releases updates.

    >>> Suppressed.until_time_limit(10, Buffer.max_records(1000)).wait
    10
    """

    wait: int | None
    """None: until the window closes."""
    buffer: Buffer

    @staticmethod
    def until_window_closes(buffer: Buffer) -> Suppressed:
        """Release one final result per window, when the window closes. The buffer must not emit early.

        >>> builder = StreamsBuilder()
        >>> counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10, grace=5)).count()
        >>> counts.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream().to("out")
        >>> for result in run(builder, [("a", "x", 1), ("b", "y", 14), ("a", "late", 2), ("b", "z", 15)]):
        ...     print(*result)
        [a@0/10] 2 2
        """
        if not isinstance(buffer, Buffer):
            raise TopologyError(f"until_window_closes: expected a Buffer, got {type(buffer).__name__}")
        if buffer.emits_early is not False:
            raise TopologyError(
                "until_window_closes: results are final, so the buffer must not emit early. "
                "Use Buffer.unbounded(), or add .shut_down_when_full()"
            )
        return Suppressed(None, buffer)

    @staticmethod
    def until_time_limit(limit: int | timedelta, buffer: Buffer) -> Suppressed:
        """Release a key's latest update when its first update has waited this long in stream time.

        >>> builder = StreamsBuilder()
        >>> table = builder.table("in")
        >>> table.suppress(Suppressed.until_time_limit(10, Buffer.max_records(100))).to_stream().to("out")
        >>> run(builder, [("a", 1, 0), ("a", 2, 8), ("b", 3, 10)])
        [('a', 2, 8)]
        """
        if not isinstance(buffer, Buffer):
            raise TopologyError(f"until_time_limit: expected a Buffer, got {type(buffer).__name__}")
        return Suppressed(milliseconds(limit, "until_time_limit"), buffer)


@dataclass(frozen=True)
class Suppress:
    """Hold back updates. When the first waiting update of a key falls due, release its last one.

    The result has the timestamp and headers of the last update. Stream time is the highest timestamp of the updates
    that this step has seen.
    """

    store: str
    wait: int
    window_closes: bool
    """Whether an update falls due when its window closes. Deletes are then not passed on."""
    max_records: int
    max_bytes: int
    emits_early: bool
    emits_changes = True

    def bind(self, context: StepContext, forward: Process) -> Process:
        buffer, record, fail = context.store(self.store), context.record, context.fail
        observed = context.cell("stream_time", -1)
        wait, window_closes, emits_early = self.wait, self.window_closes, self.emits_early
        max_records, max_bytes = self.max_records, self.max_bytes
        bounded = max_records < UNBOUNDED or max_bytes < UNBOUNDED

        def emit_while(wanted: Callable[[], bool]) -> None:
            in_hand = record.saved()
            try:
                for key, new, old, entry in buffer.take_while(wanted):
                    if new is not None or not window_closes:
                        # The buffer does not keep the serialized key and value of the record that brought the update.
                        raw = entry.offset, entry.timestamp, None, None, None, 0
                        record.restore((entry.topic or None, entry.partition, entry.headers, raw))
                        forward(key, new, old, entry.timestamp)
            finally:
                record.restore(in_hand)

        def due() -> bool:
            return bool(buffer.next_due <= observed[0] - wait)

        def full() -> bool:
            return bool(buffer.records > max_records or buffer.size > max_bytes)

        def excess() -> str:
            limits = (buffer.records, max_records, "keys"), (buffer.size, max_bytes, "bytes")
            return ", ".join(f"{held} {what} (at most {most})" for held, most, what in limits if most < UNBOUNDED)

        way_out = "" if window_closes else ", or let it emit early"

        def process(key: Any, new: Any, old: Any, timestamp: int) -> None:
            if timestamp > observed[0]:
                observed[0] = timestamp
            try:
                due_at = key.window.end if window_closes else timestamp
                source = record.topic or "", record.partition, record.offset
                buffer.put(due_at, key, new, old, timestamp, record.headers, *source)
                if due():
                    emit_while(due)
                if bounded and full():
                    if not emits_early:
                        raise StreamsError(f"the suppress buffer is full: {excess()}. Give it more room{way_out}")
                    emit_while(full)
            except TaskError:
                raise
            except Exception as error:
                fail(error, key, new, timestamp)

        return process


def _positive(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TopologyError(f"Buffer.{what}: expected a whole number of at least 0, got {value!r}")
    return value
