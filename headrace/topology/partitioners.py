"""The partitions that Kafka Streams chooses if the user chooses none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.partitioning import partition_of
from headrace.records import Windowed
from headrace.serdes import Serde
from headrace.serdes.windowed import SessionWindowedSerde, WindowedSerde


@dataclass(frozen=True)
class WindowedPartitioner:
    """Choose by the key without its window, so that a stream writes all windows of a key to one partition."""

    serde: WindowedSerde[Any] | SessionWindowedSerde[Any]

    @property
    def window_bytes(self) -> int:
        """Return the number of bytes at the end of a serialized key that are its window."""
        return 8 if isinstance(self.serde, WindowedSerde) else 16

    def __call__(self, topic: str, key: Windowed[Any] | None, value: Any, count: int) -> int | None:
        """Return the partition of a key; None for a null key."""
        raw = None if key is None else self.serde.inner.serialize(topic, key.key)
        return None if raw is None else partition_of(raw, count)


def partitioner_for(serde: Serde[Any] | None) -> WindowedPartitioner | None:
    """Return the partitioner for keys of this serde, or None where the whole key decides."""
    return WindowedPartitioner(serde) if isinstance(serde, WindowedSerde | SessionWindowedSerde) else None
