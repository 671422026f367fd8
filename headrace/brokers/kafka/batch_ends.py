"""Find where batches of Kafka's topics end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import isqrt
from time import monotonic, sleep

from confluent_kafka import IsolationLevel
from confluent_kafka.admin import OffsetSpec

from headrace.brokers.batches import Offsets
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.partition_offsets import (
    PartitionId,
    PartitionOffsets,
    by_partition,
    by_topic,
    distance,
    not_before,
)
from headrace.brokers.kafka.ranges import RangeReader
from headrace.brokers.kafka.record_times import WHOLE_TIME, RecordTimes
from headrace.brokers.kafka.topics import list_offsets
from headrace.errors import HeadraceError

_ENOUGH = 0.7
"""The share of its limit that a batch must reach if it is cut at a time. To search for more would take longer."""
_TRIES = 8
"""After this many times tried, a batch of any size will do, if it is not empty."""
_PARTITIONS_TO_CHECK = 3
"""How many partitions to check for old records. If Kafka is misled about one, it places that one's records last."""
_STEP = 0.02  # seconds between two requests while waiting
_SHOWS_SECONDS = 2.0
"""How soon a committed transaction shows in all partitions."""


@dataclass(frozen=True)
class _Cut:
    """A batch that ends at one time in all partitions."""

    time: int
    until: int
    """The last time that gives the same batch."""
    ends: PartitionOffsets
    size: int
    distance: int
    """The size; negative if the records up to this time end before the batch begins."""
    later: PartitionOffsets = field(default_factory=dict)
    """The timestamp of the next record of each partition, as far as Kafka knows it."""


