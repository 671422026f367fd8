"""Timestamp extractors: functions that decide which time a record has.

An extractor is any callable `f(record, partition_time)` that gives epoch milliseconds. It sees the record with its key
and value deserialized, and the largest timestamp that its partition has had (-1 at first). A record whose extracted
timestamp is negative is dropped.

Tests: `tests/task/test_timestamps.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from headrace.errors import StreamsError
from headrace.records import Record

TimestampExtractor: TypeAlias = Callable[[Record[Any, Any], int], int]
_log = logging.getLogger(__name__)


def FailOnInvalidTimestamp(record: Record[Any, Any], partition_time: int) -> int:
    """Take the record's own timestamp and fail when it is negative (the default)."""
    if record.timestamp < 0:
        raise StreamsError(
            f"the record's timestamp is negative ({record.timestamp}). Set a timestamp_extractor that gives one, "
            "such as UsePartitionTimeOnInvalidTimestamp, or skip such records with LogAndSkipOnInvalidTimestamp"
        )
    return record.timestamp


def LogAndSkipOnInvalidTimestamp(record: Record[Any, Any], partition_time: int) -> int:
    """Take the record's own timestamp, and skip the record with a warning when it is negative."""
    if record.timestamp < 0:
        _log.warning("skipped a record with key %r: its timestamp is negative (%d)", record.key, record.timestamp)
    return record.timestamp


def UsePartitionTimeOnInvalidTimestamp(record: Record[Any, Any], partition_time: int) -> int:
    """Take the record's own timestamp; when it is negative, the largest one that its partition has had."""
    if record.timestamp >= 0:
        return record.timestamp
    if partition_time < 0:
        raise StreamsError(
            f"the record's timestamp is negative ({record.timestamp}) and its partition has no time yet: "
            "the first record of a partition needs a valid timestamp"
        )
    return partition_time


def WallclockTimestampExtractor(record: Record[Any, Any], partition_time: int) -> int:
    """Take the time of this machine's clock."""
    return int(time.time() * 1000)
