"""Append records to the embedded log, many at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeAlias, cast

from headrace.brokers.broker import Produced
from headrace.brokers.checking import check_partition, complete_record, encode_column
from headrace.brokers.local.file import LogFile
from headrace.brokers.local.topics import Topic, end_offsets, find_topic
from headrace.partitioning import partitions_of
from headrace.raw_records import RecordColumns

AT_ONCE = 10_000
"""How many records to append at a time: enough to outweigh the cost of a call, few enough for the processor's cache."""
_ROWS_OF_AN_INSERT = 50

EncodedHeaders: TypeAlias = Sequence[bytes | None] | None
"""The headers of records as the log stores them; None if no record has any."""


def produce(
    file: LogFile, turns: dict[int, int], topic: str, records: Iterable[Produced], partition: int | None
) -> int:
    """Append records to a topic, all or none, and return how many."""
    now = int(time.time() * 1000)
    rows = [complete_record(topic, record, now) for record in records]
    # Column by column: zip(*rows) makes an iterator for each record, and with Python's garbage collector, which looks
    # at them all, a record takes 0.3 µs longer.
    keys, values = [row[0] for row in rows], [row[1] for row in rows]
    timestamps, headers = [row[2] for row in rows], [row[3] for row in rows]
    encoded = encode_column(topic, headers)

    def append(connection: sqlite3.Connection) -> None:
        appender = Appender(file, connection, turns)
        found = appender.topic(topic)
        if partition is not None:
            check_partition(topic, partition, found.partitions)
        for begin in range(0, len(rows), AT_ONCE):
            piece = slice(begin, begin + AT_ONCE)
            columns = RecordColumns(keys[piece], values[piece], timestamps[piece], headers[piece])
            appender.append(topic, columns, encoded and encoded[piece], [partition] * len(columns))
        appender.finish()

    file.write(append)
    return len(rows)


class Appender:
    """Appends records within a transaction. Call `finish` before the transaction ends.

    `turns` gives, by topic id, the partition that the next record without a key goes to.
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
        """Return a topic. Raise a TopicError if it does not exist."""
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = find_topic(self._file, name)
            ends = self._ends[name] = end_offsets(self._file, topic)
            # Continue where others stopped. Otherwise a process that produces little would always begin with 0.
            self._turns.setdefault(topic.id, sum(ends.values()))
        return topic

    def append(
        self, name: str, records: RecordColumns, headers: EncodedHeaders, partitions: Sequence[int | None]
    ) -> None:
        """Append records, at least one, to a topic. Where the partition is None the key decides."""
        topic = self.topic(name)
        largest_key, null_keys = _measure(records.keys)
        largest_value, null_values = _measure(records.values)
        self._largest[name] = max(self._largest.get(name, 0), largest_key + largest_value)
        sequences = range(self._sequence, self._sequence + len(records))
        self._sequence = sequences.stop
        partition_of_each = self._choose(topic, records.keys, partitions, null_keys)
        for partition, indexes in _indexes_by_partition(partition_of_each).items():
            chosen = _chooser(indexes, len(records))
            columns: list[Iterable[Any]] = [
                self._next_offsets(topic, partition, len(indexes)),
                chosen(records.timestamps),
                chosen(sequences),
                _blobs(chosen(records.keys), null_keys),
                _blobs(chosen(records.values), null_values),
            ]
            if headers is not None:
                columns.append(chosen(headers))
            self._insert(topic.table(partition), columns, len(indexes))

    def finish(self) -> None:
        """Store the new ends of the partitions and of the sequence."""
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
        given = set(partitions)
        for partition in given - {None}:
            check_partition(topic.name, partition, topic.partitions)
        if topic.partitions == 1:
            return [0] * len(keys)
        if given == {None}:
            return self._by_key(topic, keys, null_keys)
        rest = iter(self._by_key(topic, [k for k, partition in zip(keys, partitions) if partition is None], True))
        return [next(rest) if partition is None else partition for partition in partitions]

    def _by_key(self, topic: Topic, keys: Sequence[bytes | None], null_keys: bool) -> list[int]:
        if not null_keys:
            return partitions_of(cast(Sequence[bytes], keys), topic.partitions)
        present = [key for key in keys if key is not None]
        hashed = iter(partitions_of(present, topic.partitions))
        turn = self._turns[topic.id]
        self._turns[topic.id] = end = turn + len(keys) - len(present)
        turns = iter(range(turn, end))
        return [next(turns) % topic.partitions if key is None else next(hashed) for key in keys]

    def _next_offsets(self, topic: Topic, partition: int, count: int) -> range:
        ends = self._ends[topic.name]
        offsets = range(ends[partition], ends[partition] + count)
        ends[partition] = offsets.stop
        self._grown.add((topic.name, partition))
        return offsets

    def _insert(self, table: str, columns: Sequence[Iterable[Any]], count: int) -> None:
        """Append rows to a table, 50 to a statement: calling SQLite costs more than the insert itself."""
        width = len(columns)
        parameters = chain.from_iterable(zip(*columns))
        in_full_statements = count - count % _ROWS_OF_AN_INSERT
        if in_full_statements:
            self._execute(table, width, _ROWS_OF_AN_INSERT, islice(parameters, width * in_full_statements))
        if in_full_statements < count:
            self._execute(table, width, 1, parameters)

    def _execute(self, table: str, width: int, rows: int, parameters: Iterator[Any]) -> None:
        row = f"({', '.join(['?'] * width + ['NULL'] * (6 - width))})"
        statement = f"INSERT INTO {table} VALUES {', '.join([row] * rows)}"
        # zip of one iterator with itself: each statement gets the next `width * rows` values.
        self._connection.executemany(statement, zip(*[parameters] * (width * rows)))


def _indexes_by_partition(chosen: Sequence[int]) -> dict[int, Sequence[int]]:
    """Return the indexes of each partition's records, in order."""
    if len(set(chosen)) == 1:
        return {chosen[0]: range(len(chosen))}
    indexes: dict[int, list[int]] = {partition: [] for partition in set(chosen)}
    for index, partition in enumerate(chosen):
        indexes[partition].append(index)
    return dict(indexes)


def _chooser(indexes: Sequence[int], count: int) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that takes the values at some indexes from a column of this length.

    `itemgetter` takes 10 ns for a value; `map(column.__getitem__, indexes)` takes 11 from a list, but 24 from a tuple.
    """
    if len(indexes) == count:
        return lambda column: column
    if len(indexes) == 1:
        return lambda column: (column[indexes[0]],)
    return itemgetter(*indexes)


def _measure(column: Sequence[bytes | None]) -> tuple[int, bool]:
    """Return the length of the longest value, and whether there are nulls."""
    try:
        return max(map(len, column)), False  # type: ignore[arg-type]
    except TypeError:
        return max(map(len, filter(None, column)), default=0), True


def _blobs(column: Iterable[bytes | None], nulls: bool) -> Iterable[bytearray | None]:
    """Return values as bytearrays, which Python's sqlite3 binds faster: it looks for an adapter for bytes."""
    if nulls:
        return (None if data is None else bytearray(data) for data in column)
    return map(bytearray, column)  # type: ignore[arg-type]
