"""Serdes made from a user's functions."""

import json
import pickle
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from headrace import serdes
from headrace.errors import SerializationError
from headrace.records import Headers, Window, Windowed
from headrace.serdes import Serde


def test_functions_of_the_value() -> None:
    serde = Serde(lambda value: json.dumps(value).encode(), json.loads)

    assert serde.serialize("topic", {"a": 1}) == b'{"a": 1}'
    assert serde.deserialize("topic", b'{"a": 1}') == {"a": 1}
    assert not serde.uses_headers


def test_functions_of_topic_and_value() -> None:
    serde: Serde[Any] = Serde(lambda topic, value: f"{topic}:{value}".encode(), lambda topic, data: (topic, data))

    assert serde.serialize("topic", 1) == b"topic:1"
    assert serde.deserialize("topic", b"1") == ("topic", b"1")
    assert serde.encoder("topic")(1) == b"topic:1"
    assert serde.decoder("topic")(b"1") == ("topic", b"1")
    assert not serde.uses_headers


def test_functions_of_topic_value_and_headers() -> None:
    def serialize(topic: str, value: str, headers: Headers) -> bytes:
        headers.append(("length", str(len(value)).encode()))
        return value.encode()

    def deserialize(topic: str, data: bytes, headers: Headers) -> tuple[bytes, Headers]:
        return data, headers

    serde: Serde[Any] = Serde(serialize, deserialize)
    headers: Headers = []

    assert serde.uses_headers
    assert serde.serialize("topic", "abc", headers) == b"abc"
    assert headers == [("length", b"3")]
    assert serde.deserialize("topic", b"abc", headers) == (b"abc", headers)
    assert serde.encoder("topic")("abc") == b"abc"
    assert serde.decoder("topic")(b"abc") == (b"abc", [])


def test_headers_reach_the_inner_serde() -> None:
    inner = Serde(lambda topic, value, headers: headers[0][1], lambda topic, data, headers: headers[0][1])
    headers = [("h", b"x")]

    cases: list[tuple[Serde[Any], Any]] = [
        (serdes.Windowed(inner, 5), Windowed("a", Window(0, 5))),
        (serdes.SessionWindowed(inner), Windowed("a", Window(0, 5))),
        (serdes.List(inner), ["a"]),
    ]
    for outer, value in cases:
        assert outer.uses_headers
        data = outer.serialize("topic", value, headers)
        assert data is not None
        assert b"x" in data
        assert "b'x'" in repr(outer.deserialize("topic", data, headers))


class Codec:
    def write(self, topic: str, value: str) -> bytes:
        return f"{topic}:{value}".encode()

    def __call__(self, data: bytes) -> str:
        return data.decode()


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (str.encode, 1),
        (bytes, 1),
        (int, 1),
        (pickle.dumps, 1),
        (zlib.compress, 1),
        (Codec().write, 2),
        (Codec(), 1),
        (lambda value, indent=2: b"", 1),
        (lambda value=None: b"", 1),
        (lambda *args: b"", 1),
        (lambda topic, value, indent=2: b"", 2),
        (lambda topic, value, headers=None: b"", 3),
        (lambda topic, value, headers: b"", 3),
        (lambda topic, value, headers, indent=2: b"", 3),
    ],
)
def test_the_signature_tells_what_a_function_takes(function: Callable[..., Any], takes: int) -> None:
    assert serdes.base.UserFunction.of(function, "serialize").takes == takes


@pytest.mark.parametrize(
    ("function", "takes"),
    [
        (lambda a, b, c, d: b"", r"\(a, b, c, d\)"),
        (lambda value, *, indent: b"", r"\(value, indent=\)"),
        (lambda: b"", r"\(\)"),
    ],
)
def test_function_with_other_arguments_is_refused(function: Callable[..., Any], takes: str) -> None:
    with pytest.raises(TypeError, match=rf"deserialize must take \(value\), .* takes {takes}$"):
        Serde(str.encode, function)


def test_only_functions_are_accepted() -> None:
    text: Any = "utf-8"

    with pytest.raises(TypeError, match=r"serialize must be a function, got str \('utf-8'\)"):
        Serde(text, bytes.decode)


def broken(value: object) -> bytes:
    raise KeyError("colour")


def test_error_in_a_function_names_serde_topic_value_and_cause() -> None:
    serde: Serde[Any] = Serde(broken, broken)

    with pytest.raises(SerializationError) as caught:
        serde.serialize("cars", 42)
    assert str(caught.value) == (
        "serdes.Serde(broken, broken) on topic 'cars': cannot write int (42): KeyError: 'colour'"
    )
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(SerializationError) as caught:
        serde.deserialize("cars", b"42")
    assert str(caught.value) == (
        "serdes.Serde(broken, broken) on topic 'cars': cannot read 2 bytes (b'42'): KeyError: 'colour'"
    )


def test_serialize_may_return_null_or_any_kind_of_bytes() -> None:
    assert Serde(lambda value: None, bytes.decode).serialize("topic", "a") is None
    assert type(Serde(lambda value: bytearray(b"a"), bytes.decode).serialize("topic", "a")) is bytes


def test_serialize_must_not_return_something_else() -> None:
    with pytest.raises(SerializationError, match=r"serialize must return bytes or None, got str \('a'\)"):
        Serde(lambda value: value, bytes.decode).serialize("topic", "a")


def test_serde_as_a_subclass() -> None:
    class Reversed(Serde[str]):
        def __init__(self) -> None: ...

        def __repr__(self) -> str:
            return "Reversed()"

        def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[str], bytes]:
            return lambda value: value[::-1].encode()

        def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], str]:
            return lambda data: data.decode()[::-1]

    assert Reversed().serialize("topic", "abc") == b"cba"
    assert Reversed().deserialize("topic", b"cba") == "abc"
    with pytest.raises(SerializationError, match=r"^Reversed\(\) on topic 'topic': cannot write int \(1\): TypeError"):
        Reversed().serialize("topic", 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", serdes.__all__)
def test_exported_names_exist(name: str) -> None:
    assert hasattr(serdes, name)
