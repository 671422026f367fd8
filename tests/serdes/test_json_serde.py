"""JSON, with and without a schema."""

import datetime
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest

from headrace import serdes
from headrace.errors import SerializationError


class Order(msgspec.Struct):
    id: int
    note: str = ""


@dataclass
class Point:
    x: int
    y: int


class Person(TypedDict):
    name: str
    born: datetime.date


def test_values_are_written_compactly_in_utf_8() -> None:
    assert (
        serdes.Json.serialize("t", {"a": [1, 2.5, True, None], "b": "ü"}) == '{"a":[1,2.5,true,null],"b":"ü"}'.encode()
    )


@pytest.mark.parametrize("value", [0, "", [], {}, False, 2**70, {"a": {"b": None}}, [None]])
def test_plain_values_come_back(value: Any) -> None:
    assert serdes.Json.deserialize("t", serdes.Json.serialize("t", value)) == value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (Order, Order(7, "tea")),
        (Point, Point(1, 2)),
        (Person, {"name": "Ada", "born": datetime.date(1815, 12, 10)}),
        (list[Order], [Order(1), Order(2)]),
        (dict[str, int], {"a": 1}),
        (Order | None, Order(1)),
    ],
)
def test_schema_gives_its_own_type_back(schema: Any, value: Any) -> None:
    serde = serdes.Json(schema)

    assert serde.deserialize("t", serde.serialize("t", value)) == value


def test_json_null_is_read_as_none() -> None:
    assert serdes.Json.deserialize("t", b"null") is None


def test_types_that_json_does_not_have_change() -> None:
    value = {"tuple": (1, 2), "nan": float("nan"), 3: "int key"}

    back = serdes.Json.deserialize("t", serdes.Json.serialize("t", value))

    assert back == {"tuple": [1, 2], "nan": None, "3": "int key"}


def test_names() -> None:
    assert repr(serdes.Json(Order)) == "serdes.Json(Order)"
    assert repr(serdes.Json(list[int])) == "serdes.Json(list[int])"


def test_value_that_json_cannot_hold_is_an_error() -> None:
    with pytest.raises(
        SerializationError, match=r"^serdes.Json on topic 't': expected a value that JSON can hold, got comp"
    ):
        serdes.Json.serialize("t", 1j)


def test_bytes_that_are_not_json_are_an_error() -> None:
    with pytest.raises(
        SerializationError, match=r"on topic 't': expected JSON, got 5 bytes \(b'hello'\): JSON is malformed"
    ):
        serdes.Json.deserialize("t", b"hello")
    with pytest.raises(SerializationError, match=r"expected JSON, got 0 bytes"):
        serdes.Json.deserialize("t", b"")


def test_json_that_does_not_fit_the_schema_is_an_error_that_says_where() -> None:
    with pytest.raises(
        SerializationError, match=r"^serdes.Json\(Order\) on topic 't': expected JSON for Order, .*\$\.id"
    ):
        serdes.Json(Order).deserialize("t", b'{"id":"seven"}')


def test_schema_that_msgspec_cannot_read_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^serdes.Json: expected a type that msgspec can read, got int \(7\)"):
        serdes.Json(7)
