"""Record caches: one update per key and commit goes on, with the value before the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.task.current_record import CurrentRecord
from headrace.topology.nodes import Process

# About what an entry costs beside its key and value.
_OVERHEAD = 200


class RecordCache:
    """Hold back the updates of one store until the commit, or until they take too much memory.

    The store itself has every update at once: only what goes downstream waits. What is known of the record in hand is
    kept with an update, so that it goes on as if it were that record's.
    """

    def __init__(self, forward: Process, send_old: bool, max_bytes: int, record: CurrentRecord) -> None:
        self._forward = forward
        self._send_old = send_old
        self._record = record
        self._entries: dict[bytes, tuple[Any, ...]] = {}
        self._held = [0]
        self.put = self._bind_put(max_bytes)
        """Take an update: put(serialized key, key, new, old, timestamp).

        Of several for a key the last goes on, at the place of the last.
        """

    def _bind_put(self, max_bytes: int) -> Callable[[bytes, Any, Any, Any, int], None]:
        entries, held, record, flush = self._entries, self._held, self._record, self.flush
        take = entries.pop

        def put(raw_key: bytes, key: Any, new: Any, old: Any, timestamp: int) -> None:
            size = len(raw_key) + new.__sizeof__() + _OVERHEAD
            waiting = take(raw_key, None)
            if waiting is None:
                held[0] += size
            else:
                old = waiting[2]
                held[0] += size - waiting[4]
            # Of the record's position: without a call and another tuple for every update.
            entries[raw_key] = (
                key, new, old, timestamp, size,
                record.topic, record.partition, record.headers, record.raw,
            )  # fmt: skip
            if held[0] > max_bytes:
                flush()

        return put

    def flush(self) -> None:
        """Let every waiting update go on."""
        if not self._entries:
            return
        entries = list(self._entries.values())
        self._entries.clear()
        self._held[0] = 0
        record = self._record
        before = record.position()
        try:
            for key, new, old, timestamp, _, *position in entries:
                if new is not None or old is not None:
                    record.restore(position)
                    self._forward(key, new, old if self._send_old else None, timestamp)
        finally:
            record.restore(before)
