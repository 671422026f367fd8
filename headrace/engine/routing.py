"""Where a task's outputs go: to the tasks that read an internal topic, or out to the broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from headrace.engine.messages import RECORDS_PER_BLOCK, Block, Input, Output, in_pieces
from headrace.partitioning import partition_of, partitions_of
from headrace.raw_records import OutputColumns, RecordColumns, RecordToWrite
from headrace.task.lanes import Causes

FOR_THE_WRITER = -1
"""The task number of what no task takes."""


@dataclass
class Routes:
    """The way from a topic to its readers."""

    partitions: Mapping[str, int]
    tasks: Mapping[str, Sequence[int]]
    """Of an internal topic: the task that takes each partition."""
    key_suffixes: Mapping[str, int] = field(default_factory=dict)
    tasks_write: bool = False
    """Whether what goes to the broker is written where tasks run: in their order, and the key decides there."""

    @property
    def look_at_causes(self) -> bool:
        """Whether the causes of what is sent matter: to tasks that merge it, or to a writer that puts it in order."""
        return bool(self.tasks) or not self.tasks_write

    def choose_partition(self, topic: str, key: bytes | None, sender: int) -> int:
        """Return the partition a record goes to: the key's, or for a null key the one its sender has."""
        count = self.partitions.get(topic, 0)
        if count == 1:
            return 0
        if not count:
            return -1
        if key is None:
            return sender % count
        suffix = self.key_suffixes.get(topic, 0)
        return partition_of(key[:-suffix] if suffix else key, count)

    def send(
        self,
        outputs: Iterable[tuple[str, OutputColumns]],
        causes: Causes,
        lane: str,
        index: int,
        sender: int,
        now: int,
    ) -> Iterator[tuple[int, Block]]:
        """Sort outputs by where they go, and give each destination its blocks, with the task that takes them.

        The index says which block of the lane the first one is.
        """
        for topic, sent in outputs:
            readers = self.tasks.get(topic)
            for partition, mine in self._by_partition(topic, sent, sender):
                if readers is None:
                    rows = RecordColumns(mine.keys, mine.values, mine.timestamps, mine.headers)
                    for block in self.for_the_writer(topic, partition, lane, index, rows, causes, mine.ordinals):
                        yield block
                        index += 1
                    continue
                caused = causes.at(np.fromiter(mine.ordinals, np.int64, len(mine.ordinals)))
                times = np.fromiter(mine.timestamps, np.int64, len(mine.timestamps))
                for piece in in_pieces(RECORDS_PER_BLOCK, len(times)):
                    headers = mine.headers[piece]
                    yield (
                        readers[partition],
                        Input(
                            topic,
                            partition,
                            lane,
                            index,
                            now,
                            mine.keys[piece],
                            mine.values[piece],
                            times[piece].tobytes(),
                            headers if any(headers) else None,
                            caused.times[piece].tobytes(),
                            caused.sequences[piece].tobytes(),
                        ),
                    )
                    index += 1

    def for_the_writer(
        self,
        topic: str,
        partition: int,
        lane: str,
        index: int,
        records: Sequence[RecordToWrite],
        causes: Causes,
        ordinals: Iterable[int],
    ) -> Iterator[tuple[int, Output]]:
        """Give records for a topic partition their blocks, which no task takes; ordinals say which cause is whose."""
        if self.tasks_write:  # and Spark does not get to see them
            yield FOR_THE_WRITER, Output(topic, partition, lane, index, records)
            return
        caused = causes.at(np.fromiter(ordinals, np.int64, len(records)))
        for number, piece in enumerate(in_pieces(RECORDS_PER_BLOCK, len(records))):
            times, sequences = caused.times[piece].tobytes(), caused.sequences[piece].tobytes()
            yield FOR_THE_WRITER, Output(topic, partition, lane, index + number, records[piece], times, sequences)

    def _by_partition(self, topic: str, sent: OutputColumns, sender: int) -> Iterator[tuple[int, OutputColumns]]:
        """Walk the partitions of a topic, with what goes to each, in order."""
        chosen = self._choose(topic, sent, sender)
        if isinstance(chosen, int):
            yield chosen, sent
            return
        for partition in np.unique(chosen).tolist():
            yield partition, sent.at(np.flatnonzero(chosen == partition).tolist())

    def _choose(self, topic: str, sent: OutputColumns, sender: int) -> int | npt.NDArray[np.int64]:
        """Return the partition of each output to a topic; by their keys all at once, unless somebody else chose."""
        count, suffix, keys = self.partitions.get(topic, 0), self.key_suffixes.get(topic, 0), sent.keys
        if set(sent.partitions) == {None}:
            all_have_keys = all(keys) or None not in keys  # the former is quicker
            if self.tasks_write and not suffix and topic not in self.tasks and all_have_keys:
                return -1
            if count < 2:
                return count - 1
            if all_have_keys:
                return _partitions(cast(Sequence[bytes], keys), count, suffix)
        chosen = [
            self.choose_partition(topic, key, sender) if given is None else given
            for given, key in zip(sent.partitions, keys)
        ]
        return np.array(chosen, np.int64)


def _partitions(keys: Sequence[bytes], count: int, suffix: int) -> npt.NDArray[np.int64]:
    """Return the partition of each key; where the same ones come again and again, each is hashed once."""
    distinct = list(set(keys))
    few = len(distinct) < len(keys) // 4
    hashed = distinct if few else keys
    chosen = partitions_of([key[:-suffix] for key in hashed] if suffix else hashed, count)
    if few:
        chosen = list(map(dict(zip(distinct, chosen)).__getitem__, keys))
    return np.array(chosen, np.int64)
