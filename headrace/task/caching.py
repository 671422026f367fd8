"""Record caches: one update per key and commit goes on, with the value before the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.task.current_record import CurrentRecord
from headrace.topology.nodes import Process

# About what an entry costs beside its key and value: itself, its place, and a small record that it came from.
_OVERHEAD = 480


class RecordCache:
    """Hold back the updates of one store until the commit, or until they take too much memory.

    The store itself has every update at once: only what goes downstream waits. What is known of the record in hand is
    kept with an update, so that it goes on as if it were that record's. Of several updates for a key the last goes on,
    at the place of the last.
    """

    def __init__(self, forward: Process, send_old: bool, max_bytes: int, record: CurrentRecord) -> None:
        entries: dict[bytes, tuple[Any, ...]] = {}  # in the order of the last update of each
        recent: dict[Any, tuple[bytes, Any]] = {}
        take_out = entries.pop
        held = 0

        def put(raw_key: bytes, key: Any, new: Any, old: Any, timestamp: int) -> None:
            nonlocal held
            before = take_out(raw_key, None)
            size = new.__sizeof__()
            if before is None:
                held += len(raw_key) + size + _OVERHEAD
            else:
                old = before[2]
                held += size - before[4]
            # Of the record's position: without a call and another tuple for every update.
            entries[raw_key] = (
                key, new, old, timestamp, size, record.topic, record.partition, record.headers, record.raw,
            )  # fmt: skip
            if held > max_bytes:
                flush()

        def flush() -> None:
            nonlocal held
            if not entries:
                return
            going = list(entries.values())
            entries.clear()
            recent.clear()
            held = 0
            before = record.position()
            try:
                for key, new, old, timestamp, _, record.topic, record.partition, record.headers, record.raw in going:
                    if new is not None or old is not None:
                        forward(key, new, old if send_old else None, timestamp)
            finally:
                record.restore(before)

        self.put: Callable[[bytes, Any, Any, Any, int], None] = put
        """Take an update, given the serialized key, the key, the new value, the old one and the timestamp."""
        self.flush: Callable[[], None] = flush
        """Let every waiting update go on."""
        self.recent = recent
