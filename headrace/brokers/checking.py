"""Check topics and records before anything is written.

Tests: `tests/brokers/local/test_records.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.brokers.broker import Produced
from headrace.errors import TopicError, TopologyError
from headrace.topology.argument_checks import check_name

MAX_LONG = 2**63 - 1
MAX_PARTITIONS = 2**31 - 1

_encode_headers = msgspec.msgpack.encode


def check_topic(name: object, partitions: object, retention_ms: object) -> None:
    """Raise if there can be no such topic."""
    try:
        check_name(name, "create_topic")
    except TopologyError as error:
        raise TopicError(str(error)) from None
    if not is_whole(partitions, 1, MAX_PARTITIONS):
        raise TopicError(f"topic '{name}': expected at least 1 partition, got {partitions!r}")
    if retention_ms is not None and not is_whole(retention_ms, 0):
        raise TopicError(f"topic '{name}': expected retention_ms of at least 0, got {retention_ms!r}")


def check_partition(topic: str, partition: object, count: int) -> None:
    """Raise if a topic with this many partitions does not have this one."""
    if not is_whole(partition, 0, count - 1):
        raise TopicError(f"topic '{topic}': expected a partition from 0 to {count - 1}, got {partition!r}")


def start_offsets(topic: str, start: Mapping[int, int] | None, count: int) -> dict[int, int]:
    """Return the offset to start at in each partition: the one in `start`, or 0."""
    offsets = dict.fromkeys(range(count), 0)
    for partition, offset in (start or {}).items():
        check_partition(topic, partition, count)
        if not is_whole(offset, 0):
            raise TopicError(
                f"topic '{topic}', partition {partition}: expected an offset of at least 0, got {offset!r}"
            )
        offsets[partition] = offset
    return offsets


def complete_record(topic: str, record: Produced, now: int) -> tuple[bytes | None, bytes | None, int, Any]:
    """Return a record with a timestamp and headers, or raise if it cannot be written. Headers are not checked."""
    if not isinstance(record, tuple | list) or not 2 <= len(record) <= 4:
        raise TopicError(
            f"topic '{topic}': expected (key, value), (key, value, timestamp) or (key, value, timestamp, headers), "
            f"got {record!r}"
        )
    key, value, timestamp, headers = (*record, None, None)[:4]
    if timestamp is None:
        timestamp = now
    check_record(topic, key, value, timestamp)
    return key, value, timestamp, headers


def check_record(topic: str, key: object, value: object, timestamp: object) -> None:
    """Raise if a record cannot be written."""
    if key is not None and not isinstance(key, bytes):
        raise _not_bytes_error(topic, "key", key)
    if value is not None and not isinstance(value, bytes):
        raise _not_bytes_error(topic, "value", value)
    # `is_whole` inlined: this runs for every record.
    if type(timestamp) is not int or not 0 <= timestamp <= MAX_LONG:
        raise TopicError(f"topic '{topic}': expected the timestamp in whole milliseconds since 1970, got {timestamp!r}")


def is_whole(number: object, least: int, most: int = MAX_LONG) -> bool:
    """Tell whether a value is an int (not a bool) within bounds."""
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= most


def encode_headers(topic: str, headers: Any) -> bytes:
    """Return headers as msgpack, or raise if they are not valid headers."""
    try:
        pairs = [(name, value) for name, value in headers]
        if all(isinstance(name, str) and isinstance(value, bytes) for name, value in pairs):
            return _encode_headers(pairs)
    except (TypeError, ValueError):  # not pairs, or a name that is not UTF-8
        pass
    raise TopicError(f"topic '{topic}': expected the headers as a list of (str, bytes), got {headers!r}")


def encode_column(topic: str, headers: Sequence[Any]) -> list[bytes | None] | None:
    """Return the headers of records as msgpack, None where a record has none; None if no record has any."""
    if not any(headers):
        return None
    return [encode_headers(topic, given) if given else None for given in headers]


def _not_bytes_error(topic: str, what: str, data: object) -> TopicError:
    return TopicError(
        f"topic '{topic}': expected the {what} as bytes or None, got {type(data).__name__} ({data!r}). "
        "Serialize it first, for example with serdes.String.serialize(topic, value)"
    )
