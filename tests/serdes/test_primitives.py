"""Serdes of single values (`serdes.primitives`, `serdes.numbers`): names, calls, wrong values, wrong bytes."""

import uuid
from decimal import Decimal
from typing import Any

import pytest

from headrace import serdes
from headrace.errors import SerializationError
from headrace.serdes import Serde

NAMES = ["String", "Integer", "Long", "Short", "Float", "Double", "Boolean", "Bytes", "UUID", "Void", "Json"]


@pytest.mark.parametrize("name", NAMES)
def test_calling_a_serde_returns_it(name: str) -> None:
    serde = getattr(serdes, name)

    assert serde() is serde
    assert repr(serde) == f"serdes.{name}"
    assert isinstance(serde, getattr(serdes, f"{name}Serde"))
    assert not serde.uses_headers


@pytest.mark.parametrize(
    ("serde", "exact_type"),
    [
        (serdes.String, str),
        (serdes.Integer, int),
        (serdes.Long, int),
        (serdes.Short, int),
        (serdes.Float, None),
        (serdes.Double, float),
        (serdes.Boolean, bool),
        (serdes.Bytes, bytes),
        (serdes.UUID, uuid.UUID),
        (serdes.Void, type(None)),
        (serdes.Json, None),
        (serdes.List(serdes.Long), None),
        (serdes.Windowed(serdes.String, 1), None),
        (serdes.SessionWindowed(serdes.String), None),
        (serdes.String(errors="replace"), None),
        (Serde(str.encode, bytes.decode), None),
    ],
    ids=repr,
)
def test_exact_type(serde: Serde[Any], exact_type: type | None) -> None:
    assert serde.exact_type is exact_type


WRONG_VALUES = [
    (serdes.String, 42, "expected str, got int (42)"),
    (serdes.String, b"a", "expected str, got bytes (b'a')"),
    (serdes.String, "\ud800", "expected text that utf-8 can hold, got str ('\\ud800')"),
    (serdes.Long, 1.0, "expected int, got float (1.0)"),
    (serdes.Long, "1", "expected int, got str ('1')"),
    (serdes.Long, Decimal(1), "expected int, got Decimal (Decimal('1'))"),
    (
        serdes.Long,
        2**63,
        "expected int from -9223372036854775808 to 9223372036854775807, got int (9223372036854775808)",
    ),
    (serdes.Integer, 2**31, "expected int from -2147483648 to 2147483647, got int (2147483648)"),
    (serdes.Integer, -(2**31) - 1, "expected int from -2147483648 to 2147483647, got int (-2147483649)"),
    (serdes.Short, 2**15, "expected int from -32768 to 32767, got int (32768)"),
    (serdes.Short, "1", "expected int, got str ('1')"),
    (serdes.Float, 1e39, "expected float that fits 4 bytes, got float (1e+39)"),
    (serdes.Float, "1", "expected float, got str ('1')"),
    (serdes.Double, "1", "expected float, got str ('1')"),
    (serdes.Double, 10**400, "expected float that fits 8 bytes, got int (1000"),
    (serdes.Boolean, 1, "expected bool, got int (1)"),
    (serdes.Boolean, "true", "expected bool, got str ('true')"),
    (serdes.Bytes, "a", "expected bytes, got str ('a')"),
    (serdes.Bytes, 3, "expected bytes, got int (3)"),
    (serdes.UUID, "00000000-0000-0000-0000-000000000000", "expected uuid.UUID, got str ('00000000"),
    (serdes.Void, "a", "expected None, got str ('a')"),
]


@pytest.mark.parametrize(("serde", "value", "message"), WRONG_VALUES)
def test_wrong_value_is_named_with_what_was_expected(serde: Serde[Any], value: Any, message: str) -> None:
    with pytest.raises(SerializationError) as caught:
        serde.serialize("lines", value)

    assert str(caught.value).startswith(f"{serde!r} on topic 'lines': {message}")
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(("serde", "value", "message"), WRONG_VALUES)
def test_encoder_raises_on_a_wrong_value(serde: Serde[Any], value: Any, message: str) -> None:
    encode = serde.encoder("lines")

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it raises
        encode(value)