class BatchEndFinder:
    """Plans batches. If more records wait than a batch may hold, it ends at one time in all partitions.

    For a time, Kafka finds the first offset of a partition with this time or a later one. So records come in the order
    of their timestamps across partitions, as far as each partition is in this order. An application that catches up
    then drops no more late records than one that ran all the time.

    Kafka counts the end of a transaction as a record with the time of the commit. If a partition has transactions with
    records much older than their commits, Kafka finds everything after the first transaction at its commit time.
    So the planner looks at the records that would follow a batch. If they are older than the batch's end, it searches
    for the end in the records themselves. This takes longer, and lasts until the application has caught up.

    A transaction shows in one partition after the other. So before the first batch is cut, the planner waits a moment
    for open transactions: their records may be older than those that show already.
    """

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._admin = admin
        self._times = RecordTimes(RangeReader(connection, **{"fetch.message.max.bytes": 64 << 10}))
        self._executor = ThreadPoolExecutor(1)
        self._planned_ahead: tuple[PartitionOffsets, Future[PartitionOffsets]] | None = None
        """Where the batch begins that is planned while another one runs, and its ends."""
        self._last: PartitionOffsets = {}
        """The ends of the last batch that was cut."""
        self._by_records = False
        """Whether Kafka was misled about this batch, so that the next ones are cut by their records, too."""
        self._last_time = self._last_step = 0

    def plan(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where the next batch ends."""
        begin = by_partition(start)
        if limit is None:
            return by_topic(not_before(begin, self.committed_ends(begin)))
        ends = self._take_planned_ahead(begin)
        if ends is None:
            ends = self._plan(begin, limit)
        if ends == self._last:  # more records wait: find the end of the next batch while this one runs
            self._planned_ahead = ends, self._executor.submit(self._plan, ends, limit)
        return by_topic(ends)

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return the offset to continue at for each partition whose next records were deleted before they were read."""
        begin = by_partition(start)
        first = {partition: offset for partition, (offset, _) in self._ask(begin, OffsetSpec.earliest()).items()}
        lost = {partition: first[partition] for partition, offset in begin.items() if offset < first[partition]}
        # An offset after the end: the broker lost its last records, or the topic is another one of the same name.
        # Uncommitted records count, because "latest" may have begun after an open transaction.
        later = [partition for partition, offset in begin.items() if offset > first[partition]]
        ends = self._ask(later, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        lost |= {partition: end for partition, (end, _) in ends.items() if end < begin[partition]}
        return by_topic(lost)

    def committed_ends(self, partitions: Iterable[PartitionId]) -> PartitionOffsets:
        """Return where the committed records of partitions end."""
        return {partition: offset for partition, (offset, _) in self._ask(partitions, OffsetSpec.latest()).items()}

    def wait_until_settled(self, partitions: Iterable[PartitionId], seconds: float) -> PartitionOffsets:
        """Wait until partitions have no open transaction, for this many seconds at most. Return where they end then."""
        wanted, until = list(partitions), monotonic() + seconds
        while True:
            written = list_offsets(self._admin(), wanted, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
            ends = self.committed_ends(wanted)
            if monotonic() > until or ends == {partition: offset for partition, (offset, _) in written.items()}:
                return ends
            sleep(_STEP)

    def close(self) -> None:
        """Close the connections."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._times.close()

    def _plan(self, begin: PartitionOffsets, limit: int) -> PartitionOffsets:
        ends = not_before(begin, self.committed_ends(begin))
        if distance(begin, ends) <= limit:
            return ends
        if begin != self._last:
            ends = not_before(begin, self.wait_until_settled(begin, _SHOWS_SECONDS))
        return self._cut(begin, ends, limit)

    def _take_planned_ahead(self, begin: PartitionOffsets) -> PartitionOffsets | None:
        """Return the ends that were planned ahead, if they are for this batch."""
        if self._planned_ahead is None:
            return None
        (where, planned), self._planned_ahead = self._planned_ahead, None
        try:
            ends = planned.result()
        except HeadraceError:  # the problem may be over by now
            return None
        return ends if where == begin and ends == self._last else None  # otherwise more records may be there by now

    def _cut(self, begin: PartitionOffsets, ends: PartitionOffsets, limit: int) -> PartitionOffsets:
        """Return the ends of a batch that ends at one time in all partitions."""
        continues = begin == self._last
        if not (continues and self._by_records):
            found, self._by_records = self._cut_by_index(begin, ends, limit, continues)
        if self._by_records:
            found = self._times.cut(begin, ends, limit)
        self._last = found
        return found

    def _cut_by_index(
        self, begin: PartitionOffsets, ends: PartitionOffsets, limit: int, continues: bool
    ) -> tuple[PartitionOffsets, bool]:
        """Return the ends of a batch by Kafka's index of times, and whether Kafka was misled."""
        low = _Cut(-1, self._last_time if continues else -1, begin, 0, 0)
        high = _Cut(WHOLE_TIME, WHOLE_TIME, ends, distance(begin, ends), distance(begin, ends))
        latest = tries = 0
        while high.time - low.until > 1 and low.size < limit * _ENOUGH and not (low.size and tries > _TRIES):
            if tries == 0 and not (continues and self._last_step == 0):
                time = self._last_time + self._last_step if continues else 0
            else:
                if high.time == WHOLE_TIME and not latest:
                    latest = max(time for _, time in self._ask(begin, OffsetSpec.max_timestamp()).values())
                time = _between(low, high, latest, limit, tries)
            cut = self._cut_at(time, begin, ends)
            low, high = (low, cut) if cut.size > limit else (cut, high)
            tries += 1
        self._last_step = max(low.until - self._last_time, 1) if continues else 0
        self._last_time = low.until
        misled = self._is_misled(low, ends)
        if not low.size:  # one timestamp has more records than a batch holds
            return self._times.cut(begin, ends if misled else high.ends, limit), misled
        return low.ends, misled

    def _cut_at(self, time: int, begin: PartitionOffsets, ends: PartitionOffsets) -> _Cut:
        """Return the batch that ends before the first record of each partition with this time or a later one."""
        found = self._ask(begin, OffsetSpec.for_timestamp(time))
        stops = {
            partition: end if found[partition][0] < 0 else min(found[partition][0], end)
            for partition, end in ends.items()
        }
        until = min((later for offset, later in found.values() if offset >= 0), default=time)
        cut = not_before(begin, stops)
        later = {partition: time for partition, (_, time) in found.items()}
        return _Cut(time, max(until, time), cut, distance(begin, cut), distance(begin, stops), later)

    def _is_misled(self, cut: _Cut, ends: PartitionOffsets) -> bool:
        """Tell whether a partition continues with records older than the cut. Check those that seem to be last."""
        continuing = [partition for partition, end in ends.items() if cut.ends[partition] < end]
        for partition in sorted(continuing, key=lambda one: cut.later.get(one, 0))[-_PARTITIONS_TO_CHECK:]:
            latest = self._times.latest_of_next(partition, cut.ends[partition], ends[partition])
            if latest is not None and latest < cut.until:
                return True
        return False

    def _ask(
        self,
        partitions: Iterable[PartitionId],
        what: OffsetSpec,
        level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[PartitionId, tuple[int, int]]:
        """Return an offset and its timestamp for each partition."""
        return list_offsets(self._admin(), partitions, what, level)


def _between(low: _Cut, high: _Cut, latest: int, limit: int, tries: int) -> int:
    """Return the next time to try.

    Usually it is where the limit would be if records came evenly. Often they do not: a single record may be from next
    year, and all others from one second. So now and then it is close to the lowest possible time, or in the middle.
    """
    first, last = low.until, high.time
    if last == WHOLE_TIME:
        last = max(latest + 1, first + 2)
    if tries % 4 == 2:
        return first + isqrt(last - first)
    if tries % 4 == 3:
        return (first + last) // 2
    passed = low.size or low.distance
    wanted = (limit * (1 + _ENOUGH) / 2 - passed) / max(high.size - passed, 1)
    return min(max(first + int((last - first) * wanted), first + 1), last - 1)
