"""Windowed keys: layout, window ends, errors."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import serdes
from headrace.errors import SerializationError, TopologyError
from headrace.records import Window, Windowed
from headrace.serdes import Serde

LAST = 2**63 - 1

windows = serdes.Windowed(serdes.String, 5_000)
sessions = serdes.SessionWindowed(serdes.String)


def test_window_is_key_and_start() -> None:
    data = windows.serialize("t", Windowed("key", Window(10_000, 15_000)))

    assert data == b"key" + (10_000).to_bytes(8, "big")


def test_session_is_key_end_and_start() -> None:
    data = sessions.serialize("t", Windowed("key", Window(1, 2)))

    assert data == b"key" + (2).to_bytes(8, "big") + (1).to_bytes(8, "big")


def test_end_is_read_from_the_size() -> None:
    data = windows.serialize("t", Windowed("a", Window(10, 20)))

    assert windows.deserialize("t", data) == Windowed("a", Window(10, 5_010))


def test_end_stops_at_the_last_timestamp() -> None:
    unlimited = serdes.Windowed(serdes.String, LAST)

    data = unlimited.serialize("t", Windowed("a", Window(7, LAST)))

    assert unlimited.deserialize("t", data) == Windowed("a", Window(7, LAST))


def test_size_as_timedelta() -> None:
    assert serdes.Windowed(serdes.String, timedelta(seconds=5)).size == 5_000


@pytest.mark.parametrize("size", [0, -1, 1.5, None, True, "5s", timedelta(0), timedelta(microseconds=1)])
def test_size_must_be_positive_milliseconds(size: Any) -> None:
    with pytest.raises(TopologyError, match=r"^size of serdes\.Windowed: expected "):
        serdes.Windowed(serdes.String, size)


def test_keys_are_read_as_named_tuples() -> None:
    for serde in (windows, sessions):
        back = serde.deserialize("t", serde.serialize("t", Windowed("a", Window(0, 5_000))))
        assert repr(back) == "Windowed(key='a', window=Window(start=0, end=5000))"


@pytest.mark.parametrize("serde", [windows, sessions], ids=repr)
def test_empty_data_is_null(serde: Serde[Any]) -> None:
    assert serde.deserialize("t", b"") is None


@pytest.mark.parametrize(
    ("serde", "value", "message"),
    [
        (windows, "a", "expected Windowed, got str ('a')"),
        (windows, None.__class__, "expected Windowed, got type"),
        (windows, Windowed(None, Window(0, 1)), "expected a key that is not None"),
        (windows, Windowed(5, Window(0, 1)), "key: expected str, got int (5)"),
        (windows, Windowed("a", Window(-1, 1)), "expected a window in milliseconds with 0 <= start < end"),
        (windows, Windowed("a", Window(1, 1)), "expected a window in milliseconds with 0 <= start < end"),
        (windows, Windowed("a", Window(0.0, 1.0)), "expected a window in milliseconds"),  # type: ignore[arg-type]
        (windows, Windowed("a", Window(2**63, 2**63 + 1)), "expected a window in milliseconds"),
        (windows, Windowed("a", None), "expected a window in milliseconds"),  # type: ignore[arg-type]
        (sessions, "a", "expected Windowed, got str ('a')"),
        (sessions, Windowed(None, Window(0, 1)), "expected a key that is not None"),
        (sessions, Windowed(5, Window(0, 1)), "key: expected str, got int (5)"),
        (sessions, Windowed("a", Window(2, 1)), "expected a window in milliseconds"),
        (sessions, Windowed("a", Window(0, 2**63)), "expected a window in milliseconds"),
    ],
)
def test_wrong_value_is_refused(serde: Serde[Any], value: Any, message: str) -> None:
    with pytest.raises(SerializationError) as caught:
        serde.serialize("t", value)

    assert str(caught.value).startswith(f"{serde!r} on topic 't': {message}")


@pytest.mark.parametrize(
    ("serde", "data", "message"),
    [
        (windows, b"abc", "expected a key and 8 bytes of window start, got 3 (b'abc')"),
        (windows, b"a" + b"\xff" * 8, "expected a window start of at least 0, got -1"),
        (windows, b"\xff" + bytes(8), "key: expected utf-8 text, got 1 byte"),
        (sessions, b"a" + bytes(8), "expected a key and 16 bytes of session end and start, got 9"),
        (sessions, bytes(15) + b"\x01", "expected a session with 0 <= start <= end, got start 1 and end 0"),
        (sessions, b"\xff" + bytes(16), "key: expected utf-8 text, got 1 byte"),
    ],
)
def test_wrong_bytes_are_refused(serde: Serde[Any], data: bytes, message: str) -> None:
    with pytest.raises(SerializationError) as caught:
        serde.deserialize("t", data)

    assert str(caught.value).startswith(f"{serde!r} on topic 't': {message}")


def test_null_key_is_refused_for_any_inner_serde() -> None:
    with pytest.raises(SerializationError, match="expected a key that is not None"):
        serdes.Windowed(serdes.Json, 1).serialize("t", Windowed(None, Window(0, 1)))


def test_names() -> None:
    assert repr(windows) == "serdes.Windowed(serdes.String, 5000)"
    assert repr(sessions) == "serdes.SessionWindowed(serdes.String)"
