"""Topics in the embedded log: create, find and delete them, and apply their retention and compaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple, cast

from headrace.brokers.broker import TopicInfo
from headrace.brokers.checking import check_topic
from headrace.brokers.local.file import LogFile
from headrace.errors import TopicError, UnknownTopicError


class Topic(NamedTuple):
    """A topic as the file stores it."""

    name: str
    id: int
    partitions: int

    def table(self, partition: int) -> str:
        """Return the name of the table with a partition's records.

        Each partition has a table: SQLite appends to the end of a table in half the time of an insert in its middle.
        """
        return f"records_{self.id}_{partition}"


def all_topics(file: LogFile) -> dict[str, TopicInfo]:
    """Return all topics, by name."""
    rows = file.read("SELECT name, partitions, compact, retention_ms FROM topics ORDER BY name")
    return {name: TopicInfo(name, count, bool(compact), kept) for name, count, compact, kept in rows}


def find_topic(file: LogFile, name: str) -> Topic:
    """Return a topic. If it does not exist, raise a TopicError that names the existing topics."""
    found = file.read("SELECT id, partitions FROM topics WHERE name = ?", (str(name),))
    if not found:
        known = ", ".join(all_topics(file)) or "none"
        raise UnknownTopicError(f"there is no topic '{name}' in '{file.path}' (topics: {known})")
    return Topic(name, *found[0])


def end_offsets(file: LogFile, topic: Topic) -> dict[int, int]:
    """Return the offset that the next record of each partition will get."""
    ends = dict(file.read("SELECT partition, end_offset FROM partitions WHERE topic = ?", (topic.id,)))
    if not ends:
        raise topic_deleted_error(file, topic)
    return ends


def topic_deleted_error(file: LogFile, topic: Topic) -> TopicError:
    """Return the error for a topic that was deleted by someone else."""
    return TopicError(f"topic '{topic.name}' in '{file.path}' was deleted while it was being read")


def create_topic(file: LogFile, info: TopicInfo) -> None:
    """Create a topic. Raise a TopicError if it already exists."""
    check_topic(info.name, info.partitions, info.retention_ms)

    def create(connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT 1 FROM topics WHERE name = ?", (info.name,)).fetchone():
            raise TopicError(f"topic '{info.name}' already exists in '{file.path}'")
        _insert(connection, info)

    file.write(create)


def ensure_topics(file: LogFile, wanted: Mapping[str, int]) -> None:
    """Create the missing topics with these numbers of partitions. Leave existing topics as they are."""
    for name, partitions in wanted.items():
        check_topic(name, partitions, None)

    def create(connection: sqlite3.Connection) -> None:
        existing = all_topics(file)
        for name in wanted.keys() - existing.keys():
            _insert(connection, TopicInfo(name, wanted[name]))

    if not wanted.keys() <= all_topics(file).keys():  # usually all exist, and no writer has to wait
        file.write(create)


def delete_topic(file: LogFile, name: str) -> None:
    """Delete a topic and its records. Raise a TopicError if it does not exist."""

    def delete(connection: sqlite3.Connection) -> None:
        topic = find_topic(file, name)
        for partition in range(topic.partitions):
            connection.execute(f"DROP TABLE {topic.table(partition)}")
        connection.execute("DELETE FROM partitions WHERE topic = ?", (topic.id,))
        connection.execute("DELETE FROM topics WHERE id = ?", (topic.id,))

    file.write(delete)


def clean_topic(file: LogFile, name: str) -> int:
    """Delete the records that a topic's retention and compaction do not keep. Return how many."""

    def clean(connection: sqlite3.Connection) -> int:
        topic = find_topic(file, name)
        tables = [topic.table(partition) for partition in range(topic.partitions)]
        compact, retention = connection.execute(
            "SELECT compact, retention_ms FROM topics WHERE id = ?", (topic.id,)
        ).fetchone()
        gone = 0
        if retention is not None:
            found = [connection.execute(f"SELECT max(timestamp) FROM {table}").fetchone()[0] for table in tables]
            latest = max((timestamp for timestamp in found if timestamp is not None), default=0)
            for table in tables:
                delete = f"DELETE FROM {table} WHERE timestamp < ?"
                gone += connection.execute(delete, (latest - retention,)).rowcount
        if compact:
            gone += sum(connection.execute(_COMPACT.format(table=table)).rowcount for table in tables)
        if gone:
            connection.execute("UPDATE partitions SET gaps = 1 WHERE topic = ?", (topic.id,))
        return gone

    return file.write(clean)


def _insert(connection: sqlite3.Connection, info: TopicInfo) -> None:
    made = connection.execute(
        "INSERT INTO topics (name, partitions, compact, retention_ms, largest) VALUES (?, ?, ?, ?, 0)",
        (info.name, info.partitions, info.compact, info.retention_ms),
    )
    topic = Topic(info.name, cast(int, made.lastrowid), info.partitions)
    for partition in range(info.partitions):
        connection.execute("INSERT INTO partitions VALUES (?, ?, 0, 0)", (topic.id, partition))
        connection.execute(_TABLE.format(table=topic.table(partition)))


_TABLE = """
CREATE TABLE {table} (
    offset INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, sequence INTEGER NOT NULL,
    key BLOB, value BLOB, headers BLOB
)
"""

_COMPACT = """
DELETE FROM {table} WHERE offset IN (
    SELECT offset FROM (
        SELECT offset, value, key,
            row_number() OVER (PARTITION BY key ORDER BY offset DESC) AS from_last,
            max(offset) OVER () AS last_offset
        FROM {table}
    ) WHERE key IS NOT NULL AND (from_last > 1 OR (value IS NULL AND offset < last_offset))
)
"""
