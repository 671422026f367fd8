"""The seam for reading: where batches begin and end, and the records in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias

from headrace.raw_records import RawRecord

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""An offset for each partition of each topic."""


class BatchSource(Protocol):
    """Topics as an engine reads them."""

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions each topic has. This asks for less than `topics` does."""

    def topic_id(self, topic: str) -> str:
        """Return an id that differs from that of an earlier topic of the same name, which was deleted."""

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return where each partition begins."""

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return where to go on in the partitions whose records from these offsets on were deleted unread."""

    def plan_batch(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where the next batch ends that begins at these offsets and has at most `limit` records.

        Records have one order across all partitions. Of the records that are first in their partition, the one with
        the lowest timestamp comes next; of equal timestamps, the one that was appended first. A batch is a beginning
        of this order. So it ends at one time in all partitions, and the order of the records does not depend on how
        they are cut into batches.
        """

    def read_range(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        """Walk one partition's records from one offset to before another, page by page.

        The sequence is the order in which records were appended, over all topics.
        """
