"""Record caches: before a commit, pass only the last update of each key on to the next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.task.current_record import CurrentRecord
from headrace.topology.nodes import Process

_OVERHEAD = 480
"""About how many bytes an entry takes besides its key and value: the tuple, the dict's slot, a small raw record."""


class RecordCache:
    """Hold back the updates of one store until the commit, or until they take too much memory.

    The store itself has every update at once: only the next steps wait. Of several updates of a key, the cache passes
    on the last one, with the old value of the first, in the order of the last updates. The update has the topic, the
    offset and the headers of the record that caused it.

    `put` and `flush` are closures, not methods: they are called for every update, and local names are faster than
    attributes.
    """

    def __init__(self, forward: Process, send_old: bool, max_bytes: int, record: CurrentRecord) -> None:
        entries: dict[bytes, tuple[Any, ...]] = {}  # in the order of the last updates
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
            # The fields of record.saved(), without a call and another tuple for every update.
            entries[raw_key] = (
                key, new, old, timestamp, size, record.topic, record.partition, record.headers, record.raw,
            )  # fmt: skip
            if held > max_bytes:
                flush()

        def flush() -> None:
            nonlocal held
            if not entries:
                return
            updates = list(entries.values())
            entries.clear()
            recent.clear()
            held = 0
            before = record.saved()
            try:
                # The loop's targets are attributes: this takes the update's record in hand without a call.
                for key, new, old, timestamp, _, record.topic, record.partition, record.headers, record.raw in updates:
                    if new is not None or old is not None:
                        forward(key, new, old if send_old else None, timestamp)
            finally:
                record.restore(before)

        self.put: Callable[[bytes, Any, Any, Any, int], None] = put
        """Take an update: put(serialized key, key, new value, old value, timestamp)."""
        self.flush: Callable[[], None] = flush
        """Pass on every update that waits."""
        self.recent = recent
