"""Rows in pages, for an engine."""

import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from headrace.brokers import LocalBroker
from headrace.brokers.local import reading
from headrace.brokers.local.reading import PAGE_BYTES, PAGE_ROWS
from headrace.errors import TopicError


def rows(broker: LocalBroker, start: int, end: int, topic: str = "lines", partition: int = 0) -> list[Any]:
    return [row for page in broker.read_range(topic, partition, start, end) for row in page]


@pytest.fixture
def lines(broker: LocalBroker) -> LocalBroker:
    broker.create_topic("lines")
    return broker


def test_a_row_has_all_its_parts(lines: LocalBroker) -> None:
    headers = [("trace", b"\x00\xff"), ("trace", b"again")]
    lines.produce("lines", [(b"k", b"v", 7), (None, None, 8, headers), (b"", b"", 9)])

    assert rows(lines, 0, 3) == [
        (0, 7, b"k", b"v", None, 0),
        (1, 8, None, None, headers, 1),
        (2, 9, b"", b"", None, 2),
    ]


def test_the_range_is_that_of_the_offsets(broker: LocalBroker) -> None:
    broker.create_topic("lines", 2)
    for partition in (0, 1):
        broker.produce("lines", [(None, b"%d %d" % (partition, n)) for n in range(10)], partition)

    assert [row[3] for row in rows(broker, 3, 5, partition=1)] == [b"1 3", b"1 4"]
    assert [row[0] for row in rows(broker, 8, 100)] == [8, 9]
    assert rows(broker, 5, 5) == rows(broker, 10, 20) == rows(broker, 7, 3) == []


def test_a_page_has_so_many_rows(lines: LocalBroker) -> None:
    lines.produce("lines", [(None, b"%d" % n) for n in range(2 * PAGE_ROWS + 1)])

    pages = list(lines.read_range("lines", 0, 0, 2 * PAGE_ROWS + 1))

    assert [len(page) for page in pages] == [PAGE_ROWS, PAGE_ROWS, 1]
    assert [row[3] for page in pages for row in page] == [b"%d" % n for n in range(2 * PAGE_ROWS + 1)]


def sizes(broker: LocalBroker, end: int) -> list[int]:
    pages = list(broker.read_range("lines", 0, 0, end))
    assert [row[0] for page in pages for row in page] == list(range(end))
    return [sum(len(row[2] or b"") + len(row[3] or b"") for row in page) for page in pages]


