"""What a topic and a record may be: checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.brokers.broker import Produced
from headrace.errors import TopicError, TopologyError
from headrace.topology.argument_checks import check_name

LATEST = 2**63 - 1
MOST_PARTITIONS = 2**31 - 1

_encode_headers = msgspec.msgpack.encode


def check_topic(name: object, partitions: object, retention_ms: object) -> None:
    """Raise when there can be no such topic."""
    try:
        check_name(name, "create_topic")
    except TopologyError as error:
        raise TopicError(str(error)) from None
    if not is_whole(partitions, 1, MOST_PARTITIONS):
        raise TopicError(f"topic '{name}': expected at least 1 partition, got {partitions!r}")
    if retention_ms is not None and not is_whole(retention_ms, 0):
        raise TopicError(f"topic '{name}': expected retention_ms of at least 0, got {retention_ms!r}")


def check_partition(topic: str, partition: object, count: int) -> None:
    """Raise when a topic has no such partition."""
    if not is_whole(partition, 0, count - 1):
        raise TopicError(f"topic '{topic}': expected a partition from 0 to {count - 1}, got {partition!r}")


def start_offsets(topic: str, start: Mapping[int, int] | None, count: int) -> dict[int, int]:
    """Return the offset to begin with in each partition: 0 where `start` does not say."""
    position = dict.fromkeys(range(count), 0)
    for partition, offset in (start or {}).items():
        check_partition(topic, partition, count)
        if not is_whole(offset, 0):
            raise TopicError(
                f"topic '{topic}', partition {partition}: expected an offset of at least 0, got {offset!r}"
            )
        position[partition] = offset
    return position


def stored(topic: str, record: Produced, now: int) -> tuple[bytes | None, bytes | None, int, bytes | None]:
    """Return a record as it is stored, or raise when it is not one."""
    key, value, timestamp, headers = parts(topic, record, now)
    return key, value, timestamp, stored_headers(topic, headers) if headers else None


def parts(topic: str, record: Produced, now: int) -> tuple[bytes | None, bytes | None, int, Any]:
    """Return key, value, timestamp and headers of a record, or raise when it is not one; headers are not looked at."""
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
    """Raise when a record cannot be written."""
    if key is not None and not isinstance(key, bytes):
        raise _not_bytes(topic, "key", key)
    if value is not None and not isinstance(value, bytes):
        raise _not_bytes(topic, "value", value)
    if type(timestamp) is not int or not 0 <= timestamp <= LATEST:  # is_whole, without the call for every record
        raise TopicError(f"topic '{topic}': expected the timestamp in whole milliseconds since 1970, got {timestamp!r}")


def is_whole(number: object, least: int, most: int = LATEST) -> bool:
    """Tell whether something is an int, and no bool, within bounds."""
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= most


def stored_headers(topic: str, headers: Any) -> bytes:
    """Return headers as they are stored, or raise when they are none."""
    try:
        pairs = [(name, value) for name, value in headers]
        if all(isinstance(name, str) and isinstance(value, bytes) for name, value in pairs):
            return _encode_headers(pairs)
    except (TypeError, ValueError):  # not pairs, or a name that is not UTF-8
        pass
    raise TopicError(f"topic '{topic}': expected the headers as a list of (str, bytes), got {headers!r}")


def _not_bytes(topic: str, what: str, data: object) -> TopicError:
    return TopicError(
        f"topic '{topic}': expected the {what} as bytes or None, got {type(data).__name__} ({data!r}). "
        "Serialize it first, for example with serdes.String.serialize(topic, value)"
    )
