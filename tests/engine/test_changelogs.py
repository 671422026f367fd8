"""The records in changelog topics have Kafka Streams' keys, values and timestamps."""

from struct import pack
from typing import Any

import pytest

from headrace import Processor, Record, Stores, StreamsConfig, Topology, serdes
from headrace.brokers import TopicInfo
from headrace.engine.changelogs import changelogs, logged_entries
from headrace.engine.plan import make_plan
from headrace.state.image import Changes

NOW, FLOOR = 9_000, 2_000


class Keep(Processor[Any, Any]):
    """Uses a store."""

    def process(self, record: Record[Any, Any]) -> None: ...


def window(start: int) -> bytes:
    return b"k" + pack(">qi", start, 0)


def session(start: int, end: int) -> bytes:
    return b"k" + pack(">qq", end, start)


@pytest.mark.parametrize("duplicates", [False, True])
def test_a_window_store_that_keeps_duplicates_is_not_compacted(duplicates: bool) -> None:
    store = Stores.window(
        "seen", window_size=10, retention=60_000, retain_duplicates=duplicates, key_serde=serdes.String
    )
    topology = Topology().add_source("source", "in").add_processor("keep", Keep, "source")
    topology.add_state_store(store, "keep")
    config = StreamsConfig(application_id="app")

    found = changelogs(topology, config, make_plan(topology, config, {"in": 2}))

    assert found == {
        "seen": TopicInfo("app-seen-changelog", 2, compact=not duplicates, retention_ms=60_000 + 86_400_000)
    }


def test_what_stands_before_a_value_is_its_timestamp() -> None:
    changes: Changes = {b"k": pack(">q", 1234) + b"v"}

    assert list(logged_entries(changes, "timestamped-key-value", NOW, 0)) == [(b"k", b"v", 1234, None)]


def test_a_plain_value_and_a_delete_are_of_now() -> None:
    assert list(logged_entries({b"k": b"v", b"l": None}, "key-value", NOW, 0)) == [
        (b"k", b"v", NOW, None),
        (b"l", None, NOW, None),
    ]
    assert list(logged_entries({b"l": None}, "timestamped-key-value", NOW, 0)) == [(b"l", None, NOW, None)]


@pytest.mark.parametrize(
    ("kind", "key", "time"),
    [("window", window(3000), 3000), ("timestamped-window", window(3000), 3000), ("session", session(1, 4000), 4000)],
)
def test_windows_and_sessions_are_of_their_own_time(kind: str, key: bytes, time: int) -> None:
    assert list(logged_entries({key: None}, kind, NOW, FLOOR)) == [(key, None, time, None)]


@pytest.mark.parametrize(
    ("kind", "key"), [("window", window(1999)), ("timestamped-window", window(1999)), ("session", session(1, 1999))]
)
def test_what_expires_is_left_to_the_retention_of_the_topic(kind: str, key: bytes) -> None:
    assert list(logged_entries({key: None}, kind, NOW, FLOOR)) == []


@pytest.mark.parametrize("timestamp", [0, -1])
def test_no_timestamp_is_one_that_the_client_would_change(timestamp: int) -> None:
    value = pack(">q", timestamp) + b"v"

    assert list(logged_entries({b"k": value}, "timestamped-key-value", NOW, 0)) == [(b"k", b"v", 1, None)]
    assert list(logged_entries({window(0): b"v"}, "window", NOW, -1)) == [(window(0), b"v", 1, None)]
