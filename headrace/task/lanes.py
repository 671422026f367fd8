"""Lanes: the inputs of a batch, each in order, and the one order in which a task takes them all.

A lane is what came out of one place in order: a topic partition, or all that one task put out. Records carry their
*cause*, which is where the record that set them off stands among all records of the application: the latest timestamp
of its topic partition so far, and the order of arrival of the record that had it. Lanes are merged by cause. So a task
takes records in the order in which they would have reached it one by one, however many of them come in one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace.raw_records import RawRecord

Numbers: TypeAlias = npt.NDArray[np.int64]

LAST = (1 << 62) - 1
"""The arrival of what comes after all records of its time: a punctuation by the wall clock."""

_timestamp, _sequence = itemgetter(1), itemgetter(5)


@dataclass(frozen=True)
class Causes:
    """The causes of a run of records."""

    times: Numbers
    sequences: Numbers

    def at(self, ordinals: Numbers) -> Causes:
        """Return the causes of what the records with these ordinals put out."""
        return Causes(self.times[ordinals], self.sequences[ordinals])

    def last(self) -> tuple[int, int]:
        """Return the last one, which is also the latest."""
        return int(self.times[-1]), int(self.sequences[-1])

    def __len__(self) -> int:
        return len(self.times)


NO_CAUSES = Causes(np.empty(0, np.int64), np.empty(0, np.int64))


def unknown_causes(count: int) -> Causes:
    """Return what stands for the causes of so many records where nobody looks at them."""
    nothing = np.broadcast_to(np.int64(0), count)
    return Causes(nothing, nothing)


@dataclass(frozen=True)
class Lane:
    """Records of one topic partition of a task that came from one place, in order."""

    topic: str
    partition: int
    records: Sequence[RawRecord]
    causes: Causes

    @classmethod
    def of_source(
        cls, topic: str, partition: int, records: Sequence[RawRecord], before: tuple[int, int] = (-1, -1)
    ) -> Lane:
        """Return the lane of a topic that stands at the beginning: its records are their own causes.

        `before` is the last cause of the lane's records before these.
        """
        times = np.fromiter(map(_timestamp, records), np.int64, len(records))
        sequences = np.fromiter(map(_sequence, records), np.int64, len(records))
        latest = np.maximum(np.maximum.accumulate(times), before[0])
        # A record that goes back in time comes right after the one that it is late for, as it does with one at a time.
        reached = np.maximum(np.maximum.accumulate(np.where(latest == times, sequences, -1)), before[1])
        return cls(topic, partition, records, Causes(latest, reached))


def joined(causes: Sequence[Causes]) -> Causes:
    """Return several runs of causes as one."""
    if len(causes) == 1:
        return causes[0]
    return Causes(
        np.concatenate([part.times for part in causes] or [NO_CAUSES.times]),
        np.concatenate([part.sequences for part in causes] or [NO_CAUSES.sequences]),
    )


def merge_order(causes: Causes) -> Numbers | None:
    """Return the order that puts joined lanes in the order of their causes; None when they are in it already.

    Within a lane causes never go back, so the order of each lane is kept.
    """
    times, sequences = causes.times, causes.sequences
    if len(times) < 2:
        return None
    later = times[1:] > times[:-1]
    if bool(np.all(later | ((times[1:] == times[:-1]) & (sequences[1:] >= sequences[:-1])))):
        return None
    return np.lexsort((sequences, times))


def taken_in(order: Numbers | None, items: list[Any]) -> list[Any]:
    """Return items in a new order."""
    return items if order is None else list(map(items.__getitem__, order.tolist()))


def with_end(causes: Causes, now: int) -> Causes:
    """Return causes with one more for what a batch puts out at its end."""
    latest = int(causes.times[-1]) if len(causes) else 0
    return joined([causes, Causes(np.array([max(latest, now)], np.int64), np.array([LAST], np.int64))])
