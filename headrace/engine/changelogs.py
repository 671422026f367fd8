"""Changelog topics: the changes of an application's stores, in Kafka Streams' format, for other tools to read."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Any, cast

from headrace.brokers.broker import TopicInfo
from headrace.config import StreamsConfig
from headrace.engine.plan import Plan
from headrace.raw_records import RecordColumns, RecordToWrite
from headrace.state.image import Changes
from headrace.state.versioned import VersionedStore
from headrace.topology.names import changelog_topic, is_generated_store
from headrace.topology.topology import Topology

_KINDS = frozenset({"key-value", "timestamped-key-value", "window", "timestamped-window", "session", "versioned"})
"""The kinds of stores whose bytes are the same as in Kafka Streams."""
_EXTRA_MS = 86_400_000
"""How much longer than the store a changelog keeps windows and versions, as in Kafka Streams: clocks may disagree."""
_TIMES = {"window": 12, "timestamped-window": 12, "session": 16}
"""Where the time is in an entry key, in bytes from its end: the start of a window, or the end of a session."""
_timestamp = Struct(">q").unpack_from


def changelogs(topology: Topology, config: StreamsConfig, plan: Plan) -> dict[str, TopicInfo]:
    """Return the changelog topic of each store that has a name of its own."""
    found: dict[str, TopicInfo] = {}
    for sub in topology.sub_topologies():
        for name in () if sub.is_global else sub.stores:
            builder = topology.stores[name]
            if builder.logging and builder.kind in _KINDS and not is_generated_store(name):
                options = dict(builder.options)
                found[name] = TopicInfo(
                    changelog_topic(config.application_id, name),
                    plan.widths[sub.id],
                    compact=not options.get("duplicates"),  # a key may have several entries
                    retention_ms=_longer(options.get("retention")),
                    min_compaction_lag_ms=_longer(options.get("history_retention")),
                )
    return found


def _longer(kept: Any) -> int | None:
    return None if kept is None else int(kept) + _EXTRA_MS


def logged_versions(store: VersionedStore[Any, Any]) -> RecordColumns:
    """Return all puts of a versioned store as records, because a batch may put a key several times."""
    return RecordColumns.of([(key, value, max(time, 1), None) for key, value, time in store.take_puts()])


def logged_entries(changes: Changes, kind: str, now: int, floor: int) -> RecordColumns:
    """Return changes as records.

    If a store keeps a timestamp before the value, the record gets it. Other records get the start of the window, the
    end of the session, or the time `now`. Entries before `floor` have expired. As in Kafka Streams, no record deletes
    them: the topic's retention does.
    """
    time_width, timestamped = _TIMES.get(kind), kind.startswith("timestamped")
    if (
        timestamped and time_width is None and None not in changes.values()
    ):  # most changes, without a test for each entry
        entries = cast(Mapping[bytes, bytes], changes)
        times = [time if (time := _timestamp(value)[0]) > 0 else 1 for value in entries.values()]
        return RecordColumns(list(entries), [value[8:] for value in entries.values()], times, [None] * len(times))
    records: list[RecordToWrite] = []
    for key, value in changes.items():
        time = now if time_width is None else _timestamp(key, len(key) - time_width)[0]
        if value is None and time_width is not None and time < floor:
            continue
        if value is not None and timestamped:
            time, value = _timestamp(value)[0], value[8:]
        records.append((key, value, max(time, 1), None))  # Kafka's client library takes 0 for "now"
    return RecordColumns.of(records)
