"""Lanes: the inputs of a batch, each in order, and how a task merges them.

The records of a lane come in order from one topic partition or from one other task. Every record has a *cause*, which
says where the record that led to it stands among all records that the application reads. A cause has two parts: the
highest timestamp so far in that record's topic partition, and the sequence of the record that had it. Lanes are merged
by cause. So a task takes records in the order in which they would have come one by one, in batches of any size.

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
"""The sequence of a punctuation by the wall clock. It comes after all records of its time."""

_timestamp, _sequence = itemgetter(1), itemgetter(5)


@dataclass(frozen=True)
class Causes:
    """The causes of several records, by columns."""

    times: Numbers
    sequences: Numbers

    def at(self, ordinals: Numbers) -> Causes:
        """Return the causes of the records with these ordinals. Their outputs have the same causes."""
        return Causes(self.times[ordinals], self.sequences[ordinals])

    def last(self) -> tuple[int, int]:
        """Return the last cause, which is also the latest."""
        return int(self.times[-1]), int(self.sequences[-1])

    def __len__(self) -> int:
        return len(self.times)


NO_CAUSES = Causes(np.empty(0, np.int64), np.empty(0, np.int64))


def unknown_causes(count: int) -> Causes:
    """Return zeros instead of causes, for records whose causes are not used."""
    zeros = np.broadcast_to(np.int64(0), count)
    return Causes(zeros, zeros)


@dataclass(frozen=True)
class Lane:
    """Records of one topic partition that come to a task, in order, from the topic or from one other task."""

    topic: str
    partition: int
    records: Sequence[RawRecord]
    causes: Causes

    @classmethod
    def of_source(
        cls, topic: str, partition: int, records: Sequence[RawRecord], before: tuple[int, int] = (-1, -1)
    ) -> Lane:
        """Return the lane of a topic that the application reads. Its records are their own causes.

        `before` is the last cause of the lane's records before these.
        """
        times = np.fromiter(map(_timestamp, records), np.int64, len(records))
        sequences = np.fromiter(map(_sequence, records), np.int64, len(records))
        latest = np.maximum(np.maximum.accumulate(times), before[0])
        # A record that goes back in time comes right after the one before it, as it does if records come one by one.
        reached = np.maximum(np.maximum.accumulate(np.where(latest == times, sequences, -1)), before[1])
        return cls(topic, partition, records, Causes(latest, reached))


def joined(causes: Sequence[Causes]) -> Causes:
    """Join the causes of several lanes or pages."""
    if len(causes) == 1:
        return causes[0]
    return Causes(
        np.concatenate([one.times for one in causes] or [NO_CAUSES.times]),
        np.concatenate([one.sequences for one in causes] or [NO_CAUSES.sequences]),
    )


def merge_order(causes: Causes) -> Numbers | None:
    """Return the indexes that sort joined lanes by cause; None if they are sorted already.

    Causes never go back within a lane, so each lane keeps its order.
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
    """Return the causes and one more, for the outputs at the end of a batch."""
    latest = int(causes.times[-1]) if len(causes) else 0
    return joined([causes, Causes(np.array([max(latest, now)], np.int64), np.array([LAST], np.int64))])
