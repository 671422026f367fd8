"""Where a task's outputs go: to the tasks that read an internal topic, or out to the broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from headrace.brokers.partitioning import partition_of, partitions_of
from headrace.spark.blocks import RECORDS_PER_BLOCK, Block, Input, Output, OutputRecord, in_pieces
from headrace.task.lanes import Causes
from headrace.task.sources import RawRecord

if TYPE_CHECKING:
    from headrace.task.task import CausedOutput

FOR_THE_WRITER = -1
"""The task number of what no task takes."""


@dataclass
class Routes:
    """The way from a topic to its readers."""

    partitions: Mapping[str, int]
    tasks: Mapping[str, Sequence[int]]
    """Of an internal topic: the task that takes each partition."""
    key_suffixes: Mapping[str, int] = field(default_factory=dict)

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
        self, outputs: Sequence[CausedOutput], causes: Causes, lane: str, index: int, sender: int, now: int
    ) -> Iterator[tuple[int, Block]]:
        """Sort outputs by where they go, and give each destination its blocks, with the task that takes them."""
        for (topic, partition), mine in self._sorted(outputs, sender).items():
            caused = causes.at(np.fromiter((output[6] for output in mine), np.int64, len(mine)))
            readers = self.tasks.get(topic)
            for number, piece in enumerate(in_pieces(RECORDS_PER_BLOCK, len(mine))):
                times, sequences = caused.times[piece], caused.sequences[piece]
                place = index + number
                if readers is None:
                    records: list[OutputRecord] = [
                        (key, value, time, headers) for _, _, key, value, time, headers, _ in mine[piece]
                    ]
                    block = Output(topic, partition, lane, place, records, times.tobytes(), sequences.tobytes())
                    yield FOR_THE_WRITER, block
                else:
                    sent: list[RawRecord] = [
                        (sequence, time, key, value, headers, sequence)
                        for (_, _, key, value, time, headers, _), sequence in zip(mine[piece], sequences.tolist())
                    ]
                    yield readers[partition], Input(topic, partition, lane, place, now, sent, times.tobytes())

    def _sorted(self, outputs: Sequence[CausedOutput], sender: int) -> dict[tuple[str, int], list[CausedOutput]]:
        """Return the outputs of each topic partition, in their order."""
        by_topic: dict[str, list[CausedOutput]] = {}
        for output in outputs:
            mine = by_topic.get(output[0])
            if mine is None:
                by_topic[output[0]] = [output]
            else:
                mine.append(output)
        found: dict[tuple[str, int], list[CausedOutput]] = {}
        for topic, sent in by_topic.items():
            chosen = self._choose(topic, sent, sender)
            if len(set(chosen)) == 1:
                found[topic, chosen[0]] = sent
                continue
            for output, partition in zip(sent, chosen):
                mine = found.get((topic, partition))
                if mine is None:
                    found[topic, partition] = [output]
                else:
                    mine.append(output)
        return found

    def _choose(self, topic: str, outputs: list[CausedOutput], sender: int) -> list[int]:
        """Return the partition of each output to a topic; by their keys all at once, unless somebody else chose."""
        count, suffix = self.partitions.get(topic, 0), self.key_suffixes.get(topic, 0)
        if count > 1 and all(output[1] is None and output[2] is not None for output in outputs):
            keys = [output[2] or b"" for output in outputs]
            return partitions_of([key[:-suffix] for key in keys] if suffix else keys, count)
        return [
            self.choose_partition(topic, output[2], sender) if output[1] is None else output[1] for output in outputs
        ]
