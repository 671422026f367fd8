"""The embedded log: topics in one SQLite file.

A call of `produce` is one transaction: its records become visible together, with consecutive offsets in each partition,
or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.brokers.batches import Offsets
from headrace.brokers.broker import Produced, TopicInfo, TopicRecord
from headrace.brokers.checking import check_partition, start_offsets
from headrace.brokers.local import batch_ends, reading, runs, topics, writing
from headrace.brokers.local.file import LogFile
from headrace.brokers.local.topics import Topic, end_offsets, find_topic
from headrace.brokers.runs import Run
from headrace.brokers.writing import PartitionRecords, TaskTransaction
from headrace.errors import StreamsError
from headrace.raw_records import RawRecord

_POLL_SECONDS = 0.05


class LocalBroker:
    """Topics in one SQLite file, which any number of processes on a machine may share."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.address = f"local:{self.path}"
        self._file = LogFile(self.path)
        self._turns: dict[int, int] = {}

    # -- topics -----------------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, *, compact: bool = False, retention_ms: int | None = None
    ) -> TopicInfo:
        """Create a topic. Raise a TopicError if it already exists."""
        made = TopicInfo(name, partitions, bool(compact), retention_ms)
        topics.create_topic(self._file, made)
        return made

    def ensure_topics(self, wanted: Mapping[str, int], replication_factor: int = -1) -> None:
        """Create the missing topics with these numbers of partitions. Leave existing topics as they are."""
        topics.ensure_topics(self._file, wanted)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raise a TopicError if it does not exist."""
        topics.delete_topic(self._file, name)

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics, by name."""
        return topics.all_topics(self._file)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""
        return end_offsets(self._file, find_topic(self._file, topic))

    def clean(self, topic: str) -> int:
        """Delete the records that retention and compaction do not keep. Return how many.

        Retention counts from the topic's latest timestamp. Compaction keeps the last record of every key, and a
        delete (a null value) only while it is the partition's last record. Compaction keeps records without a key.
        """
        return topics.clean_topic(self._file, topic)

    # -- records ----------------------------------------------------------------------------------------------------

    def produce(self, topic: str, records: Iterable[Produced], partition: int | None = None) -> int:
        """Append records, all or none, and return how many. Without a partition the key decides.

        Records without a key go to the partitions in turn, record by record. A record without a timestamp gets the
        time of this machine's clock.
        """
        return writing.produce(self._file, self._turns, topic, records, partition)

    def records(
        self,
        topic: str,
        *,
        start: Mapping[int, int] | None = None,
        until_end: bool = True,
        read_committed: bool = True,
    ) -> Iterator[TopicRecord]:
        """Read a topic's records, in order within each partition, from the beginning or from the offsets in `start`.

        Stop at the end that the topic had at the call. With `until_end=False`, wait for new records instead. All
        records in the embedded log are committed.
        """
        found = find_topic(self._file, topic)
        offsets = start_offsets(topic, start, found.partitions)
        return self._read(found, offsets, end_offsets(self._file, found), until_end)

    def range(self, topic: str, partition: int, start: int, end: int) -> Iterator[TopicRecord]:
        """Read the records of a range."""
        found = find_topic(self._file, topic)
        check_partition(topic, partition, found.partitions)
        return self._range(found, partition, start, end)

    # -- for an engine ----------------------------------------------------------------------------------------------

    keeps_changelogs = False

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions each topic has."""
        return {name: info.partitions for name, info in self.topics().items()}

    def topic_id(self, topic: str) -> str:
        """Return a topic's id. A topic that is deleted and created again has another one."""
        return str(find_topic(self._file, topic).id)

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return 0 for each partition: deleted records leave a gap, which costs nothing to read."""
        return dict.fromkeys(range(find_topic(self._file, topic).partitions), 0)

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return nothing: records are deleted only by `clean`, when a user calls it."""
        return {}

    def plan_batch(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where a batch ends that begins at these offsets and has at most `limit` records."""
        return batch_ends.plan_batch(self._file, start, limit)

    def read_range(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
        """Read the records of a range, page by page."""
        return reading.read_range(self._file, topic, partition, start, end)

    def begin_run(
        self,
        application_id: str,
        lineage: str,
        *,
        exactly_once: bool = True,
        changelogs: Iterable[TopicInfo] = (),
        replication_factor: int = -1,
    ) -> Run:
        """Begin a run of an application. From now on, earlier runs cannot write."""
        return runs.begin_run(self._file, application_id, lineage)

    def end_run(self, run: Run) -> None:
        """Do nothing: a run has nothing open."""

    def run_number(self, application_id: str) -> int:
        """Return the number of an application's latest run, 0 if there is none."""
        return runs.run_number(self._file, application_id)

    def last_batch(self, application_id: str) -> tuple[str, int] | None:
        """Return the lineage of an application's latest run and the last batch written in it, -1 for none."""
        return runs.last_batch(self._file, application_id)

    def write_batch(self, run: Run, batch: int, records: Iterable[PartitionRecords], positions: Offsets) -> bool:
        """Append a batch's records and save the positions, all or nothing; False if it was written before."""
        return runs.write_batch(self._file, self._turns, run, batch, records, positions)

    def permit(self, run: Run) -> None:
        """Return None: a file has one writer at a time, so the driver writes for all tasks."""

    def begin_task_transaction(self, permit: object, batch: int) -> TaskTransaction:
        """Raise an error: tasks get no permit here."""
        raise StreamsError(f"{self.address}: only the process that began a run can write its batches")

    def wait_until_visible(self, topics: Iterable[str]) -> None:
        """Do nothing: a commit is visible at once."""

    def positions(self, application_id: str) -> dict[str, dict[int, int]]:
        """Return the next offset to read, by topic and partition, as of the last batch that was written."""
        return runs.positions(self._file, application_id)

    def forget_application(self, application_id: str) -> None:
        """Forget an application's runs, batches and positions. A process that still runs it cannot write any more."""
        runs.forget_application(self._file, application_id)

    # -- closing ----------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the broker was closed."""
        return self._file.closed

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _read(
        self, topic: Topic, offsets: dict[int, int], ends: dict[int, int], until_end: bool
    ) -> Iterator[TopicRecord]:
        while True:
            for partition, end in ends.items():
                yield from self._range(topic, partition, offsets[partition], end)
                offsets[partition] = max(offsets[partition], end)
            ends = end_offsets(self._file, topic)
            if until_end:
                return
            while all(end <= offsets[partition] for partition, end in ends.items()):
                time.sleep(_POLL_SECONDS)
                ends = end_offsets(self._file, topic)

    def _range(self, topic: Topic, partition: int, start: int, end: int) -> Iterator[TopicRecord]:
        for page in reading.pages(self._file, topic, partition, start, end):
            for offset, timestamp, key, value, headers, _ in page:
                yield TopicRecord(topic.name, partition, offset, timestamp, key, value, headers or [])
