"""All serdes: the same bytes as Kafka's Java serdes. java/SerdeBytes.java prints java_bytes.jsonl."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import serdes
from headrace.errors import SerializationError
from headrace.records import Window, Windowed
from headrace.serdes import Serde

LINES = [json.loads(line) for line in Path(__file__).with_name("java_bytes.jsonl").read_text("utf-8").splitlines()]
WRITTEN = [line for line in LINES if line["kind"] == "write"]
READ = [line for line in LINES if line["kind"] == "read"]
TAKEN_IN_JAVA_WRITTEN = [line for line in LINES if line["kind"] == "lenient write"]
TAKEN_IN_JAVA_READ = [line for line in LINES if line["kind"] == "lenient read"]

SINGLE: dict[str, tuple[Serde[Any], Callable[[Any], Any]]] = {
    "String": (serdes.String, str),
    "Integer": (serdes.Integer, int),
    "Long": (serdes.Long, int),
    "Short": (serdes.Short, int),
    "Float": (serdes.Float, float),
    "Double": (serdes.Double, float),
    "Boolean": (serdes.Boolean, bool),
    "Bytes": (serdes.Bytes, bytes.fromhex),
    "UUID": (serdes.UUID, uuid.UUID),
    "Void": (serdes.Void, lambda value: value),
}


def serde_of(line: dict[str, Any]) -> Serde[Any]:
    match line["serde"]:
        case "List":
            return serdes.List(inner_serde(line["inner"]))
        case "Windowed":
            return serdes.Windowed(inner_serde(line["inner"]), line["size"])
        case "SessionWindowed":
            return serdes.SessionWindowed(inner_serde(line["inner"]))
        case name:
            return SINGLE[name][0]


def inner_serde(name: str) -> Serde[Any]:
    return serdes.List(serdes.String) if name == "List(String)" else SINGLE[name][0]


def value_of(line: dict[str, Any]) -> Any:
    value = line["value"]
    if value is None:
        return None
    match line["serde"], line.get("inner", ""):
        case "List", "List(String)":
            return value
        case "List", inner:
            return [None if entry is None else SINGLE[inner][1](entry) for entry in value]
        case "Windowed" | "SessionWindowed", inner:
            return Windowed(SINGLE[inner][1](value["key"]), Window(value["start"], value["end"]))
        case name, _:
            return SINGLE[name][1](value)


def data_of(line: dict[str, Any]) -> bytes | None:
    return None if line["hex"] is None else bytes.fromhex(line["hex"])


def named(line: dict[str, Any]) -> str:
    return f"{line['serde']}-{line.get('inner', '')}-{line['hex']}"


def same(left: Any, right: Any) -> bool:
    """Tell whether two values are equal, NaN to NaN and the zeros to themselves."""
    return repr(left) == repr(right)


@pytest.mark.parametrize("line", WRITTEN, ids=named)
def test_writes_the_bytes_java_writes(line: dict[str, Any]) -> None:
    assert serde_of(line).serialize("topic", value_of(line)) == data_of(line)


@pytest.mark.parametrize("line", WRITTEN, ids=named)
def test_reads_the_bytes_java_writes(line: dict[str, Any]) -> None:
    value = serde_of(line).deserialize("topic", data_of(line))

    if line["serde"] == "Float" or line.get("inner") == "Float":  # 0.1 as float is another double
        assert serde_of(line).serialize("topic", value) == data_of(line)
    else:
        assert same(value, value_of(line))


@pytest.mark.parametrize("line", [line for line in READ if "rejected" in line], ids=named)
def test_rejects_the_bytes_java_rejects(line: dict[str, Any]) -> None:
    with pytest.raises(SerializationError, match="on topic 'topic': "):
        serde_of(line).deserialize("topic", data_of(line))


@pytest.mark.parametrize("line", [line for line in READ if "rejected" not in line], ids=named)
def test_reads_what_java_reads_from_bytes_it_would_not_write(line: dict[str, Any]) -> None:
    assert same(serde_of(line).deserialize("topic", data_of(line)), value_of(line))


@pytest.mark.parametrize("line", TAKEN_IN_JAVA_WRITTEN, ids=named)
def test_half_a_surrogate_pair_is_an_error_unless_replaced_as_in_java(line: dict[str, Any]) -> None:
    with pytest.raises(SerializationError, match="expected text that utf-8 can hold"):
        serdes.String.serialize("topic", line["value"])
    assert serdes.String(errors="replace").serialize("topic", line["value"]) == data_of(line)


@pytest.mark.parametrize("line", TAKEN_IN_JAVA_READ, ids=named)
def test_bytes_that_java_reads_with_loss_are_an_error(line: dict[str, Any]) -> None:
    assert "rejected" not in line
    with pytest.raises(SerializationError, match="on topic 'topic': expected "):
        serde_of(line).deserialize("topic", data_of(line))


@pytest.mark.parametrize("line", [line for line in TAKEN_IN_JAVA_READ if line["serde"] == "String"], ids=named)
def test_bytes_that_are_not_utf_8_may_be_replaced_as_in_java(line: dict[str, Any]) -> None:
    replaced = serdes.String(errors="replace").deserialize("topic", data_of(line))

    # Java puts one U+FFFD for a surrogate written in three bytes, Python one for each byte.
    assert replaced == ("\ufffd" * 3 if line["hex"] == "eda080" else line["value"])


def test_only_a_list_that_ends_in_an_empty_entry_is_unreadable_in_java() -> None:
    assert [line["value"] for line in WRITTEN if "unreadable" in line] == [["a", ""]]


def test_every_serde_with_a_java_counterpart_is_compared() -> None:
    assert {line["serde"] for line in WRITTEN} == {*SINGLE, "List", "Windowed", "SessionWindowed"}
