"""Where batches of Kafka's topics begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import isqrt
from time import monotonic, sleep
from typing import TypeAlias

from confluent_kafka import IsolationLevel
from confluent_kafka.admin import OffsetSpec

from headrace.brokers.batches import Offsets
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.ranges import RangeReader
from headrace.brokers.kafka.topics import list_offsets
from headrace.errors import HeadraceError

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""
Ends: TypeAlias = dict[Place, int]

_ENOUGH = 0.7
"""A batch that is cut at a time need not be as large as it may be: looking for the best time would take longer."""
_TRIES = 8
"""After so many times that were tried, any batch will do that has something in it."""
_WHOLE_TIME = 1 << 62
_SEEN = 3
"""Of so many partitions the records are looked at: what misleads Kafka in one seems to be later than all others."""
_PAGE = 500  # records to look at
_AT_ONCE = 8  # partitions to look at
_STEP = 0.02  # seconds between two looks
_TRANSACTION_SHOWS = 2.0  # seconds in which one that was committed shows everywhere


@dataclass(frozen=True)
class _Cut:
    """A batch that ends at one time in all partitions."""

    time: int
    until: int
    """The last time for which it is the same."""
    ends: Ends
    size: int
    distance: int
    """Its size; less than none if that time was reached before the batch begins."""
    later: Ends = field(default_factory=dict)
    """The time of what follows in each partition, as far as Kafka knows."""


class Planner:
    """Plans batches. When more is waiting than a batch may hold, it ends at one time in all partitions.

    Kafka finds the first offset of a partition that has a given time or a later one. So records come in the order of
    their time across partitions, as far as the partitions themselves are in order: what catches up drops no more
    records as late than what was there all the time.

    To Kafka the end of a transaction is a record, too, with the time at which it was committed. In a partition with
    transactions whose records are from long before that, everything behind the first of them is found at that time. So
    the records that would follow on a batch are looked at; where they are older than the time at which it ends, that
    time is looked for in the records themselves. That takes longer, and is kept up until everything is caught up.

    And a transaction shows in one partition after the other. So before the first batch is cut, one that is open is
    waited for, a moment: its records may be older than those that show already.
    """

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._admin = admin
        self._reader = RangeReader(connection, **{"fetch.message.max.bytes": 64 << 10})
        self._ahead = ThreadPoolExecutor(1)
        self._foreseen: tuple[Ends, Future[Ends]] | None = None
        self._last: Ends = {}
        self._by_records = False
        self._last_time = self._last_step = 0

    def plan(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where the next batch ends."""
        begin = _places(start)
        if limit is None:
            return _by_topic(_not_before(begin, self.committed_ends(begin)))
        ends = self._foreseen_from(begin)
        if ends is None:
            ends = self._plan(begin, limit)
        if ends == self._last:  # more is waiting: while this batch runs there is time to see where the next one ends
            self._foreseen = ends, self._ahead.submit(self._plan, ends, limit)
        return _by_topic(ends)

    def _plan(self, begin: Ends, limit: int) -> Ends:
        ends = _not_before(begin, self.committed_ends(begin))
        if _size(begin, ends) <= limit:
            return ends
        if begin != self._last:
            ends = _not_before(begin, self.wait_until_settled(begin, _TRANSACTION_SHOWS))
        return self._cut(begin, ends, limit)

    def _foreseen_from(self, begin: Ends) -> Ends | None:
        """Return the batch that was planned ahead, if it is this one."""
        if self._foreseen is None:
            return None
        (where, planned), self._foreseen = self._foreseen, None
        try:
            ends = planned.result()
        except HeadraceError:  # it may be gone by now
            return None
        return ends if where == begin and ends == self._last else None  # else there may be more by now

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return where to go on in the partitions whose records from these offsets on were deleted unread."""
        begin = _places(start)
        first = {place: offset for place, (offset, _) in self._ask(begin, OffsetSpec.earliest()).items()}
        lost = {place: first[place] for place, offset in begin.items() if offset < first[place]}
        # An offset behind the end: the broker has lost its last records, or the topic is another one. What begins at
        # the latest record may begin behind a transaction that is open.
        later = [place for place, offset in begin.items() if offset > first[place]]
        ends = self._ask(later, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        lost |= {place: end for place, (end, _) in ends.items() if end < begin[place]}
        return _by_topic(lost)

    def committed_ends(self, places: Iterable[Place]) -> Ends:
        """Return where what is committed ends."""
        return {place: offset for place, (offset, _) in self._ask(places, OffsetSpec.latest()).items()}

    def wait_until_settled(self, places: Iterable[Place], seconds: float) -> Ends:
        """Wait until no transaction is open in partitions, but no longer than that; return where they then end."""
        wanted, until = list(places), monotonic() + seconds
        while True:
            written = list_offsets(self._admin(), wanted, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
            ends = self.committed_ends(wanted)
            if monotonic() > until or ends == {place: offset for place, (offset, _) in written.items()}:
                return ends
            sleep(_STEP)

    def close(self) -> None:
        """Let go of the connections."""
        self._ahead.shutdown(wait=False, cancel_futures=True)
        self._reader.close()

    def _cut(self, begin: Ends, ends: Ends, limit: int) -> Ends:
        """Return a batch that ends at one time in all partitions."""
        goes_on = begin == self._last
        if not (goes_on and self._by_records):
            found, self._by_records = self._cut_by_index(begin, ends, limit, goes_on)
        if self._by_records:
            found = self._cut_by_records(begin, ends, limit)
        self._last = found
        return found

    def _cut_by_index(self, begin: Ends, ends: Ends, limit: int, goes_on: bool) -> tuple[Ends, bool]:
        """Return a batch that ends at one time, as Kafka finds it, and whether Kafka was misled."""
        low = _Cut(-1, self._last_time if goes_on else -1, begin, 0, 0)
        high = _Cut(_WHOLE_TIME, _WHOLE_TIME, ends, _size(begin, ends), _size(begin, ends))
        latest = tries = 0
        while high.time - low.until > 1 and low.size < limit * _ENOUGH and not (low.size and tries > _TRIES):
            if tries == 0 and not (goes_on and self._last_step == 0):
                time = self._last_time + self._last_step if goes_on else 0
            else:
                if high.time == _WHOLE_TIME and not latest:
                    latest = max(time for _, time in self._ask(begin, OffsetSpec.max_timestamp()).values())
                time = _between(low, high, latest, limit, tries)
            cut = self._at(time, begin, ends)
            low, high = (low, cut) if cut.size > limit else (cut, high)
            tries += 1
        self._last_step = max(low.until - self._last_time, 1) if goes_on else 0
        self._last_time = low.until
        misled = self._is_misled(low, ends)
        if not low.size:  # more records of one time than a batch holds
            return self._cut_by_records(begin, ends if misled else high.ends, limit), misled
        return low.ends, misled

    def _at(self, time: int, begin: Ends, ends: Ends) -> _Cut:
        """Return the batch that ends before the first record of each partition with a time or a later one."""
        found = self._ask(begin, OffsetSpec.for_timestamp(time))
        stops = {place: end if found[place][0] < 0 else min(found[place][0], end) for place, end in ends.items()}
        until = min((later for offset, later in found.values() if offset >= 0), default=time)
        cut = {place: max(stop, begin[place]) for place, stop in stops.items()}
        later = {place: time for place, (_, time) in found.items()}
        return _Cut(time, max(until, time), cut, _size(begin, cut), _size(begin, stops), later)

    def _is_misled(self, cut: _Cut, ends: Ends) -> bool:
        """Tell whether a partition goes on with records of before the cut. Those that seem to go on last are seen."""
        going_on = [place for place, end in ends.items() if cut.ends[place] < end]
        for place in sorted(going_on, key=lambda place: cut.later.get(place, 0))[-_SEEN:]:
            times = self._times(place, cut.ends[place], ends[place])
            if times and max(time for _, time in times) < cut.until:
                return True
        return False

    def _cut_by_records(self, begin: Ends, ends: Ends, limit: int) -> Ends:
        """Return a batch in which each partition gives its share, up to the time that all of them reach with it."""
        shared = _shared(begin, ends, limit)
        reached = self._reached({place: (max(begin[place], end - _PAGE), end) for place, end in shared.items()})
        until = min((time for place, time in reached.items() if shared[place] < ends[place]), default=_WHOLE_TIME)
        too_far = [place for place, time in reached.items() if time > until]
        since = self._reached({place: (begin[place], shared[place]) for place in too_far})
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = pool.map(
                lambda place: self._first_after(
                    place, (begin[place], since.get(place, until)), (shared[place], reached[place]), until
                ),
                too_far,
            )
            return shared | dict(zip(too_far, found))

    def _reached(self, stretches: Mapping[Place, tuple[int, int]]) -> dict[Place, int]:
        """Return the latest time of some records from the beginning of stretches, where there are any."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = dict(zip(stretches, pool.map(lambda place: self._times(place, *stretches[place]), stretches)))
        return {place: max(time for _, time in times) for place, times in found.items() if times}

    def _first_after(self, place: Place, low: tuple[int, int], high: tuple[int, int], wanted: int) -> int:
        """Return the offset of the first record after a time, between two offsets of which the times are given.

        It is looked for where it would be if records came evenly.
        """
        begin, first = low
        end, last = high
        for _ in range(_TRIES):
            share = min(max((wanted - first) / max(last - first, 1), 0.0), 1.0)
            guess = max(begin, begin + int((end - begin) * share) - _PAGE // 2)
            times = self._times(place, guess, end)
            later = next((offset for offset, time in times if time > wanted), None)
            if later is None:  # also where there are none, for they were aborted
                begin = times[-1][0] + 1 if times else min(guess + _PAGE, end)
                if begin >= end:
                    return end
                first = max((time for _, time in times), default=first)
            elif later > times[0][0] or guess == begin:
                return later
            else:
                end, last = guess, times[0][1]
        return begin

    def _times(self, place: Place, start: int, end: int) -> list[tuple[int, int]]:
        """Return offsets and times of some records from an offset on."""
        found: list[tuple[int, int]] = []
        for page in self._reader.rows(*place, start, min(end, start + _PAGE)):
            found += [(row[0], row[1]) for row in page]
        return found

    def _ask(
        self, places: Iterable[Place], what: OffsetSpec, level: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> dict[Place, tuple[int, int]]:
        """Return offset and time of each partition."""
        return list_offsets(self._admin(), places, what, level)


def _between(low: _Cut, high: _Cut, latest: int, limit: int, tries: int) -> int:
    """Return a time to try next.

    It is where the limit would be if records came evenly. Often they do not: a single one may be of next year, and all
    others of one second. So now and then it is close to the lowest that is possible, or in the middle.
    """
    first, last = low.until, high.time
    if last == _WHOLE_TIME:
        last = max(latest + 1, first + 2)
    if tries % 4 == 2:
        return first + isqrt(last - first)
    if tries % 4 == 3:
        return (first + last) // 2
    passed = low.size or low.distance
    wanted = (limit * (1 + _ENOUGH) / 2 - passed) / max(high.size - passed, 1)
    return min(max(first + int((last - first) * wanted), first + 1), last - 1)


def _places(offsets: Offsets) -> Ends:
    return {(topic, number): offset for topic, places in offsets.items() for number, offset in places.items()}


def _not_before(begin: Ends, ends: Ends) -> Ends:
    return {place: max(ends[place], offset) for place, offset in begin.items()}


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
