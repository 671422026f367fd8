"""Markers: what an application's own topic says of its runs and batches.

The topic `<application id>-commits` has a record for every batch that is in, and for every task one that tells what of
the next batch it has written already. All of them are written in the transactions of what they tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from headrace.brokers.kafka import topics
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.batch_producer import STEP, transaction_ms
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.ranges import RangeReader
from headrace.errors import StreamsError
from headrace.raw_records import RawRecord

PARTITIONS = 2
"""Markers are in the first one. The second stays empty: tasks commit the offset 0 there, for no tool to show a lag."""
_FEW = 64
_SHOWS_SECONDS = 2.0
"""How soon what was committed shows."""


class Marker(msgspec.Struct, frozen=True):
    """What is known of an application: its latest run, the last batch that was written, and what that had read."""

    run: int
    lineage: str
    batch: int
    positions: dict[str, dict[int, int]] = {}
    done: dict[str, int] = {}
    """By task, a later batch that it has written already."""
    changelogs: tuple[str, ...] = ()
    """The topics that were made for stores, of earlier runs, too: they go when the application is forgotten."""


class TaskMarker(msgspec.Struct, frozen=True):
    """A task has written what it puts out in a batch."""

    lineage: str
    batch: int
    writer: str
    """The id of its transaction: so that somebody else can end it."""


def commits_topic(application_id: str) -> str:
    """Name the topic that holds an application's markers."""
    return f"{application_id}-commits"


def task_key(task: str) -> bytes:
    """Return the key of a task's marker; that of the application's own is its name."""
    return b"\0" + task.encode()


class Markers:
    """Reads the markers of applications."""

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._connection = connection
        self._admin = admin

    def last(self, application_id: str) -> Marker | None:
        """Return the last marker that is committed; one that is just being so is waited for, a moment."""
        topic = self._find(application_id)
        if topic is None:
            return None
        until = time.monotonic() + _SHOWS_SECONDS
        while self._is_pending(application_id, topic) and time.monotonic() < until:
            time.sleep(STEP / 5)
        return self._known(application_id, topic)

    def _is_pending(self, application_id: str, topic: topics.Topic) -> bool:
        """Tell whether a batch is about to be in."""
        committed, end = self._ends(topic)
        return any(row[2] == application_id.encode() for row in self._uncommitted(topic, committed, end))

    def _ends(self, topic: topics.Topic) -> tuple[int, int]:
        """Return where what is committed ends, and where everything does."""
        admin = self._admin()
        committed = topics.end_offsets(admin, topic, read_committed=True)[0]
        return committed, topics.end_offsets(admin, topic)[0]

    def settled(self, application_id: str, end_transaction: Callable[[str], None]) -> Marker | None:
        """Return what is known when no transaction is open any more; those that a writer left open are ended."""
        topic = self._find(application_id)
        if topic is None:
            return None
        until = time.monotonic() + self._connection.patience + transaction_ms(self._connection) / 1000
        ended: set[str] = set()
        while True:
            committed, end = self._ends(topic)
            if committed == end:
                return self._known(application_id, topic)
            if time.monotonic() > until:
                raise StreamsError(
                    f"topic '{topic.name}': a transaction has been open for too long, and its producer is gone. Hint: "
                    "Kafka's kafka-transactions.sh shows it (find-hanging) and ends it (abort)"
                )
            for writer in sorted(self._writers(topic, committed, end) - ended):
                end_transaction(writer)
                ended.add(writer)
            time.sleep(STEP / 5)

    def _find(self, application_id: str) -> topics.Topic | None:
        return topics.described(self._admin(), commits_topic(application_id))

    def _writers(self, topic: topics.Topic, start: int, end: int) -> set[str]:
        """Return whose transactions of tasks are open, or were a moment ago."""
        rows = self._uncommitted(topic, start, end)
        values = [row[3] for row in rows if (row[2] or b"").startswith(task_key(""))]
        return {msgspec.json.decode(value, type=TaskMarker).writer for value in values if value is not None}

    def _uncommitted(self, topic: topics.Topic, start: int, end: int) -> Iterator[RawRecord]:
        return self._rows(topic.name, start, end, **{"isolation.level": "read_uncommitted"})

    def _known(self, application_id: str, topic: topics.Topic) -> Marker | None:
        admin = self._admin()
        first = topics.first_offsets(admin, topic)[0]
        end = topics.end_offsets(admin, topic, read_committed=True)[0]
        back = _FEW
        while True:
            start = max(first, end - back)
            found = _folded(application_id, self._rows(topic.name, start, end))
            if found is not None or start == first:
                return found
            back *= 8

    def _rows(self, topic: str, start: int, end: int, **settings: str) -> Iterator[RawRecord]:
        reader = RangeReader(self._connection, **settings)
        try:
            for page in reader.rows(topic, 0, start, end):
                yield from page
        finally:
            reader.close()


def _folded(application_id: str, rows: Iterator[RawRecord]) -> Marker | None:
    """Return the last marker, with what tasks have written since."""
    marker: Marker | None = None
    for _, _, key, value, _, _ in rows:
        if key is None or value is None:
            continue
        if key == application_id.encode():
            marker = msgspec.json.decode(value, type=Marker)
        elif marker is not None:
            task = msgspec.json.decode(value, type=TaskMarker)
            if task.lineage == marker.lineage and task.batch > marker.batch:
                marker.done[key.removeprefix(task_key("")).decode()] = task.batch
    return marker
