"""Routing: from a topic that a task writes to the tasks that read it, or to the broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from headrace.engine.messages import RECORDS_PER_MESSAGE, Routed, SentRecords, slices
from headrace.partitioning import partition_of, partitions_of
from headrace.raw_records import OutputColumns
from headrace.task.lanes import Causes

UNKNOWN_PARTITION = -1
"""The partition of a record for a topic that only a record has named: the key decides when the record is written."""


class Outlet(Protocol):
    """Takes the outputs for topics of the broker."""

    def put(
        self, lane: str, number: int, topic: str, sent: OutputColumns, causes: Causes, sender: int
    ) -> Iterable[Routed]:
        """Take a task's outputs to one topic. Return the messages that must carry them on, numbered from `number`."""


@dataclass(frozen=True)
class Routes:
    """The partitions of every topic, and the tasks that read the internal ones."""

    partitions: Mapping[str, int]
    tasks: Mapping[str, Sequence[int]]
    """The task that takes each partition of an internal topic."""
    key_suffixes: Mapping[str, int] = field(default_factory=dict)
    """How many bytes of a topic's windowed keys are their window, which does not decide the partition."""

    def send(
        self,
        outputs: Iterable[tuple[str, OutputColumns]],
        causes: Causes,
        lane: str,
        number: int,
        sender: int,
        now: int,
        outlet: Outlet,
    ) -> list[Routed]:
        """Send a task's outputs to the tasks that read them, or to the outlet. Return the messages of both.

        The first message gets `number` in its lane. `sender` is the task's partition.
        """
        sent: list[Routed] = []
        for topic, columns in outputs:
            following = number + len(sent)
            if topic in self.tasks:
                sent += self._to_tasks(topic, columns, causes, lane, following, sender, now)
            else:
                sent += outlet.put(lane, following, topic, columns, causes, sender)
        return sent

    def _to_tasks(
        self, topic: str, columns: OutputColumns, causes: Causes, lane: str, number: int, sender: int, now: int
    ) -> Iterator[Routed]:
        readers = self.tasks[topic]
        for partition, mine in self.by_partition(topic, columns, sender):
            caused = causes.at(np.fromiter(mine.ordinals, np.int64, len(mine.ordinals)))
            timestamps = np.fromiter(mine.timestamps, np.int64, len(mine.timestamps))
            for piece in slices(RECORDS_PER_MESSAGE, len(timestamps)):
                headers = mine.headers[piece]
                message = SentRecords(
                    topic,
                    partition,
                    lane,
                    number,
                    now,
                    mine.keys[piece],
                    mine.values[piece],
                    timestamps[piece].tobytes(),
                    headers if any(headers) else None,
                    caused.times[piece].tobytes(),
                    caused.sequences[piece].tobytes(),
                )
                yield readers[partition], message
                number += 1

    def choose_partition(self, topic: str, key: bytes | None, sender: int) -> int:
        """Return the partition that a record goes to. The key decides, or for a null key the sender's partition."""
        count = self.partitions.get(topic, 0)
        if count < 2:
            return count - 1  # UNKNOWN_PARTITION for an unknown topic
        if key is None:
            return sender % count
        suffix = self.key_suffixes.get(topic, 0)
        return partition_of(key[:-suffix] if suffix else key, count)

    def key_decides(self, topic: str, columns: OutputColumns) -> bool:
        """Tell whether the whole key decides the partition of every record, so that a broker's client can choose it."""
        return topic not in self.key_suffixes and set(columns.partitions) == {None} and _none_is_null(columns.keys)

    def by_partition(self, topic: str, columns: OutputColumns, sender: int) -> Iterator[tuple[int, OutputColumns]]:
        """Walk the partitions of a topic in order, each with the records that go there."""
        chosen = self._choose(topic, columns, sender)
        if isinstance(chosen, int):
            yield chosen, columns
            return
        for partition in np.unique(chosen).tolist():
            yield partition, columns.at(np.flatnonzero(chosen == partition).tolist())

    def _choose(self, topic: str, columns: OutputColumns, sender: int) -> int | npt.NDArray[np.int64]:
        """Return the partition of each record, or one for all. Hash the keys of a page together."""
        count, suffix, keys = self.partitions.get(topic, 0), self.key_suffixes.get(topic, 0), columns.keys
        if set(columns.partitions) == {None}:
            if count < 2:
                return count - 1
            if _none_is_null(keys):
                return _partitions(cast(Sequence[bytes], keys), count, suffix)
        chosen = [
            self.choose_partition(topic, key, sender) if given is None else given
            for given, key in zip(columns.partitions, keys)
        ]
        return np.array(chosen, np.int64)


def _none_is_null(keys: Sequence[bytes | None]) -> bool:
    return all(keys) or None not in keys  # the first test is quicker, but finds empty keys too


def _partitions(keys: Sequence[bytes], count: int, suffix: int) -> npt.NDArray[np.int64]:
    """Return the partition of each key. If keys repeat often, hash each once."""
    distinct = list(set(keys))
    few = len(distinct) < len(keys) // 4
    hashed = distinct if few else keys
    chosen = partitions_of([key[:-suffix] for key in hashed] if suffix else hashed, count)
    if few:
        chosen = list(map(dict(zip(distinct, chosen)).__getitem__, keys))
    return np.array(chosen, np.int64)
