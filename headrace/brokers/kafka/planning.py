"""Where batches of Kafka's topics begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from headrace.brokers.engine import Offsets
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.wording import UNKNOWN_TOPIC, explained
from headrace.errors import TopicError

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""
Ends: TypeAlias = dict[Place, int]

_ENOUGH = 0.7
"""A batch that is cut at a time need not be as large as it may be: looking for the best time would take longer."""
_WHOLE_TIME = 1 << 62


class Planner:
    """Plans batches. When more is waiting than a batch may hold, it ends at one time in all partitions.

    Kafka finds the first offset of a partition that has a given time or a later one. So records come in the order of
    their time across partitions, as far as the partitions themselves are in order: what catches up drops no more
    records as late than what was there all the time.
    """

    def __init__(self, admin: Callable[[], Admin]) -> None:
        self._admin = admin
        self._last_time = 0
        self._last_step = 0

    def plan(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where the next batch ends."""
        begin = _places(start)
        ends = self.committed_ends(begin)
        ends = {place: max(ends[place], offset) for place, offset in begin.items()}
        if limit is not None and _size(begin, ends) > limit:
            ends = self._cut(begin, ends, limit)
        return _by_topic(ends)

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return where to go on in the partitions whose records from these offsets on were deleted unread."""
        begin = _places(start)
        first = {place: offset for place, (offset, _) in self._ask(begin, OffsetSpec.earliest()).items()}
        ends = self.committed_ends(place for place, offset in begin.items() if offset > first[place])
        lost = {place: first[place] for place, offset in begin.items() if offset < first[place]}
        # An offset behind the end: the broker has lost its last records, or the topic is another one.
        lost |= {place: end for place, end in ends.items() if end < begin[place]}
        return _by_topic(lost)

    def committed_ends(self, places: Iterable[Place]) -> Ends:
        """Return where what is committed ends."""
        return {place: offset for place, (offset, _) in self._ask(places, OffsetSpec.latest()).items()}

    def _cut(self, begin: Ends, ends: Ends, limit: int) -> Ends:
        """Return the largest batch that was found to end at one time, or a share of each when one time has too much."""
        low, low_ends, high, high_ends = -1, begin, _WHOLE_TIME, ends
        time = self._guess(begin)
        while high - low > 1:
            found = self._ends_at(time, begin, ends)
            size = _size(begin, found)
            if size > limit:
                high, high_ends = time, found
            else:
                low, low_ends = time, found
                if size >= limit * _ENOUGH:
                    self._last_step, self._last_time = max(time - self._last_time, 1), time
                    return low_ends
            time = self._between(low, _size(begin, low_ends), high, _size(begin, high_ends), limit, begin)
        self._last_time = low
        return _shared(low_ends, high_ends, limit - _size(begin, low_ends))

    def _guess(self, begin: Ends) -> int:
        if self._last_time > 0 and self._last_step > 0:
            return self._last_time + self._last_step
        return self._bounds(begin)[0] + 1

    def _between(self, low: int, low_size: int, high: int, high_size: int, limit: int, begin: Ends) -> int:
        """Return a time to try next: where the limit would be if records came evenly, and half-way if that fails."""
        if low < 0 or high == _WHOLE_TIME:
            first, last = self._bounds(begin)
            low, high = max(low, min(first, high - 2)), min(high, max(last + 1, low + 2))
        wanted = (limit * (1 + _ENOUGH) / 2 - low_size) / max(high_size - low_size, 1)
        wanted = min(max(wanted, 0.02), 0.98)
        return min(max(low + int((high - low) * wanted), low + 1), high - 1)

    def _bounds(self, begin: Ends) -> tuple[int, int]:
        """Return the first and the last time that there is in any partition."""
        first = [time for _, time in self._ask(begin, OffsetSpec.for_timestamp(0)).values() if time >= 0]
        last = [time for _, time in self._ask(begin, OffsetSpec.max_timestamp()).values() if time >= 0]
        return min(first, default=0), max(last, default=0)

    def _ends_at(self, time: int, begin: Ends, ends: Ends) -> Ends:
        """Return the first offset of each partition with a time or a later one."""
        found = self._ask(begin, OffsetSpec.for_timestamp(time))
        return {
            place: ends[place] if found[place][0] < 0 else min(max(found[place][0], offset), ends[place])
            for place, offset in begin.items()
        }

    def _ask(self, places: Iterable[Place], what: OffsetSpec) -> dict[Place, tuple[int, int]]:
        """Return offset and time of each partition."""
        admin = self._admin()
        wanted = {TopicPartition(*place): what for place in places}
        if not wanted:
            return {}
        doing = "find the offsets of the topics"
        asked = admin.client.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
        found: dict[Place, tuple[int, int]] = {}
        for place, future in asked.items():
            try:
                answer = admin.answer(future, doing)
            except KafkaException as error:
                if error.args[0].code() in UNKNOWN_TOPIC:
                    raise TopicError(
                        f"topic '{place.topic}' has no partition {place.partition} at {admin.connection.address} any "
                        "more: it was deleted. Start over with headrace reset"
                    ) from None
                raise explained(error.args[0], admin.connection, doing, place.topic, "Describe") from None
            found[place.topic, place.partition] = answer.offset, answer.timestamp
        return found


def _places(offsets: Offsets) -> Ends:
    return {(topic, number): offset for topic, places in offsets.items() for number, offset in places.items()}


def _size(begin: Ends, ends: Ends) -> int:
    return sum(ends[place] - offset for place, offset in begin.items())


def _shared(low: Ends, high: Ends, left: int) -> Ends:
    """Go on from low towards high, each partition by its share."""
    waiting = max(_size(low, high), 1)
    shared = {place: offset + (high[place] - offset) * left // waiting for place, offset in low.items()}
    if shared == low:  # a share of less than a record
        first = max(low, key=lambda place: high[place] - low[place])
        shared[first] = min(low[first] + max(left, 1), high[first])
    return shared


def _by_topic(ends: Mapping[Place, int]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in ends.items():
        found.setdefault(topic, {})[partition] = offset
    return found
