"""Batches: which records each of them reads, and which tasks read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.brokers.batches import BatchSource
from headrace.engine.messages import ClockTick, TopicRange
from headrace.errors import TopicError

_LEFTOVERS = 1.05
"""How much larger than the limit a batch may be if it is the last one."""

Positions = dict[str, dict[int, int]]
"""An offset for each partition of each topic."""
RangeForTasks = tuple[TopicRange, list[int]]
"""A range, and the tasks that read it."""


class ReadPlan(msgspec.Struct, frozen=True):
    """The topics that an application reads, and the tasks that read them."""

    tasks: dict[str, list[list[int]]]
    """The tasks that read each partition of a topic."""
    resets: dict[str, str]
    """Where to begin in a topic that was never read: "earliest", "latest", or "none" for an error."""
    limit: int
    """How many records a batch may have."""
    ticking: list[int]
    """The tasks that get the time even if no records come."""
    tick_ms: int
    goes_on_after_loss: bool
    """Whether to continue if records were deleted unread."""


@dataclass(frozen=True)
class BatchEnd:
    """Where a batch begins and ends, and its clock: everything that the batch depends on.

    A batch that is tried again has the same end. So it reads the same records and sees the same time.
    """

    positions: Positions
    """Where the next batch begins."""
    begin: Positions
    ids: Mapping[str, str]
    """The id of each topic: a topic that was deleted and created again has another id."""
    now: int
    notes: list[str] = field(default_factory=list)
    """What the user should know about records that were deleted unread."""

    def to_json(self) -> dict[str, Any]:
        """Return the end in the form that the checkpoint keeps."""
        found = {
            "topics": _with_text_keys(self.positions),
            "from": _with_text_keys(self.begin),
            "ids": self.ids,
            "now": self.now,
        }
        return found | ({"notes": self.notes} if self.notes else {})

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> BatchEnd:
        """Make an end from the form that the checkpoint keeps."""
        return cls(
            _with_int_keys(found["topics"]),
            _with_int_keys(found["from"]),
            found.get("ids", {}),
            int(found["now"]),
            list(found.get("notes", [])),
        )


def _now() -> int:
    return int(time.time() * 1000)


class BatchPlanner:
    """Decides where batches end."""

    def __init__(self, plan: ReadPlan, broker: BatchSource, clock: Callable[[], int] = _now) -> None:
        self._plan, self._broker, self._clock = plan, broker, clock
        self._until: Positions | None = None
        self._planned: BatchEnd | None = None

    def first(self) -> BatchEnd:
        """Return where the first batch begins."""
        begin = self._beginnings(self._plan.tasks)
        return BatchEnd(begin, begin, self._ids(), 0)

    def stop_at_present_ends(self) -> None:
        """Read no records that come after this moment."""
        self._until = {topic: self._broker.end_offsets(topic) for topic in self._plan.tasks}

    def next(self, last: BatchEnd) -> BatchEnd | None:
        """Plan the batch that follows another. Return None if there is nothing to do."""
        plan = self._plan
        before = {topic: dict(offsets) for topic, offsets in last.positions.items()}
        ids = self._ids()
        new = [topic for topic in plan.tasks if topic not in before]
        before.update(self._beginnings(new))
        # Read a partition that was added from its first record, wherever reading begins in a new topic.
        begin = {
            topic: {partition: before[topic].get(partition, 0) for partition in range(len(tasks))}
            for topic, tasks in plan.tasks.items()
        }
        lost, notes = self._lost(begin, ids, last.ids)
        for topic, offsets in lost.items():
            begin[topic] |= offsets
        ends = self._ends(begin)
        now = max(self._clock(), last.now)
        is_due = bool(plan.ticking) and self._until is None and now - last.now >= plan.tick_ms
        if not (new or lost or ends != begin or is_due):
            return None
        self._planned = BatchEnd({**before, **ends}, begin, {**last.ids, **ids}, now, notes)
        return self._planned

    def tick(self, last: BatchEnd, now: int) -> BatchEnd:
        """Plan a batch without records, which only advances the clock."""
        self._planned = BatchEnd(last.positions, last.positions, last.ids, now)
        return self._planned

    def _ends(self, begin: Positions) -> Positions:
        ends = self._broker.plan_batch(begin, None)
        waiting = sum(end - begin[topic][number] for topic in ends for number, end in ends[topic].items())
        if waiting > self._plan.limit * _LEFTOVERS:  # a batch of a few leftovers would cost as much as a large one
            ends = self._broker.plan_batch(begin, self._plan.limit)
        if self._until is not None:
            ends = {
                topic: {
                    partition: max(min(end, self._until[topic].get(partition, end)), begin[topic][partition])
                    for partition, end in partitions.items()
                }
                for topic, partitions in ends.items()
            }
        return ends

    def ranges(self, end: BatchEnd) -> tuple[list[RangeForTasks], list[str]]:
        """Return the ranges that a batch reads, and notes for the user."""
        begin, notes = {topic: dict(offsets) for topic, offsets in end.begin.items()}, list(end.notes)
        if self._planned is None or self._planned.begin != end.begin:
            notes += self._check_again(begin, end)
        found = []
        for topic, tasks in self._plan.tasks.items():
            for partition, readers in enumerate(tasks):
                first = begin.get(topic, {}).get(partition, 0)
                last = end.positions.get(topic, {}).get(partition, 0)
                if last > first:
                    found.append((TopicRange(topic, partition, first, last, end.now), readers))
        return found, notes

    def ticks(self, end: BatchEnd) -> list[tuple[int, ClockTick]]:
        """Return the messages that give tasks the time."""
        return [(task, ClockTick(end.now)) for task in self._plan.ticking]

    # -- records that were deleted unread -----------------------------------------------------------------------------

    def _lost(self, begin: Positions, ids: Mapping[str, str], known: Mapping[str, str]) -> tuple[Positions, list[str]]:
        """Return where to continue in partitions whose next records are gone, and notes. Raise if that is an error."""
        broker = self._broker
        notes = []
        anew = [topic for topic in begin if ids[topic] != known.get(topic, ids[topic])]
        lost = {topic: broker.first_offsets(topic) for topic in anew}
        for topic in anew:
            notes.append(f"topic '{topic}' was deleted and created again since it was read")
        there = {topic: offsets for topic, offsets in begin.items() if topic not in lost}
        for topic, offsets in broker.missing(there).items():
            lost[topic] = offsets
            for partition, first in offsets.items():
                at = begin[topic][partition]
                gone = f"offsets {at} to {first - 1}" if first > at else f"all records from offset {first} on"
                notes.append(f"topic '{topic}', partition {partition}: {gone} are gone")
        if lost and not self._plan.goes_on_after_loss:
            raise TopicError(
                f"{'; '.join(notes)}. Start over with headrace reset, or set on_data_loss='continue' to continue with "
                "the records that are left"
            )
        return lost, notes

    def _check_again(self, begin: Positions, end: BatchEnd) -> list[str]:
        """Check that the records of a batch that an earlier run planned still exist. Return notes on losses."""
        ids, after = self._ids(), end.positions
        planned = {
            topic: {partition: first for partition, first in offsets.items() if first < after[topic][partition]}
            for topic, offsets in begin.items()
            if topic in ids
        }
        lost, notes = self._lost({topic: offsets for topic, offsets in planned.items() if offsets}, ids, end.ids)
        for topic, offsets in lost.items():
            if ids[topic] != end.ids.get(topic, ids[topic]):
                begin[topic] = after[topic]  # the batch was planned for an earlier topic of this name
            else:
                ends = after[topic]
                begin[topic] |= {
                    partition: min(first, ends[partition]) if first > begin[topic][partition] else ends[partition]
                    for partition, first in offsets.items()
                }
        return notes

    def _ids(self) -> dict[str, str]:
        return {topic: self._broker.topic_id(topic) for topic in self._plan.tasks}

    def _beginnings(self, topics: Iterable[str]) -> Positions:
        broker, resets = self._broker, self._plan.resets
        found = {topic: broker.first_offsets(topic) for topic in topics}
        for topic in found:
            if resets[topic] == "none":
                raise TopicError(
                    f"topic '{topic}' was never read, and its offset reset is 'none', which only continues an "
                    "earlier run. Set it to 'earliest' or 'latest'"
                )
        # These are the ends of the committed records. The records of a transaction that is open now come later.
        return found | broker.plan_batch({topic: found[topic] for topic in found if resets[topic] == "latest"}, None)


def _with_text_keys(positions: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    return {topic: {str(number): end for number, end in ends.items()} for topic, ends in positions.items()}


def _with_int_keys(found: Mapping[str, Mapping[str, int]]) -> Positions:
    return {topic: {int(number): end for number, end in ends.items()} for topic, ends in found.items()}
