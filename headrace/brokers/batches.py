"""The seam for reading: where batches begin and end, and the records in between.

Tests: `tests/brokers/local/test_batch_ends.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias

from headrace.raw_records import RawRecord

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""An offset for each partition of each topic."""


class BatchSource(Protocol):
    """Topics as an engine reads them."""

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions each topic has. This is cheaper than `topics`."""

    def topic_id(self, topic: str) -> str:
        """Return a topic's id. A topic that is deleted and created again has another one."""

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return the first offset of each partition."""

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return the offset to continue at for each partition whose next records were deleted before they were read."""

    def plan_batch(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where a batch ends that begins at these offsets and has at most `limit` records.

        Records have one order across all partitions. Each partition offers its next record. The one with the lowest
        timestamp comes first; of equal timestamps, the one that was appended first. A batch takes the beginning of
        this order. So it ends at one time in all partitions, and the order of the records does not depend on how they
        are cut into batches.
        """

    def read_range(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        """Read the records of a range, page by page."""
