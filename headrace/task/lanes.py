"""Lanes: the inputs of a batch, each in order, and the one order in which a task takes them all.

The records of a lane come from one place in order: from a topic partition, or from one other task. Every record has a
*cause*: a position in the order of all records that the application reads. It is the highest timestamp so far in the
topic partition of the record that set this one off, and the sequence of the record that had this timestamp. Lanes are
merged by cause. So a task takes records in the order in which they would have come one by one, however many of them
come in one batch.

Kafka Streams' PartitionGroup plays this role: it takes the queue whose head has the lowest timestamp.
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
"""The sequence of a punctuation by the wall clock: it comes after all records of its time."""

_timestamp, _sequence = itemgetter(1), itemgetter(5)


@dataclass(frozen=True)
class Causes:
    """The causes of several records, by columns."""

    times: Numbers
    sequences: Numbers

    def at(self, ordinals: Numbers) -> Causes:
        """Return the causes of the records with these ordinals, which their outputs have too."""
        return Causes(self.times[ordinals], self.sequences[ordinals])

    def last(self) -> tuple[int, int]:
        """Return the last one, which is also the latest."""
        return int(self.times[-1]), int(self.sequences[-1])

    def __len__(self) -> int:
        return len(self.times)


NO_CAUSES = Causes(np.empty(0, np.int64), np.empty(0, np.int64))


def unknown_causes(count: int) -> Causes:
    """Return zeros for the causes of some records, where nothing looks at them."""
    zeros = np.broadcast_to(np.int64(0), count)
    return Causes(zeros, zeros)


@dataclass(frozen=True)
class Lane:
    """Records of one topic partition that come to a task from one place, in order."""

    topic: str
    partition: int
    records: Sequence[RawRecord]
    causes: Causes

    @classmethod
    def of_source(
        cls, topic: str, partition: int, records: Sequence[RawRecord], before: tuple[int, int] = (-1, -1)
    ) -> Lane:
        """Return the lane of a topic that the application reads: its records are their own causes.

        `before` is the last cause of the lane's records before these.
        """
        times = np.fromiter(map(_timestamp, records), np.int64, len(records))
        sequences = np.fromiter(map(_sequence, records), np.int64, len(records))
        latest = np.maximum(np.maximum.accumulate(times), before[0])
        # A record that goes back in time comes right after the one that it is late for, as it does with one at a time.
        reached = np.maximum(np.maximum.accumulate(np.where(latest == times, sequences, -1)), before[1])
        return cls(topic, partition, records, Causes(latest, reached))


def joined(causes: Sequence[Causes]) -> Causes:
    """Return the causes of several lanes or pages as one."""
    if len(causes) == 1:
        return causes[0]
    return Causes(
        np.concatenate([one.times for one in causes] or [NO_CAUSES.times]),
        np.concatenate([one.sequences for one in causes] or [NO_CAUSES.sequences]),
    )


def merge_order(causes: Causes) -> Numbers | None:
    """Return the indexes that put joined lanes in the order of their causes; None if they are in it already.

    Within a lane causes never go back, so each lane keeps its order.
    """
    times, sequences = causes.times, causes.sequences
    if len(times) < 2:
        return None
    later = times[1:] > times[:-1]
    if bool(np.all(later | ((times[1:] == times[:-1]) & (sequences[1:] >= sequences[:-1])))):
        return None
    return np.lexsort((sequences, times))


def taken_in(order: Numbers | None, items: list[Any]) -> list[Any]:
    """Return items in an order that `merge_order` gave."""
    return items if order is None else list(map(items.__getitem__, order.tolist()))


def with_end(causes: Causes, now: int) -> Causes:
    """Return causes with one more, for the outputs at the end of a batch."""
    latest = int(causes.times[-1]) if len(causes) else 0
    return joined([causes, Causes(np.array([max(latest, now)], np.int64), np.array([LAST], np.int64))])
