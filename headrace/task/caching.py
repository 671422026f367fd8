"""Record caches: one update per key and commit goes on, with the value before the first."""

from __future__ import annotations

from sys import getsizeof
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

    def __init__(
        self,
        forward: Process,
        send_old: bool,
        max_bytes: int,
        record: CurrentRecord,
    ) -> None:
        self._forward = forward
        self._send_old = send_old
        self._max_bytes = max_bytes
        self._record = record
        self._entries: dict[bytes, tuple[Any, ...]] = {}
        self._bytes = 0

    def put(self, raw_key: bytes, key: Any, new: Any, old: Any, timestamp: int) -> None:
        """Take an update; of several for a key the last goes on, at the place of the last."""
        size = len(raw_key) + getsizeof(new) + _OVERHEAD
        self._bytes += size
        entries, at = self._entries, self._record
        waiting = entries.pop(raw_key, None)
        if waiting is not None:
            old = waiting[2]
            self._bytes -= waiting[4]
        # Of the record's position: without a call and another tuple for every update.
        entries[raw_key] = (
            key, new, old, timestamp, size,
            at.topic, at.partition, at.offset, at.headers, at.raw_key, at.raw_value,
        )  # fmt: skip
        if self._bytes > self._max_bytes:
            self.flush()

    def flush(self) -> None:
        """Let every waiting update go on."""
        if not self._entries:
            return
        entries, self._entries, self._bytes = self._entries, {}, 0
        record = self._record
        before = record.position()
        try:
            for key, new, old, timestamp, _, *position in entries.values():
                if new is not None or old is not None:
                    record.restore(position)
                    self._forward(key, new, old if self._send_old else None, timestamp)
        finally:
            record.restore(before)
