"""Where a task's outputs go: to the tasks that read an internal topic, or out to the broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace.brokers.engine import EngineBroker
from headrace.brokers.partitioning import partition_of, partitions_of
from headrace.config import StreamsConfig
from headrace.spark.blocks import RECORDS_PER_BLOCK, Block, Input, Output, OutputRecord, in_pieces
from headrace.task.lanes import Causes

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
    tasks_write: bool = False
    """Whether what goes to the broker is written where tasks run: in their order, and the key decides there."""

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
            readers, ordinals = self.tasks.get(topic), map(_ordinal, mine)
            if readers is None:
                written = list(map(_written, mine))
                yield from self.for_the_writer(topic, partition, lane, index, written, causes, ordinals)
                continue
            caused = causes.at(np.fromiter(ordinals, np.int64, len(mine)))
            for number, piece in enumerate(in_pieces(RECORDS_PER_BLOCK, len(mine))):
                part = mine[piece]
                headers = list(map(_headers, part))
                yield (
                    readers[partition],
                    Input(
                        topic,
                        partition,
                        lane,
                        index + number,
                        now,
                        list(map(_key, part)),
                        list(map(_value, part)),
                        np.fromiter(map(_timestamp, part), np.int64, len(part)).tobytes(),
                        headers if any(headers) else None,
                        caused.times[piece].tobytes(),
                        caused.sequences[piece].tobytes(),
                    ),
                )

    def for_the_writer(
        self,
        topic: str,
        partition: int,
        lane: str,
        index: int,
        records: list[OutputRecord],
        causes: Causes,
        ordinals: Iterable[int],
    ) -> Iterator[tuple[int, Output]]:
        """Give records for a topic partition their blocks, which no task takes; ordinals say which cause is whose."""
        if self.tasks_write:
            yield FOR_THE_WRITER, Output(topic, partition, lane, index, records)
            return
        caused = causes.at(np.fromiter(ordinals, np.int64, len(records)))
        for number, piece in enumerate(in_pieces(RECORDS_PER_BLOCK, len(records))):
            times, sequences = caused.times[piece].tobytes(), caused.sequences[piece].tobytes()
            yield FOR_THE_WRITER, Output(topic, partition, lane, index + number, records[piece], times, sequences)

    def _sorted(self, outputs: Sequence[CausedOutput], sender: int) -> dict[tuple[str, int], Sequence[CausedOutput]]:
        """Return the outputs of each topic partition, in their order."""
        by_topic: dict[str, Sequence[CausedOutput]] = {}
        topics = set(map(_topic, outputs))
        for topic in sorted(topics):
            by_topic[topic] = outputs if len(topics) == 1 else [output for output in outputs if output[0] == topic]
        found: dict[tuple[str, int], Sequence[CausedOutput]] = {}
        for topic, sent in by_topic.items():
            chosen = self._choose(topic, sent, sender)
            if isinstance(chosen, int):
                found[topic, chosen] = sent
                continue
            for partition in np.unique(chosen).tolist():
                places = np.flatnonzero(chosen == partition).tolist()
                found[topic, partition] = sent if len(places) == len(sent) else list(map(sent.__getitem__, places))
        return found

    def _choose(self, topic: str, outputs: Sequence[CausedOutput], sender: int) -> int | npt.NDArray[np.int64]:
        """Return the partition of each output to a topic; by their keys all at once, unless somebody else chose."""
        count, suffix = self.partitions.get(topic, 0), self.key_suffixes.get(topic, 0)
        if set(map(_partition, outputs)) == {None}:
            if count < 2:
                return count - 1
            keys = list(map(_key, outputs))
            if None not in keys:
                if self.tasks_write and not suffix and topic not in self.tasks:
                    return -1
                return np.array(partitions_of([key[:-suffix] for key in keys] if suffix else keys, count), np.int64)
        chosen = [
            self.choose_partition(topic, key, sender) if given is None else given for _, given, key, *_ in outputs
        ]
        return np.array(chosen, np.int64)


def make_named_topics(broker: EngineBroker, config: StreamsConfig, outputs: Iterable[Output]) -> None:
    """Create the topics that only a record has named: dead letters, and those of a function."""
    named = {block.topic for block in outputs if block.partition < 0}
    if named:
        broker.ensure_topics(dict.fromkeys(sorted(named), config.num_partitions), config.replication_factor)


_topic, _partition, _key, _value, _timestamp, _headers, _ordinal = map(itemgetter, range(7))
_written = itemgetter(2, 3, 4, 5)
