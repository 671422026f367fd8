"""Find where the next batch ends in each partition of the embedded log.

Records have one order across partitions. Each partition offers its next record, and the one with the lowest (timestamp,
sequence) comes first. This does not depend on earlier records, so batches may be cut anywhere, and a large batch is
planned piece by piece.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import Any

from headrace.brokers.batches import Offsets
from headrace.brokers.checking import is_whole, start_offsets
from headrace.brokers.local.file import LogFile
from headrace.brokers.local.topics import Topic, find_topic
from headrace.errors import ConfigError

MERGED = 2_000
"""A batch of up to this many records is merged record by record. For a larger one SQLite searches for the ends."""
_PIECES = 8
_FIRST_PAGE, _LARGEST_PAGE = 16, 1_024


@dataclass
class _Span:
    """The records of a partition that a batch may take. `stop` is the end of those that it takes so far."""

    topic: Topic
    partition: int
    stop: int
    end: int
    gaps: bool

    def __post_init__(self) -> None:
        self.source = f"FROM {self.topic.table(self.partition)} WHERE offset >= ? AND offset < ?"


def plan_batch(file: LogFile, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
    """Return where a batch ends that begins at these offsets and has at most `limit` records."""
    if limit is not None and not is_whole(limit, 1):
        raise ConfigError(f"expected a batch of at least 1 record, got {limit!r}")

    def plan(connection: sqlite3.Connection) -> dict[str, dict[int, int]]:
        spans = [span for topic, offsets in start.items() for span in _spans(file, connection, topic, offsets)]
        waiting = [span for span in spans if span.stop < span.end]
        if limit is None or sum(span.end - span.stop for span in waiting) <= limit:
            for span in waiting:
                span.stop = span.end
        elif limit <= MERGED or limit < len(waiting):
            _merge(connection, waiting, limit)
        else:
            _take_pieces(connection, waiting, limit)
        ends: dict[str, dict[int, int]] = {topic: {} for topic in start}
        for span in spans:
            ends[span.topic.name][span.partition] = span.stop
        return ends

    return file.read_together(plan)


def _spans(file: LogFile, connection: sqlite3.Connection, name: str, offsets: Mapping[int, int]) -> Iterator[_Span]:
    topic = find_topic(file, name)
    start_offsets(name, offsets, topic.partitions)
    known = {
        partition: (end, bool(gaps))
        for partition, end, gaps in connection.execute(
            "SELECT partition, end_offset, gaps FROM partitions WHERE topic = ?", (topic.id,)
        )
    }
    for partition, offset in offsets.items():
        end, gaps = known[partition]
        span = _Span(topic, partition, offset, max(offset, end), gaps)
        if gaps:
            first = connection.execute(f"SELECT offset {span.source} ORDER BY offset LIMIT 1", (offset, end)).fetchone()
            span.stop = span.end if first is None else first[0]
        yield span


# -- few records --------------------------------------------------------------------------------------------------


def _merge(connection: sqlite3.Connection, spans: Sequence[_Span], limit: int) -> None:
    """Take `limit` records, one by one."""
    heads = []
    for number, span in enumerate(spans):
        keys = _keys(connection, span)
        heads.append((*next(keys), number, keys))
    heapify(heads)
    for _ in range(limit):
        if not heads:
            break
        *_, number, keys = heads[0]
        head = next(keys, None)
        if head is None:
            heappop(heads)
        else:
            heapreplace(heads, (*head, number, keys))
    for span in spans:
        span.stop = span.end
    for _, _, offset, number, _ in heads:
        spans[number].stop = offset


def _keys(connection: sqlite3.Connection, span: _Span) -> Iterator[tuple[int, int, int]]:
    """Read a partition's timestamps, sequences and offsets, in small pages first: a few may be enough."""
    start, page = span.stop, _FIRST_PAGE
    while True:
        rows = connection.execute(
            f"SELECT timestamp, sequence, offset {span.source} ORDER BY offset LIMIT ?", (start, span.end, page)
        ).fetchall()
        yield from rows
        if len(rows) < page:
            return
        start = rows[-1][2] + 1
        page = min(2 * page, _LARGEST_PAGE)


# -- many records -------------------------------------------------------------------------------------------------


