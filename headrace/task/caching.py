"""Record caches: one update per key and commit goes on, with the value before the first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from operator import itemgetter
from typing import Any

from headrace.task.current_record import CurrentRecord
from headrace.topology.nodes import Process

# About what an entry costs beside its key and value.
_OVERHEAD = 200

_order = itemgetter(9)


class RecordCache:
    """Hold back the updates of one store until the commit, or until they take too much memory.

    The store itself has every update at once: only what goes downstream waits. What is known of the record in hand is
    kept with an update, so that it goes on as if it were that record's. Of several updates for a key the last goes on,
    at the place of the last.
    """

    def __init__(self, forward: Process, send_old: bool, max_bytes: int, record: CurrentRecord) -> None:
        self._forward = forward
        self._send_old = send_old
        self._record = record
        self._entries: dict[bytes, list[Any]] = {}
        """By serialized key: key, new, old, timestamp, size, the record's position (4), the order of updates."""
        self._held = [0]
        self.recent: dict[Any, tuple[bytes, Any]] = {}
        """For a step: serialized keys and what is held of them, by what finds them again sooner; gone with a flush."""
        self._bind(max_bytes)

    def _bind(self, max_bytes: int) -> None:
        entries, held, record, flush = self._entries, self._held, self._record, self.flush
        find, number = entries.get, count().__next__

        def put(raw_key: bytes, key: Any, new: Any, old: Any, timestamp: int) -> list[Any] | None:
            entry = find(raw_key)
            if entry is not None:
                entry[0] = key
                renew(entry, new, timestamp)
                return find(raw_key)
            size = new.__sizeof__()
            held[0] += len(raw_key) + size + _OVERHEAD
            # Of the record's position: without a call and another tuple for every update.
            entries[raw_key] = entry = [
                key, new, old, timestamp, size,
                record.topic, record.partition, record.headers, record.raw, number(),
            ]  # fmt: skip
            if held[0] > max_bytes:
                flush()
                return None
            return entry

        def renew(entry: list[Any], new: Any, timestamp: int) -> None:
            entry[1] = new
            entry[3] = timestamp
            entry[5] = record.topic
            entry[6] = record.partition
            entry[7] = record.headers
            entry[8] = record.raw
            entry[9] = number()
            size = new.__sizeof__()
            if size != entry[4]:
                held[0] += size - entry[4]
                entry[4] = size
                if held[0] > max_bytes:
                    flush()

        self.put: Callable[[bytes, Any, Any, Any, int], Any] = put
        self.renew: Callable[[Any, Any, int], None] = renew

    def flush(self) -> None:
        """Let every waiting update go on."""
        if not self._entries:
            return
        entries = sorted(self._entries.values(), key=_order)
        self._entries.clear()
        self.recent.clear()
        self._held[0] = 0
        record, forward, send_old = self._record, self._forward, self._send_old
        before = record.position()
        try:
            for key, new, old, timestamp, _, record.topic, record.partition, record.headers, record.raw, _ in entries:
                if new is not None or old is not None:
                    forward(key, new, old if send_old else None, timestamp)
        finally:
            record.restore(before)
