"""Changelog topics: what the stores of an application hold, for other tools to read, as Kafka Streams writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import Struct
from typing import Any, cast

from headrace.brokers.broker import TopicInfo
from headrace.config import StreamsConfig
from headrace.engine.plan import Plan
from headrace.raw_records import RecordColumns, RecordToWrite
from headrace.state.image import Changes
from headrace.state.versioned import VersionedStore
from headrace.topology.topology import Topology

_KINDS = frozenset({"key-value", "timestamped-key-value", "window", "timestamped-window", "session", "versioned"})
"""The stores that are the same bytes in Kafka Streams."""
_GENERATED = re.compile(r"(KSTREAM|KTABLE)-[A-Z-]+-\d{10}.*|.*-STATE-STORE-\d{10}")
_EXTRA_MS = 86_400_000
"""What Kafka Streams adds to how long it keeps windows and versions: for clocks that do not agree."""
_TIMES = {"window": 12, "timestamped-window": 12, "session": 16}
"""How many bytes before the end of an entry's key its time is: the start of a window, the end of a session."""
_timestamp = Struct(">q").unpack_from


def changelogs(topology: Topology, config: StreamsConfig, plan: Plan) -> dict[str, TopicInfo]:
    """Return the topic that the changes of each named store go to."""
    found: dict[str, TopicInfo] = {}
    for sub in topology.sub_topologies():
        for name in () if sub.is_global else sub.stores:
            builder = topology.stores[name]
            if builder.logging and builder.kind in _KINDS and not _GENERATED.fullmatch(name):
                options = dict(builder.options)
                found[name] = TopicInfo(
                    changelog_name(config, name),
                    plan.widths[sub.id],
                    compact=not options.get("duplicates"),  # entries that are there again after a restart
                    retention_ms=_longer(options.get("retention")),
                    min_compaction_lag_ms=_longer(options.get("history_retention")),
                )
    return found


def changelog_name(config: StreamsConfig, store: str) -> str:
    """Name the topic that the changes of a store go to."""
    return f"{config.application_id}-{store}-changelog"


def _longer(kept: Any) -> int | None:
    return None if kept is None else int(kept) + _EXTRA_MS


def logged_versions(store: VersionedStore[Any, Any]) -> RecordColumns:
    """Return what was put into a versioned store as records: each of them, for a batch may bring several of a key."""
    return RecordColumns.of([(key, value, max(time, 1), None) for key, value, time in store.take_puts()])


def logged_entries(changes: Changes, kind: str, now: int, floor: int) -> RecordColumns:
    """Return changes as records.

    What a store keeps before its value becomes the record's timestamp. Where there is none it is the start of the
    window or the end of the session, else now. Those before `floor` have expired: as with Kafka Streams it is the
    topic's retention that deletes them, and not a record.
    """
    place, timestamped = _TIMES.get(kind), kind.startswith("timestamped")
    if timestamped and place is None and None not in changes.values():  # the way of most: without a step for each case
        entries = cast(Mapping[bytes, bytes], changes)
        times = [time if (time := _timestamp(value)[0]) > 0 else 1 for value in entries.values()]
        return RecordColumns(list(entries), [value[8:] for value in entries.values()], times, [None] * len(times))
    records: list[RecordToWrite] = []
    for key, value in changes.items():
        time = now if place is None else _timestamp(key, len(key) - place)[0]
        if value is None and place is not None and time < floor:
            continue
        if value is not None and timestamped:
            time, value = _timestamp(value)[0], value[8:]
        records.append((key, value, max(time, 1), None))  # Kafka's client library takes 0 for now
    return RecordColumns.of(records)