def _take_pieces(connection: sqlite3.Connection, spans: Sequence[_Span], limit: int) -> None:
    """Take nearly `limit` records, in pieces. Each piece shows how much of each partition the next one will take."""
    rest, weights = limit, [1] * len(spans)
    for _ in range(_PIECES):
        shares = _shares([span.end - span.stop for span in spans], weights, rest)
        before = [span.stop for span in spans]
        _take_piece(connection, spans, shares)
        # Where offsets have gaps this counts too many records, never too few.
        taken = [min(span.stop - stop, share) for span, stop, share in zip(spans, before, shares)]
        rest -= sum(taken)
        left = [(span, 1 + count) for span, count in zip(spans, taken) if span.stop < span.end]
        if rest <= limit // 8 or not left or rest < len(left):
            break
        spans, weights = [span for span, _ in left], [weight for _, weight in left]


def _shares(available: Sequence[int], weights: Sequence[int], limit: int) -> list[int]:
    """Divide the limit: 1 for each, the rest by weight. The others get what one does not need."""
    rest = limit - len(available)
    more = [count - 1 for count in available]
    unsatisfied = set(range(len(available)))
    while unsatisfied:
        total = sum(weights[number] for number in unsatisfied)
        satisfied = {number for number in unsatisfied if more[number] * total <= rest * weights[number]}
        if not satisfied:
            for number in unsatisfied:
                more[number] = rest * weights[number] // total
            break
        rest -= sum(more[number] for number in satisfied)
        unsatisfied -= satisfied
    return [1 + count for count in more]


def _take_piece(connection: sqlite3.Connection, spans: Sequence[_Span], shares: Sequence[int]) -> None:
    """Take from each partition the records that come before every record that the shares leave out."""
    stops = [_end_of_share(connection, span, share) for span, share in zip(spans, shares)]
    limited = [number for number, span in enumerate(spans) if stops[number] < span.end]
    if len(spans) > 1 and limited:
        # Begin with the share that probably ends first: finding an earlier end later costs another search.
        limited.sort(key=lambda number: _last(connection, spans[number], stops[number]))
        cut = _highest(connection, spans[limited[0]], stops[limited[0]])
        settled = limited[:1]
        for number in limited[1:]:
            stop = _first_after(connection, spans[number], stops[number], cut)
            if stop == stops[number]:
                cut = _highest(connection, spans[number], stop)
                for other in settled:
                    stops[other] = _first_after(connection, spans[other], stops[other], cut)
            stops[number] = stop
            settled.append(number)
        for number in set(range(len(spans))).difference(limited):
            stops[number] = _first_after(connection, spans[number], stops[number], cut)
    for span, stop in zip(spans, stops):
        span.stop = stop


def _end_of_share(connection: sqlite3.Connection, span: _Span, share: int) -> int:
    """Return the offset of the first record after a share."""
    if span.stop + share >= span.end or not span.gaps:
        return min(span.stop + share, span.end)
    found = connection.execute(
        f"SELECT offset {span.source} ORDER BY offset LIMIT 1 OFFSET ?", (span.stop, span.end, share)
    ).fetchone()
    return span.end if found is None else int(found[0])


def _last(connection: sqlite3.Connection, span: _Span, before: int) -> Any:
    """Return the timestamp and sequence of the last record before an offset."""
    return connection.execute(
        f"SELECT timestamp, sequence {span.source} ORDER BY offset DESC LIMIT 1", (span.stop, before)
    ).fetchone()


def _highest(connection: sqlite3.Connection, span: _Span, before: int) -> tuple[int, int]:
    """Return the highest timestamp before an offset, and the sequence of the last record with this timestamp."""
    (highest,) = connection.execute(f"SELECT max(timestamp) {span.source}", (span.stop, before)).fetchone()
    (sequence,) = connection.execute(
        f"SELECT sequence {span.source} AND timestamp = ? ORDER BY offset DESC LIMIT 1", (span.stop, before, highest)
    ).fetchone()
    return highest, sequence


def _first_after(connection: sqlite3.Connection, span: _Span, before: int, cut: tuple[int, int]) -> int:
    """Return the offset of the first record after a cut, or `before` if there is none."""
    found = connection.execute(
        f"SELECT offset {span.source} AND timestamp >= ? AND (timestamp > ? OR sequence > ?) ORDER BY offset LIMIT 1",
        (span.stop, before, cut[0], *cut),
    ).fetchone()
    return before if found is None else int(found[0])
