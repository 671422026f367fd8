"""All serdes: any value that is written is read back."""

import contextlib
import math
import pickle
import struct
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import serdes
from headrace.errors import SerializationError
from headrace.records import Window, Windowed
from headrace.serdes import Serde

LAST = 2**63 - 1

texts = st.text(st.characters(codec="utf-8"))
VALUES: list[tuple[Serde[Any], st.SearchStrategy[Any]]] = [
    (serdes.String, texts),
    (serdes.Integer, st.integers(-(2**31), 2**31 - 1)),
    (serdes.Long, st.integers(-(2**63), 2**63 - 1)),
    (serdes.Short, st.integers(-(2**15), 2**15 - 1)),
    (serdes.Float, st.floats(width=32)),
    (serdes.Double, st.floats()),
    (serdes.Boolean, st.booleans()),
    (serdes.Bytes, st.binary()),
    (serdes.UUID, st.uuids()),
    (
        serdes.Json,
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
            lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
        ).filter(lambda value: value is not None),
    ),
]
IDS = [repr(serde) for serde, _ in VALUES]


def windows(draw: st.DrawFn) -> Window:
    start = draw(st.integers(0, LAST - 1))
    return Window(start, draw(st.integers(start + 1, LAST)))


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack(">d", left) == struct.pack(">d", right) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


@pytest.mark.parametrize(("serde", "values"), VALUES, ids=IDS)
@given(data=st.data())
def test_value_comes_back(serde: Serde[Any], values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    value = data.draw(values)

    written = serde.serialize("topic", value)

    assert type(written) is bytes
    assert same(serde.deserialize("topic", written), value)


@pytest.mark.parametrize(("serde", "values"), VALUES, ids=IDS)
@given(data=st.data())
def test_list_comes_back(serde: Serde[Any], values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    entries = data.draw(st.lists(st.none() | values))
    lists = serdes.List(serde)

    assert same(lists.deserialize("topic", lists.serialize("topic", entries)), entries)


@pytest.mark.parametrize(("serde", "values"), VALUES, ids=IDS)
@given(data=st.data())
def test_windowed_key_comes_back(serde: Serde[Any], values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    key, window = data.draw(values), data.draw(st.composite(windows)())
    windowed = serdes.Windowed(serde, window.end - window.start)
    sessions = serdes.SessionWindowed(serde)

    for outer in (windowed, sessions):
        back = outer.deserialize("topic", outer.serialize("topic", Windowed(key, window)))
        assert isinstance(back, Windowed)
        assert isinstance(back.window, Window)
        assert back.window == window
        assert same(back.key, key)


@pytest.mark.parametrize(("serde", "values"), VALUES, ids=IDS)
@given(data=st.data())
def test_exact_type_is_the_type_of_what_is_read(
    serde: Serde[Any], values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    if serde.exact_type is not None:
        assert type(data.draw(values)) is serde.exact_type
        assert type(serde.deserialize("topic", serde.serialize("topic", data.draw(values)))) is serde.exact_type


@given(st.binary())
def test_any_bytes_are_a_list_or_an_error(data: bytes) -> None:
    for inner in (serdes.String, serdes.Short):
        lists: Serde[Any] = serdes.List(inner)
        with contextlib.suppress(SerializationError):
            value = lists.deserialize("topic", data)
            assert lists.deserialize("topic", lists.serialize("topic", value)) == value


EVERY = [serde for serde, _ in VALUES] + [
    serdes.Void,
    serdes.List(serdes.Long),
    serdes.Windowed(serdes.String, 5),
    serdes.SessionWindowed(serdes.UUID),
    serdes.Json(list[int]),
    serdes.String("latin-1"),
    serdes.Serde(str.encode, bytes.decode),
]


@pytest.mark.parametrize("serde", EVERY, ids=repr)
def test_null_is_null_both_ways(serde: Serde[Any]) -> None:
    assert serde.serialize("topic", None) is None
    assert serde.deserialize("topic", None) is None


@pytest.mark.parametrize("serde", EVERY, ids=repr)
def test_serde_survives_pickling(serde: Serde[Any]) -> None:
    assert repr(pickle.loads(pickle.dumps(serde))) == repr(serde)


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_reads_any_kind_of_bytes(wrap: Any) -> None:
    assert serdes.String.deserialize("topic", wrap(b"a")) == "a"
    assert serdes.Bytes.deserialize("topic", wrap(b"a")) == b"a"
    assert serdes.Long.deserialize("topic", wrap(bytes(8))) == 0
    assert serdes.Json.deserialize("topic", wrap(b"[1]")) == [1]
    assert serdes.UUID.deserialize("topic", wrap(str(uuid.UUID(int=1)).encode())) == uuid.UUID(int=1)
    assert serdes.Windowed(serdes.String, 5).deserialize("topic", wrap(b"a" + bytes(8))) == ("a", (0, 5))
    assert serdes.List(serdes.String).deserialize("topic", wrap(b"\1" + bytes(4))) == []
