"""The records that a topology produces in a test and that the test has not read yet.

Tests: `tests/testing/test_topics.py`.
"""

from __future__ import annotations

from collections import deque

from headrace.raw_records import RecordToWrite


class ProducedRecords:
    """Queues of records by topic."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[RecordToWrite]] = {}

    def queue(self, topic: str) -> deque[RecordToWrite]:
        """Return the records of a topic."""
        return self._queues.setdefault(topic, deque())

    def waiting(self) -> dict[str, int]:
        """Return how many records wait to be read, by topic."""
        return {topic: len(records) for topic, records in self._queues.items() if records}
