"""JSON with a schema in a registry: the same bytes as Confluent's serializers, validation, classes."""

import json
import pickle
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headrace import SerializationError, serdes
from headrace.serdes.registry import Registry

ORDER: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
    "required": ["id"],
}
TEA = {"id": 7, "item": "grüezi"}
WHERE = SerializationContext("orders", MessageField.VALUE)


@dataclass
class Order:
    id: int
    item: str = "tea"


class OrderModel(pydantic.BaseModel):
    id: int
    item: str = "tea"


def client_of(url: str) -> Any:
    return Registry.of(url, "test").client


def test_bytes_are_those_of_confluents_serializers(mock_registry: str) -> None:
    client, text = client_of(mock_registry), json.dumps(ORDER)
    serde = serdes.JsonSchema(ORDER, mock_registry)

    data = serde.serialize("orders", TEA)

    assert data == JSONSerializer(text, client)(TEA, WHERE)
    assert JSONDeserializer(text, schema_registry_client=client)(data, WHERE) == TEA
    assert serde.deserialize("orders", data) == TEA


@pytest.mark.parametrize("kind", [Order, OrderModel])
def test_classes_are_written_and_read(mock_registry: str, kind: Any) -> None:
    serde = serdes.JsonSchema(ORDER, mock_registry, type=kind)

    assert serde.serialize("orders", kind(id=7)) == b'\x00\x00\x00\x00\x01{"id":7,"item":"tea"}'
    assert serde.deserialize("orders", b'\x00\x00\x00\x00\x01{"id":7}') == kind(id=7)


def test_a_model_is_written_by_its_aliases(mock_registry: str) -> None:
    class Aliased(pydantic.BaseModel):
        number: int = pydantic.Field(alias="id")

    serde = serdes.JsonSchema(ORDER, mock_registry, type=Aliased)

    assert serde.serialize("orders", Aliased(id=7)) == b'\x00\x00\x00\x00\x01{"id":7}'
    assert serde.deserialize("orders", b'\x00\x00\x00\x00\x01{"id":7}') == Aliased(id=7)


def test_written_values_must_be_valid(mock_registry: str) -> None:
    serde = serdes.JsonSchema(json.dumps(ORDER), mock_registry)

    with pytest.raises(SerializationError, match=r"expected a value for schema Order, got dict .*: \$.id: 'seven' is"):
        serde.serialize("orders", {"id": "seven"})


def test_read_values_must_be_valid(mock_registry: str) -> None:
    serde = serdes.JsonSchema(ORDER, mock_registry)

    with pytest.raises(SerializationError, match=r"data for schema Order, .* id 1: \$: 'id' is a required property"):
        serde.deserialize("orders", b"\x00\x00\x00\x00\x01{}")


def test_validation_can_be_left_out(mock_registry: str) -> None:
    serde = serdes.JsonSchema(ORDER, mock_registry, validate=False)

    assert serde.deserialize("orders", serde.serialize("orders", {"id": "seven"})) == {"id": "seven"}


def test_the_latest_schema_decides_what_is_valid(mock_registry: str) -> None:
    client = client_of(mock_registry)
    item = {"title": "Item", "type": "string", "maxLength": 3}
    stricter = {**ORDER, "properties": {"item": {"$ref": "item.json"}}}
    client.register_schema("items", Schema(json.dumps(item), "JSON"))
    reference = SchemaReference("item.json", "items", 1)
    client.register_schema("orders-value", Schema(json.dumps(stricter), "JSON", [reference]))
    serde = serdes.JsonSchema(ORDER, mock_registry, use_latest=True)

    assert serde.serialize("orders", {"id": 7, "item": "tea"}) == b'\x00\x00\x00\x00\x02{"id":7,"item":"tea"}'
    with pytest.raises(SerializationError, match=r"\$.item: 'coffee' is too long"):
        serde.serialize("orders", {"id": 7, "item": "coffee"})


def test_a_title_is_the_name_of_the_record(mock_registry: str) -> None:
    serdes.JsonSchema(ORDER, mock_registry, subject="topic_record").serialize("orders", TEA)
    serdes.JsonSchema(ORDER, mock_registry).for_keys().serialize("orders", TEA)

    assert sorted(client_of(mock_registry).get_subjects()) == ["orders-Order", "orders-key"]
    with pytest.raises(ValueError, match="subject='record' needs a schema with a name"):
        serdes.JsonSchema({"type": "object"}, mock_registry, subject="record")


def test_a_serde_can_be_sent_to_another_process(mock_registry: str) -> None:
    serde = serdes.JsonSchema(ORDER, mock_registry, type=Order)

    arrived = pickle.loads(pickle.dumps(serde))

    assert arrived.deserialize("orders", serde.serialize("orders", Order(7))) == Order(7)
    assert repr(arrived) == "serdes.JsonSchema(Order, registry)"


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b'{"id":7}'])
def test_bytes_without_a_schema_id_are_refused(mock_registry: str, data: bytes) -> None:
    with pytest.raises(SerializationError, match="expected a message of a schema registry"):
        serdes.JsonSchema(ORDER, mock_registry).deserialize("orders", data)


@pytest.mark.parametrize("schema", ["{", {"type": "objct"}])
def test_an_invalid_schema_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"serdes\.JsonSchema: expected a JSON Schema, got"):
        serdes.JsonSchema(schema, "mock://unused")