def test_wrong_value_comes_with_advice() -> None:
    with pytest.raises(SerializationError, match=r"value_serde=serdes\.Long, or convert with map_values$"):
        serdes.String.serialize("lines", 42)  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match=r"value_serde=\.\.\., or convert with map_values$"):
        serdes.String.serialize("lines", object())  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match=r"Use serdes\.Long or serdes\.Json for larger numbers$"):
        serdes.Integer.serialize("lines", 2**31)


WRONG_BYTES = [
    (serdes.String, b"\xff\xfe", "expected utf-8 text, got 2 bytes (b'\\xff\\xfe'): 'utf-8' codec can't decode"),
    (serdes.Long, b"hello", "expected 8 bytes, got 5 (b'hello')"),
    (serdes.Integer, b"", "expected 4 bytes, got 0 (b'')"),
    (serdes.Short, b"abc", "expected 2 bytes, got 3 (b'abc')"),
    (serdes.Float, bytes(8), "expected 4 bytes, got 8"),
    (serdes.Double, bytes(4), "expected 8 bytes, got 4"),
    (serdes.Boolean, b"\x00\x01", "expected 1 byte, got 2"),
    (serdes.Boolean, b"\x02", "expected a byte of 0 or 1, got b'\\x02'"),
    (serdes.UUID, b"a-b", "expected a UUID of 36 characters, got 3 bytes (b'a-b')"),
    (serdes.UUID, b"123e4567-e89b-12d3-a456-42661417400\xff", "expected a UUID of 36 characters, got 36 bytes"),
    (serdes.Void, b"", "expected None, got 0 bytes"),
]


@pytest.mark.parametrize(("serde", "data", "message"), WRONG_BYTES)
def test_wrong_bytes_are_named_with_what_was_expected(serde: Serde[Any], data: bytes, message: str) -> None:
    with pytest.raises(SerializationError) as caught:
        serde.deserialize("counts", data)

    assert str(caught.value).startswith(f"{serde!r} on topic 'counts': {message}")
    assert str(caught.value).endswith("Pass the serde that wrote the data as key_serde= or value_serde=")
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(("serde", "data", "message"), WRONG_BYTES)
def test_decoder_raises_on_wrong_bytes(serde: Serde[Any], data: bytes, message: str) -> None:
    decode = serde.decoder("counts")

    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it raises
        decode(data)


def test_without_a_topic_the_error_names_none() -> None:
    with pytest.raises(SerializationError, match=r"^serdes\.Long: expected 8 bytes, got 1"):
        serdes.Long.deserialize(None, b"a")


@pytest.mark.parametrize("serde", [serdes.String, serdes.Long, serdes.Bytes, serdes.Json], ids=repr)
def test_only_bytes_can_be_read(serde: Serde[Any]) -> None:
    data: Any = 8

    with pytest.raises(SerializationError, match=r"expected bytes, got int \(8\)"):
        serde.deserialize("counts", data)


def test_long_values_are_shortened_in_errors() -> None:
    with pytest.raises(SerializationError) as caught:
        serdes.Long.serialize("counts", "a" * 10_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300
    with pytest.raises(SerializationError) as caught:
        serdes.Long.deserialize("counts", b"a" * 10_000)
    assert len(str(caught.value)) < 300


def test_value_that_cannot_be_shown_is_named_by_its_type() -> None:
    with pytest.raises(SerializationError, match=r"got int\. Use serdes"):
        serdes.Long.serialize("counts", 10**5000)


def test_bool_counts_as_a_number_and_int_as_float() -> None:
    assert serdes.Long.serialize("counts", True) == serdes.Long.serialize("counts", 1)
    assert serdes.Double.serialize("degrees", 1) == serdes.Double.serialize("degrees", 1.0)


def test_string_in_another_encoding() -> None:
    latin = serdes.String("latin-1")

    assert latin.serialize("lines", "ü") == b"\xfc"
    assert latin.deserialize("lines", b"\xfc") == "ü"
    assert repr(latin) == "serdes.String('latin-1', 'strict')"
    with pytest.raises(SerializationError, match="expected text that latin-1 can hold"):
        latin.serialize("lines", "中")
    with pytest.raises(LookupError, match="no-such"):
        serdes.String("no-such")
