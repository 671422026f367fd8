"""Record caches: one update per key and commit goes on, with the value before the first."""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof
from typing import Any

from headrace.topology.nodes import Process

# About what an entry costs beside its key and value.
_OVERHEAD = 200


class RecordCache:
    """Hold back the updates of one store until the commit, or until they take too much memory.

    The store itself has every update at once: only what goes downstream waits. `position` and `restore` keep what is
    known of the record in hand, so that an update goes on as if it were that record's.
    """

    def __init__(
        self,
        forward: Process,
        send_old: bool,
        max_bytes: int,
        position: Callable[[], Any],
        restore: Callable[[Any], None],
    ) -> None:
        self._forward = forward
        self._send_old = send_old
        self._max_bytes = max_bytes
        self._position = position
        self._restore = restore
        self._entries: dict[bytes, tuple[Any, Any, Any, int, Any, int]] = {}
        self._bytes = 0

    def put(self, raw_key: bytes, key: Any, new: Any, old: Any, timestamp: int) -> None:
        """Take an update; of several for a key the last goes on, at the place of the last."""
        size = len(raw_key) + getsizeof(new) + _OVERHEAD
        self._bytes += size
        waiting = self._entries.pop(raw_key, None)
        if waiting is not None:
            old = waiting[2]
            self._bytes -= waiting[5]
        self._entries[raw_key] = (key, new, old, timestamp, self._position(), size)
        if self._bytes > self._max_bytes:
            self.flush()

    def flush(self) -> None:
        """Let every waiting update go on."""
        if not self._entries:
            return
        entries, self._entries, self._bytes = self._entries, {}, 0
        before = self._position()
        try:
            for key, new, old, timestamp, position, _ in entries.values():
                if new is not None or old is not None:
                    self._restore(position)
                    self._forward(key, new, old if self._send_old else None, timestamp)
        finally:
            self._restore(before)
