"""Appending records to the embedded log, many at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, cast

from headrace.brokers.broker import Produced
from headrace.brokers.checking import check_partition, stored
from headrace.brokers.local.file import LogFile
from headrace.brokers.local.topics import Topic, end_offsets, find_topic
from headrace.partitioning import partitions_of

AT_ONCE = 10_000
"""So many records are worked on together: enough for what a round costs, and few enough for the processor's cache."""
_ROWS_OF_AN_INSERT = 50


class Columns(NamedTuple):
    """Records of one topic, column by column; the headers as they are stored, None when no record has any."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps: Sequence[int]
    headers: Sequence[bytes | None] | None
    sequences: Sequence[int]


def produce(
    file: LogFile, turns: dict[int, int], topic: str, records: Iterable[Produced], partition: int | None
) -> int:
    """Append records to a topic, all or none, and return how many."""
    now = int(time.time() * 1000)
    rows = [stored(topic, record, now) for record in records]

    def append(connection: sqlite3.Connection) -> None:
        appender = Appender(file, connection, turns)
        found = appender.topic(topic)
        if partition is not None:
            check_partition(topic, partition, found.partitions)
        for begin in range(0, len(rows), AT_ONCE):
            part = rows[begin : begin + AT_ONCE]
            headers = [row[3] for row in part]
            columns = Columns(
                [row[0] for row in part],
                [row[1] for row in part],
                [row[2] for row in part],
                headers if any(headers) else None,
                appender.next_sequences(len(part)),
            )
            appender.append(topic, columns, [partition] * len(part))
        appender.finish()

    file.write(append)
    return len(rows)


class Appender:
    """Appends records within a transaction; `finish` it before that ends.

    The turns tell, by a topic's id, which partition is next for a record without a key.
    """

    def __init__(self, file: LogFile, connection: sqlite3.Connection, turns: dict[int, int]) -> None:
        self._file = file
        self._connection = connection
        self._turns = turns
        self._topics: dict[str, Topic] = {}
        self._ends: dict[str, dict[int, int]] = {}
        self._grown: set[tuple[str, int]] = set()
        self._largest: dict[str, int] = {}
        (self._sequence,) = connection.execute("SELECT value FROM counters WHERE name = 'next sequence'").fetchone()

    def topic(self, name: str) -> Topic:
        """Return a topic, or raise a TopicError when there is none."""
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = find_topic(self._file, name)
            ends = self._ends[name] = end_offsets(self._file, topic)
            # Go on where others ended, for a process that produces little.
            self._turns.setdefault(topic.id, sum(ends.values()))
        return topic

    def next_sequences(self, count: int) -> range:
        """Return the sequences of the next so many records."""
        self._sequence += count
        return range(self._sequence - count, self._sequence)

    def append(self, name: str, columns: Columns, partitions: Sequence[int | None]) -> None:
        """Append records, at least one, to a topic; where no partition is given the key decides."""
        topic = self.topic(name)
        largest_key, null_keys = _measure(columns.keys)
        largest_value, null_values = _measure(columns.values)
        self._largest[name] = max(self._largest.get(name, 0), largest_key + largest_value)
        chosen = self._choose(topic, columns.keys, partitions, null_keys)
        for partition, places in _grouped(chosen).items():
            self._insert(topic, partition, columns, places, null_keys, null_values)

    def finish(self) -> None:
        """Write down where the partitions and the sequence now end."""
        self._connection.executemany(
            "UPDATE partitions SET end_offset = ? WHERE topic = ? AND partition = ?",
            [(self._ends[name][number], self._topics[name].id, number) for name, number in self._grown],
        )
        self._connection.executemany(
            "UPDATE topics SET largest = max(largest, ?) WHERE id = ?",
            [(largest, self._topics[name].id) for name, largest in self._largest.items()],
        )
        self._connection.execute("UPDATE counters SET value = ? WHERE name = 'next sequence'", (self._sequence,))

    def _choose(
        self, topic: Topic, keys: Sequence[bytes | None], partitions: Sequence[int | None], null_keys: bool
    ) -> Sequence[int]:
        asked = set(partitions)
        for partition in asked - {None}:
            check_partition(topic.name, partition, topic.partitions)
        if topic.partitions == 1:
            return [0] * len(keys)
        if asked == {None}:
            return self._by_key(topic, keys, null_keys)
        rest = iter(self._by_key(topic, [k for k, partition in zip(keys, partitions) if partition is None], True))
        return [next(rest) if partition is None else partition for partition in partitions]

    def _by_key(self, topic: Topic, keys: Sequence[bytes | None], null_keys: bool) -> list[int]:
        if not null_keys:
            return partitions_of(cast(Sequence[bytes], keys), topic.partitions)
        there = [key for key in keys if key is not None]
        hashed = iter(partitions_of(there, topic.partitions))
        turn = self._turns[topic.id]
        self._turns[topic.id] = end = turn + len(keys) - len(there)
        turns = iter(range(turn, end))
        return [next(turns) % topic.partitions if key is None else next(hashed) for key in keys]

    def _insert(
        self,
        topic: Topic,
        partition: int,
        columns: Columns,
        places: Sequence[int],
        null_keys: bool,
        null_values: bool,
    ) -> None:
        """Append to a partition the records that stand at some places of the columns."""
        start = self._ends[topic.name][partition]
        self._ends[topic.name][partition] = end = start + len(places)
        self._grown.add((topic.name, partition))
        parts: list[Iterable[Any]] = [
            range(start, end),
            map(columns.timestamps.__getitem__, places),
            map(columns.sequences.__getitem__, places),
            _blobs(map(columns.keys.__getitem__, places), null_keys),
            _blobs(map(columns.values.__getitem__, places), null_values),
        ]
        if columns.headers is not None:
            parts.append(map(columns.headers.__getitem__, places))
        width = len(parts)
        parameters = chain.from_iterable(zip(*parts))
        # Several rows in a statement: calling SQLite costs more than what it then does.
        many = len(places) - len(places) % _ROWS_OF_AN_INSERT
        if many:
            self._execute(topic.table(partition), width, _ROWS_OF_AN_INSERT, islice(parameters, width * many))
        if many < len(places):
            self._execute(topic.table(partition), width, 1, parameters)

    def _execute(self, table: str, width: int, rows: int, parameters: Iterator[Any]) -> None:
        row = f"({', '.join(['?'] * width + ['NULL'] * (6 - width))})"
        statement = f"INSERT INTO {table} VALUES {', '.join([row] * rows)}"
        self._connection.executemany(statement, zip(*[parameters] * (width * rows)))


def _grouped(chosen: Sequence[int]) -> dict[int, Sequence[int]]:
    """Return the places of each partition's records, in order."""
    if len(set(chosen)) == 1:
        return {chosen[0]: range(len(chosen))}
    places: dict[int, list[int]] = {partition: [] for partition in set(chosen)}
    for place, partition in enumerate(chosen):
        places[partition].append(place)
    return dict(places)


def _measure(column: Sequence[bytes | None]) -> tuple[int, bool]:
    """Return how long the longest is, and whether there are nulls."""
    try:
        return max(map(len, column)), False  # type: ignore[arg-type]
    except TypeError:
        return max(map(len, filter(None, column)), default=0), True


def _blobs(column: Iterable[bytes | None], nulls: bool) -> Iterable[bytearray | None]:
    """Return bytes in the form that Python's sqlite3 binds at once: for others it looks for an adapter."""
    if nulls:
        return (None if data is None else bytearray(data) for data in column)
    return map(bytearray, column)  # type: ignore[arg-type]
