"""Markers: records in an application's own topic about its runs and batches.

The topic `<application id>-commits` has a marker for every batch that was written, and for every task a marker with the
batch that it has written already. A marker is written in the transaction that it describes.
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
from headrace.topology.names import commits_topic

PARTITIONS = 2
"""Markers are in the first. The second stays empty: tasks commit the offset 0 there, so that tools show no lag."""
_FIRST_LOOK = 64  # records from the end
_SHOWS_SECONDS = 2.0
"""How soon a commit shows."""


class Marker(msgspec.Struct, frozen=True):
    """An application's latest run, the last batch that was written, and its positions after that batch."""

    run: int
    lineage: str
    batch: int
    positions: dict[str, dict[int, int]] = {}
    done: dict[str, int] = {}
    """The later batches that tasks have written already, by task."""
    changelogs: tuple[str, ...] = ()
    """The changelogs of this run and of earlier ones. They are deleted when the application is forgotten."""


class TaskMarker(msgspec.Struct, frozen=True):
    """Says that a task has written its outputs of a batch."""

    lineage: str
    batch: int
    writer: str
    """The transactional id, with which another process can end the transaction."""


def task_key(task: str) -> bytes:
    """Return the key of a task's marker. The key of the application's marker is its id."""
    return b"\0" + task.encode()


class MarkerReader:
    """Reads the markers of applications."""

    def __init__(self, connection: Connection, admin: Callable[[], Admin]) -> None:
        self._connection = connection
        self._admin = admin

    def last(self, application_id: str) -> Marker | None:
        """Return the last committed marker. Wait a moment for a marker that is being committed."""
        topic = self._find(application_id)
        if topic is None:
            return None
        until = time.monotonic() + _SHOWS_SECONDS
        while self._is_pending(application_id, topic) and time.monotonic() < until:
            time.sleep(STEP / 5)
        return self._last_committed(application_id, topic)

    def _is_pending(self, application_id: str, topic: topics.Topic) -> bool:
        """Tell whether a marker of a batch is written, but not committed yet."""
        committed, end = self._ends(topic)
        return any(key == application_id.encode() for _, _, key, *_ in self._uncommitted(topic, committed, end))

    def _ends(self, topic: topics.Topic) -> tuple[int, int]:
        """Return where the committed records end, and where all records end."""
        admin = self._admin()
        committed = topics.end_offsets(admin, topic, read_committed=True)[0]
        return committed, topics.end_offsets(admin, topic)[0]

    def settled(self, application_id: str, end_transaction: Callable[[str], None]) -> Marker | None:
        """Return the last marker once no transaction is open. End transactions that a writer left open."""
        topic = self._find(application_id)
        if topic is None:
            return None
        until = time.monotonic() + self._connection.patience + transaction_ms(self._connection) / 1000
        ended: set[str] = set()
        while True:
            committed, end = self._ends(topic)
            if committed == end:
                return self._last_committed(application_id, topic)
            if time.monotonic() > until:
                raise StreamsError(
                    f"topic '{topic.name}': a transaction has been open for too long, and its producer is gone. Find "
                    "it with `find-hanging` of Kafka's kafka-transactions.sh, and end it with `abort`."
                )
            for writer in sorted(self._writers(topic, committed, end) - ended):
                end_transaction(writer)
                ended.add(writer)
            time.sleep(STEP / 5)

    def _find(self, application_id: str) -> topics.Topic | None:
        return topics.look_up_topic(self._admin(), commits_topic(application_id))

    def _writers(self, topic: topics.Topic, start: int, end: int) -> set[str]:
        """Return the transactional ids of tasks that have, or had a moment ago, an open transaction."""
        records = self._uncommitted(topic, start, end)
        values = [record[3] for record in records if (record[2] or b"").startswith(task_key(""))]
        return {msgspec.json.decode(value, type=TaskMarker).writer for value in values if value is not None}

    def _uncommitted(self, topic: topics.Topic, start: int, end: int) -> Iterator[RawRecord]:
        return self._read(topic.name, start, end, **{"isolation.level": "read_uncommitted"})

    def _last_committed(self, application_id: str, topic: topics.Topic) -> Marker | None:
        admin = self._admin()
        first = topics.first_offsets(admin, topic)[0]
        end = topics.end_offsets(admin, topic, read_committed=True)[0]
        back = _FIRST_LOOK
        while True:
            start = max(first, end - back)
            marker = _last_marker(application_id, self._read(topic.name, start, end))
            if marker is not None or start == first:
                return marker
            back *= 8

    def _read(self, topic: str, start: int, end: int, **settings: str) -> Iterator[RawRecord]:
        reader = RangeReader(self._connection, **settings)
        try:
            for page in reader.pages(topic, 0, start, end):
                yield from page
        finally:
            reader.close()


def _last_marker(application_id: str, records: Iterator[RawRecord]) -> Marker | None:
    """Return the last marker, together with the later batches of tasks."""
    marker: Marker | None = None
    for _, _, key, value, _, _ in records:
        if key is None or value is None:
            continue
        if key == application_id.encode():
            marker = msgspec.json.decode(value, type=Marker)
        elif marker is not None:
            task = msgspec.json.decode(value, type=TaskMarker)
            if task.lineage == marker.lineage and task.batch > marker.batch:
                marker.done[key.removeprefix(task_key("")).decode()] = task.batch
    return marker