def test_a_page_has_so_many_bytes(lines: LocalBroker) -> None:
    lines.produce("lines", [(bytes(500), bytes(500)) for _ in range(10_000)])

    *full, rest = sizes(lines, 10_000)

    assert full
    assert all(PAGE_BYTES <= size <= PAGE_BYTES * 5 // 4 for size in full)
    assert 0 < rest <= PAGE_BYTES * 5 // 4


def test_large_records_among_small_ones_do_not_make_a_page_huge(lines: LocalBroker) -> None:
    large = [(None, bytes(1 << 20)) for _ in range(10)]
    small = [(b"k", b"v"), (b"k", None)] * 2_000
    lines.produce("lines", [*small, *large, *small])

    assert max(sizes(lines, 8_010)) <= PAGE_BYTES + (1 << 20)


def test_one_giant_record_is_a_page(lines: LocalBroker) -> None:
    lines.produce("lines", [(None, bytes(3 * PAGE_BYTES)) for _ in range(2)])

    assert sizes(lines, 2) == [3 * PAGE_BYTES] * 2


def test_gaps_are_passed(broker: LocalBroker) -> None:
    broker.create_topic("lines", compact=True)
    broker.produce("lines", [(b"%d" % (n % 2), b"%d" % n) for n in range(100)])
    broker.clean("lines")

    assert [row[0] for row in rows(broker, 0, 100)] == [98, 99]
    assert rows(broker, 0, 50) == []


def test_nothing_is_locked_while_a_page_is_worked_on(lines: LocalBroker, path: Path) -> None:
    lines.produce("lines", [(None, b"")] * (PAGE_ROWS + 1))
    pages = lines.read_range("lines", 0, 0, PAGE_ROWS + 1)
    next(pages)

    other = sqlite3.connect(path, timeout=0)
    # SQLite can empty the WAL only if no one is reading: 0 means that no reader was in the way.
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    other.close()
    assert len(next(pages)) == 1


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made anew"])
def test_a_topic_that_is_deleted_meanwhile_is_an_error(lines: LocalBroker, again: bool) -> None:
    lines.produce("lines", [(None, b"")] * 10)
    with patch.object(reading, "PAGE_ROWS", 5):
        pages = lines.read_range("lines", 0, 0, 10)
        next(pages)
        lines.delete_topic("lines")
        if again:
            lines.create_topic("lines")
            lines.produce("lines", [(None, b"other")] * 10)

        with pytest.raises(TopicError, match=r"topic 'lines' in '.*' was deleted while it was being read"):
            next(pages)


def test_records_that_are_deleted_during_reading_are_skipped(broker: LocalBroker) -> None:
    broker.create_topic("lines", retention_ms=0)
    broker.produce("lines", [(None, b"", n) for n in range(10)])
    with patch.object(reading, "PAGE_ROWS", 5):
        pages = broker.read_range("lines", 0, 0, 10)
        next(pages)
        broker.clean("lines")

        assert [[row[0] for row in page] for page in pages] == [[9]]


def test_wrong_partitions_and_offsets_are_refused_at_the_call(lines: LocalBroker) -> None:
    with pytest.raises(TopicError, match="there is no topic 'nope'"):
        lines.read_range("nope", 0, 0, 1)
    with pytest.raises(TopicError, match="topic 'lines': expected a partition from 0 to 0, got 1"):
        lines.read_range("lines", 1, 0, 1)


def test_the_sequence_is_the_order_of_appending_over_all_topics(broker: LocalBroker) -> None:
    broker.ensure_topics({"a": 3, "b": 1})
    broker.produce("a", [(b"%d" % n, b"%d" % n) for n in range(100)])
    broker.produce("b", [(None, b"100")])
    run = broker.begin_run("app", "")
    broker.write_batch(run, 0, [("ab"[n % 2], None, [(None, b"%d" % n, 0, None)]) for n in range(101, 200)], {})
    broker.produce("a", [(None, b"200"), (None, b"201")], partition=2)

    found = [row for topic in "ab" for p in broker.end_offsets(topic) for row in rows(broker, 0, 1_000, topic, p)]

    assert sorted((sequence, int(value)) for _, _, _, value, _, sequence in found) == [(n, n) for n in range(202)]


def test_the_sequence_goes_on_after_deleting_and_reopening(path: Path) -> None:
    sequences = []
    for _ in range(3):
        with LocalBroker(path) as broker:
            broker.create_topic("lines")
            broker.produce("lines", [(None, b"")] * 3)
            sequences += [row[5] for row in rows(broker, 0, 3)]
            broker.delete_topic("lines")

    assert sequences == list(range(9))


def test_a_failed_call_uses_no_sequence(lines: LocalBroker) -> None:
    lines.produce("lines", [(None, b"0")])
    with pytest.raises(TopicError):
        lines.produce("lines", [(None, b"1")], partition=5)
    lines.produce("lines", [(None, b"2")])

    assert [row[5] for row in rows(lines, 0, 2)] == [0, 1]


def test_within_a_partition_the_sequence_grows_across_large_productions(broker: LocalBroker) -> None:
    broker.create_topic("lines", 3)
    broker.produce("lines", [(b"%d" % (n % 1_000), b"%d" % n) for n in range(50_000)])

    for partition, end in broker.end_offsets("lines").items():
        found = rows(broker, 0, end, partition=partition)
        assert all(one[5] < other[5] for one, other in pairwise(found))
        assert [int(row[3]) for row in found] == [row[5] for row in found]
