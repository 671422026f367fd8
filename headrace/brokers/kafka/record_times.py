"""Cut a batch at one time by reading timestamps of records, where Kafka's own index of times misleads."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from headrace.brokers.kafka.partition_offsets import PartitionId, PartitionOffsets, distance
from headrace.brokers.kafka.ranges import RangeReader

WHOLE_TIME = 1 << 62
"""Later than any timestamp."""
_TRIES = 8
"""How often to search before settling for a batch that is smaller than it could be."""
_PAGE = 500  # records to look at
_AT_ONCE = 8  # partitions to look at


class RecordTimes:
    """The timestamps of records, read from the topics."""

    def __init__(self, reader: RangeReader) -> None:
        self._reader = reader

    def cut(self, begin: PartitionOffsets, ends: PartitionOffsets, limit: int) -> PartitionOffsets:
        """Return the ends of a batch. Each partition gives its share, up to the time that all of them reach with it."""
        shares = _shares(begin, ends, limit)
        reached = self._latest_in(
            {partition: (max(begin[partition], end - _PAGE), end) for partition, end in shares.items()}
        )
        until = min(
            (time for partition, time in reached.items() if shares[partition] < ends[partition]), default=WHOLE_TIME
        )
        too_far = [partition for partition, time in reached.items() if time > until]
        first = self._latest_in({partition: (begin[partition], shares[partition]) for partition in too_far})

        def end_of(partition: PartitionId) -> int:
            low = begin[partition], first.get(partition, until)
            return self._first_after(partition, low, (shares[partition], reached[partition]), until)

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return shares | dict(zip(too_far, pool.map(end_of, too_far)))

    def latest_of_next(self, partition: PartitionId, start: int, end: int) -> int | None:
        """Return the latest timestamp of the next records from an offset on, None if there are none."""
        return max((time for _, time in self._read(partition, start, end)), default=None)

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()

    def _latest_in(self, ranges: Mapping[PartitionId, tuple[int, int]]) -> dict[PartitionId, int]:
        """Return the latest timestamp of the first records of ranges. Leave out ranges without records."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pool.map(lambda partition: self.latest_of_next(partition, *ranges[partition]), ranges)
            return {partition: time for partition, time in zip(ranges, found) if time is not None}

    def _first_after(self, partition: PartitionId, low: tuple[int, int], high: tuple[int, int], wanted: int) -> int:
        """Return the offset of the first record after a time, between two offsets whose times are given.

        Look where the record would be if records came evenly.
        """
        begin, first = low
        end, last = high
        for _ in range(_TRIES):
            share = min(max((wanted - first) / max(last - first, 1), 0.0), 1.0)
            guess = max(begin, begin + int((end - begin) * share) - _PAGE // 2)
            times = self._read(partition, guess, end)
            later = next((offset for offset, time in times if time > wanted), None)
            if later is None:  # also if there are no records because they were aborted
                begin = times[-1][0] + 1 if times else min(guess + _PAGE, end)
                if begin >= end:
                    return end
                first = max((time for _, time in times), default=first)
            elif later > times[0][0] or guess == begin:
                return later
            else:
                end, last = guess, times[0][1]
        return begin

    def _read(self, partition: PartitionId, start: int, end: int) -> list[tuple[int, int]]:
        """Return the offsets and timestamps of the next records from an offset on."""
        times: list[tuple[int, int]] = []
        for page in self._reader.pages(*partition, start, min(end, start + _PAGE)):
            times += [(record[0], record[1]) for record in page]
        return times


def _shares(begin: PartitionOffsets, ends: PartitionOffsets, limit: int) -> PartitionOffsets:
    """Return the offsets up to which each partition gives its share of the limit."""
    waiting = max(distance(begin, ends), 1)
    shares = {partition: offset + (ends[partition] - offset) * limit // waiting for partition, offset in begin.items()}
    if shares == begin:  # a share is less than a record
        longest = max(begin, key=lambda partition: ends[partition] - begin[partition])
        shares[longest] = min(begin[longest] + max(limit, 1), ends[longest])
    return shares
