"""Read the embedded log in large pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from operator import itemgetter
from typing import Any

import msgspec

from headrace.brokers.checking import check_partition
from headrace.brokers.local.file import LogFile
from headrace.brokers.local.topics import Topic, find_topic, topic_deleted_error
from headrace.raw_records import RawRecord

PAGE_ROWS = 20_000
PAGE_BYTES = 4 << 20

_decode_headers = msgspec.msgpack.Decoder(list[tuple[str, bytes]]).decode

_key, _value, _headers = itemgetter(2), itemgetter(3), itemgetter(4)


def read_range(file: LogFile, topic: str, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
    """Read the records of a range, page by page."""
    found = find_topic(file, topic)
    check_partition(topic, partition, found.partitions)
    return pages(file, found, partition, start, end)


def pages(file: LogFile, topic: Topic, partition: int, start: int, end: int) -> Iterator[list[RawRecord]]:
    """Read the records of a range, page by page. Raise a TopicError if the topic was deleted."""
    # One statement for each page: between pages nothing is locked, and SQLite need not keep an old state of the file.
    while start < end:
        rows = file.read_together(partial(_page, topic, partition, start, end))
        if rows is None:
            raise topic_deleted_error(file, topic)
        if not rows:
            return
        start = rows[-1][0] + 1
        if any(map(_headers, rows)):
            rows = [(*row[:4], None if row[4] is None else _decode_headers(row[4]), row[5]) for row in rows]
        yield rows


def _page(topic: Topic, partition: int, start: int, end: int, connection: sqlite3.Connection) -> list[Any] | None:
    """Return the next rows, or None if the topic was deleted."""
    found = connection.execute("SELECT largest FROM topics WHERE id = ?", (topic.id,)).fetchone()
    if found is None:
        return None
    select = (
        f"SELECT offset, timestamp, key, value, headers, sequence FROM {topic.table(partition)} "
        "WHERE offset >= ? AND offset < ? ORDER BY offset LIMIT ?"
    )
    with closing(connection.execute(select, (start, end, PAGE_ROWS))) as cursor:
        if found[0] * PAGE_ROWS <= PAGE_BYTES:
            return cursor.fetchall()
        rows: list[Any] = []
        size, at_once = 0, max(PAGE_BYTES // found[0] // 8, 1)
        while size < PAGE_BYTES and (fetched := cursor.fetchmany(at_once)):
            rows += fetched
            size += _size(fetched)
        return rows


def _size(rows: list[Any]) -> int:
    try:
        return sum(map(len, map(_key, rows))) + sum(map(len, map(_value, rows)))
    except TypeError:  # one of them is null
        return sum([len(row[2] or b"") + len(row[3] or b"") for row in rows])
