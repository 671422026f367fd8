"""The embedded log: topics in one SQLite file.

A produce is one transaction: its records become visible together, with consecutive offsets per partition, or not at
all.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from headrace.brokers.broker import Produced, TopicInfo, TopicRecord
from headrace.brokers.checking import check_partition, check_topic, start_offsets, stored
from headrace.brokers.log_file import LogFile
from headrace.brokers.partitioning import partition_of
from headrace.errors import TopicError
from headrace.records import Headers

_PAGE = 1_000
_POLL_SECONDS = 0.05

_decode_headers = msgspec.msgpack.Decoder(list[tuple[str, bytes]]).decode


class LocalBroker:
    """Topics in one SQLite file, shared by any number of processes of a machine."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.address = f"local:{self.path}"
        self._file = LogFile(self.path)
        self._turn: int | None = None

    # -- topics -----------------------------------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, *, compact: bool = False, retention_ms: int | None = None
    ) -> TopicInfo:
        """Create a topic; raise a TopicError when there is one of that name."""
        check_topic(name, partitions, retention_ms)

        def create(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM topics WHERE name = ?", (name,)).fetchone():
                raise TopicError(f"topic '{name}' exists already in '{self.path}'")
            made = connection.execute(
                "INSERT INTO topics (name, partitions, compact, retention_ms) VALUES (?, ?, ?, ?)",
                (name, partitions, bool(compact), retention_ms),
            )
            connection.executemany(
                "INSERT INTO partitions VALUES (?, ?, 0)", [(made.lastrowid, number) for number in range(partitions)]
            )

        self._file.write(create)
        return TopicInfo(name, partitions, bool(compact), retention_ms)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records; raise a TopicError when there is none."""

        def delete(connection: sqlite3.Connection) -> None:
            topic_id, _ = self._topic(name)
            connection.execute("DELETE FROM records WHERE topic = ?", (topic_id,))
            connection.execute("DELETE FROM partitions WHERE topic = ?", (topic_id,))
            connection.execute("DELETE FROM topics WHERE id = ?", (topic_id,))

        self._file.write(delete)

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics, by name."""
        rows = self._file.read("SELECT name, partitions, compact, retention_ms FROM topics ORDER BY name")
        return {name: TopicInfo(name, count, bool(compact), kept) for name, count, compact, kept in rows}

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return the offset that the next record of each partition will get."""
        topic_id, _ = self._topic(topic)
        return self._ends(topic, topic_id)

    # -- records ----------------------------------------------------------------------------------------------------

    def produce(self, topic: str, records: Iterable[Produced], partition: int | None = None) -> int:
        """Append records, all or none, and return how many; without a partition the key decides.

        Records without a key go to the partitions in turn, record by record. Without a timestamp: the time of this
        machine's clock.
        """
        now = int(time.time() * 1000)
        rows = [stored(topic, record, now) for record in records]

        def append(connection: sqlite3.Connection) -> None:
            topic_id, count = self._topic(topic)
            if partition is not None:
                check_partition(topic, partition, count)
            ends = self._ends(topic, topic_id)
            if self._turn is None:  # go on where others ended, for a process that produces little
                self._turn = sum(ends.values())
            numbered = []
            for key, value, timestamp, headers in rows:
                chosen = self._choose(key, count) if partition is None else partition
                numbered.append((topic_id, chosen, ends[chosen], timestamp, key, value, headers))
                ends[chosen] += 1
            connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", numbered)
            connection.executemany(
                "UPDATE partitions SET end_offset = ? WHERE topic = ? AND partition = ?",
                [(end, topic_id, number) for number, end in ends.items()],
            )

        self._file.write(append)
        return len(rows)

    def records(
        self,
        topic: str,
        *,
        start: Mapping[int, int] | None = None,
        until_end: bool = True,
        read_committed: bool = True,
    ) -> Iterator[TopicRecord]:
        """Walk a topic's records, of each partition in order; from the beginning unless `start` gives offsets.

        Stops at what was the end at the call, or, without `until_end`, waits for more. Everything in the embedded log
        is committed.
        """
        topic_id, count = self._topic(topic)
        position = start_offsets(topic, start, count)
        return self._walk(topic, topic_id, position, self._ends(topic, topic_id), until_end)

    def range(self, topic: str, partition: int, start: int, end: int) -> Iterator[TopicRecord]:
        """Walk one partition's records from one offset to before another."""
        topic_id, count = self._topic(topic)
        check_partition(topic, partition, count)
        return self._range(topic, topic_id, partition, start, end)

    def clean(self, topic: str) -> int:
        """Delete what retention and compaction no longer keep; return how many records went.

        Retention counts from the topic's latest timestamp. Compaction keeps the last record of every key, and a
        delete (a null value) only while it is the partition's last record. Records without a key are no versions of
        anything: compaction leaves them.
        """

        def delete(connection: sqlite3.Connection) -> int:
            topic_id, _ = self._topic(topic)
            compact, retention, latest = connection.execute(
                "SELECT compact, retention_ms, (SELECT max(timestamp) FROM records WHERE topic = id) "
                "FROM topics WHERE id = ?",
                (topic_id,),
            ).fetchone()
            gone = 0
            if retention is not None and latest is not None:
                gone += connection.execute(
                    "DELETE FROM records WHERE topic = ? AND timestamp < ?", (topic_id, latest - retention)
                ).rowcount
            if compact:
                gone += connection.execute(_COMPACT, (topic_id, topic_id)).rowcount
            return gone

        return self._file.write(delete)

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

    def _topic(self, name: str) -> tuple[int, int]:
        """Return a topic's id and how many partitions it has."""
        found = self._file.read("SELECT id, partitions FROM topics WHERE name = ?", (str(name),))
        if not found:
            known = ", ".join(self.topics()) or "none"
            raise TopicError(f"there is no topic '{name}' in '{self.path}' (topics: {known})")
        return found[0][0], found[0][1]

    def _ends(self, topic: str, topic_id: int) -> dict[int, int]:
        ends = dict(self._file.read("SELECT partition, end_offset FROM partitions WHERE topic = ?", (topic_id,)))
        if not ends:
            raise TopicError(f"topic '{topic}' in '{self.path}' was deleted while it was read")
        return ends

    def _choose(self, key: bytes | None, partitions: int) -> int:
        if key is not None:
            return partition_of(key, partitions)
        assert self._turn is not None
        self._turn += 1
        return (self._turn - 1) % partitions

    def _walk(
        self, topic: str, topic_id: int, position: dict[int, int], ends: dict[int, int], until_end: bool
    ) -> Iterator[TopicRecord]:
        while True:
            for partition, end in ends.items():
                yield from self._range(topic, topic_id, partition, position[partition], end)
                position[partition] = max(position[partition], end)
            ends = self._ends(topic, topic_id)
            if until_end:
                return
            while all(end <= position[partition] for partition, end in ends.items()):
                time.sleep(_POLL_SECONDS)
                ends = self._ends(topic, topic_id)

    def _range(self, topic: str, topic_id: int, partition: int, start: int, end: int) -> Iterator[TopicRecord]:
        while start < end:
            rows = self._file.read(
                "SELECT offset, timestamp, key, value, headers FROM records "
                "WHERE topic = ? AND partition = ? AND offset >= ? AND offset < ? ORDER BY offset LIMIT ?",
                (topic_id, partition, start, end, _PAGE),
            )
            for offset, timestamp, key, value, headers in rows:
                said: Headers = [] if headers is None else _decode_headers(headers)
                yield TopicRecord(topic, partition, offset, timestamp, key, value, said)
            if len(rows) < _PAGE:
                return
            start = rows[-1][0] + 1


_COMPACT = """
DELETE FROM records WHERE topic = ? AND (partition, offset) IN (
    SELECT partition, offset FROM (
        SELECT partition, offset, value, key,
            row_number() OVER (PARTITION BY partition, key ORDER BY offset DESC) AS from_last,
            max(offset) OVER (PARTITION BY partition) AS last_offset
        FROM records WHERE topic = ?
    ) WHERE key IS NOT NULL AND (from_last > 1 OR (value IS NULL AND offset < last_offset))
)
"""
