"""Finding a serde by its name."""

import uuid
from typing import Any

import pytest

from headrace import serdes
from headrace.errors import ConfigError, SerializationError
from headrace.serdes import Serde, as_serde, serde_by_name


@pytest.mark.parametrize(
    "serde", [serdes.String, serdes.Json(), serdes.List(serdes.Long), Serde(str.encode, bytes.decode)]
)
def test_serde_is_passed_on(serde: Serde[Any]) -> None:
    assert as_serde(serde) is serde


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (str, "key_serde: expected a serde such as serdes.String, got <class 'str'>. Use serdes.String"),
        (int, "key_serde: expected a serde such as serdes.String, got <class 'int'>. Use serdes.Long"),
        (bool, "key_serde: expected a serde such as serdes.String, got <class 'bool'>. Use serdes.Boolean"),
        (uuid.UUID, "key_serde: expected a serde such as serdes.String, got <class 'uuid.UUID'>. Use serdes.UUID"),
        (object, "key_serde: expected a serde such as serdes.String, got <class 'object'>"),
        ("Long", "key_serde: expected a serde such as serdes.String, got str ('Long'). Use serdes.Long"),
        ("long", "key_serde: expected a serde such as serdes.String, got str ('long')"),
        (None, "key_serde: expected a serde such as serdes.String, got NoneType (None)"),
        (7, "key_serde: expected a serde such as serdes.String, got int (7)"),
    ],
)
def test_other_values_than_serdes_are_refused_with_advice(value: Any, message: str) -> None:
    with pytest.raises(SerializationError) as caught:
        as_serde(value, "key_serde")

    assert str(caught.value) == message


def test_class_of_a_serde_is_not_a_serde() -> None:
    with pytest.raises(SerializationError, match=r"Use an instance: WindowedSerde\(\.\.\.\)$"):
        as_serde(serdes.Windowed)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: serdes.List(str), "inner serde of serdes.List"),  # type: ignore[arg-type]
        (lambda: serdes.Windowed(str, 5), "inner serde of serdes.Windowed"),  # type: ignore[arg-type]
        (lambda: serdes.SessionWindowed(str), "inner serde of serdes.SessionWindowed"),  # type: ignore[arg-type]
    ],
)
def test_inner_serde_must_be_one(make: Any, what: str) -> None:
    with pytest.raises(SerializationError, match=rf"^{what}: expected a serde"):
        make()


@pytest.mark.parametrize(
    "name", ["String", "Integer", "Long", "Short", "Float", "Double", "Boolean", "Bytes", "UUID", "Void"]
)
def test_serde_by_its_name_here_or_in_java(name: str) -> None:
    serde = getattr(serdes, name)

    assert serde_by_name(name) is serde
    assert serde_by_name(f"serdes.{name}") is serde
    assert serde_by_name(f"headrace.serdes.{name}") is serde
    assert serde_by_name(f"org.apache.kafka.common.serialization.Serdes${name}Serde") is serde
    assert serde_by_name(f"org.apache.kafka.common.serialization.Serdes.{name}Serde") is serde


def test_names_of_one_side_only() -> None:
    assert serde_by_name("Json") is serdes.Json
    assert serde_by_name("org.apache.kafka.common.serialization.Serdes$ByteArraySerde") is serdes.Bytes
    assert serde_by_name("org.apache.kafka.common.serialization.Serdes$ByteBufferSerde") is serdes.Bytes


@pytest.mark.parametrize(
    "name",
    [
        "string",
        "",
        "List",
        "StringSerde",
        "org.apache.kafka.common.serialization.Serdes$JsonSerde",
        "org.apache.kafka.common.serialization.Serdes$ListSerde",
        "org.apache.kafka.common.serialization.StringSerializer",
    ],
)
def test_an_unknown_name_is_refused_with_a_list_of_names(name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^default_key_serde: expected the name of a serde \(String, Integer, .*Json\)"
    ):
        serde_by_name(name, "default_key_serde")
