"""Avro, plain and with a registry: the same bytes as Confluent's serializers, evolution, classes, subjects.

The conversion to classes (`serdes.class_conversion`) is tested here and with the other two formats.
"""

import json
import pickle
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import msgspec
import pydantic
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark import cloudpickle

from headrace import SerializationError, Window, Windowed, serdes
from headrace.serdes.registry import Registry

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": "string"},
        {"name": "price", "type": ["null", "double"], "default": None},
    ],
}
TEA = {"id": 7, "item": "tea", "price": 2.5}


def with_fields(*fields: dict[str, Any]) -> dict[str, Any]:
    return {**ORDER, "fields": [*ORDER["fields"], *fields]}


def client_of(url: str) -> Any:
    return Registry.of(url, "test").client


@dataclass
class Order:
    id: int
    item: str
    price: float | None = None


class OrderStruct(msgspec.Struct):
    id: int
    item: str
    price: float | None = None


class OrderModel(pydantic.BaseModel):
    id: int
    item: str
    price: float | None = None


SAMPLES: list[tuple[Any, Any]] = [
    (ORDER, TEA),
    (ORDER, {"id": -1, "item": "grüezi", "price": None}),
    ("string", "tea"),
    ("long", 7),
    ("boolean", True),
    ("bytes", b"as they are"),
    (["null", "string"], "tea"),
    ({"type": "map", "values": "int"}, {"a": 1}),
    ({"type": "array", "items": "double"}, [0.5, 1.5]),
]


@pytest.mark.parametrize(("schema", "value"), SAMPLES)
@pytest.mark.parametrize("part", [MessageField.KEY, MessageField.VALUE])
def test_bytes_are_those_of_confluents_serializers(
    mock_registry: str, schema: Any, value: Any, part: MessageField
) -> None:
    client, where = client_of(mock_registry), SerializationContext("orders", part)
    text = json.dumps(schema)
    serde: Any = serdes.Avro(schema, mock_registry)
    serde = serde.for_keys() if part == MessageField.KEY else serde

    data = serde.serialize("orders", value)

    assert data == AvroSerializer(client, text)(value, where)
    assert AvroDeserializer(client, text)(data, where) == value
    assert serde.deserialize("orders", data) == value
    assert client.get_subjects() == [f"orders-{part}"]


@pytest.mark.parametrize(("schema", "value"), SAMPLES)
def test_without_a_registry_there_is_only_the_data(mock_registry: str, schema: Any, value: Any) -> None:
    serde = serdes.Avro(schema)

    data = serde.serialize("orders", value)

    assert data is not None
    if schema != "bytes":
        assert data == (serdes.Avro(schema, mock_registry).serialize("orders", value) or b"")[5:]
    assert serde.deserialize("orders", data) == value


def test_a_schema_is_a_dict_or_text() -> None:
    for schema in (ORDER, json.dumps(ORDER), f"\n  {json.dumps(ORDER)}\n"):
        assert serdes.Avro(schema).serialize("orders", TEA) == b"\x0e\x06tea\x02\x00\x00\x00\x00\x00\x00\x04@"
    assert serdes.Avro('"string"').serialize("names", "tea") == serdes.Avro("string").serialize("names", "tea")


def test_none_is_null(mock_registry: str) -> None:
    serde = serdes.Avro(ORDER, mock_registry)

    assert serde.serialize("orders", None) is None
    assert serde.deserialize("orders", None) is None
    assert client_of(mock_registry).get_subjects() == []


def test_a_new_field_gets_its_default(mock_registry: str) -> None:
    old = serdes.Avro(ORDER, mock_registry)
    new = serdes.Avro(with_fields({"name": "count", "type": "int", "default": 1}), mock_registry)

    assert new.deserialize("orders", old.serialize("orders", TEA)) == {**TEA, "count": 1}


def test_a_field_that_is_not_known_is_left_out(mock_registry: str) -> None:
    old = serdes.Avro(ORDER, mock_registry)
    new = serdes.Avro(with_fields({"name": "count", "type": "int", "default": 1}), mock_registry)

    assert old.deserialize("orders", new.serialize("orders", {**TEA, "count": 3})) == TEA


def test_messages_of_several_schemas_are_read_in_turn(mock_registry: str) -> None:
    old = serdes.Avro(ORDER, mock_registry)
    new = serdes.Avro(with_fields({"name": "count", "type": "int", "default": 1}), mock_registry)
    data = [old.serialize("orders", TEA), new.serialize("orders", {**TEA, "count": 3})] * 2

    decode = new.decoder("orders")

    assert [decode(message)["count"] for message in data if message] == [1, 3, 1, 3]


def test_schemas_that_refer_to_others_are_read(mock_registry: str) -> None:
    client = client_of(mock_registry)
    line = {"type": "record", "name": "shop.Line", "fields": [{"name": "item", "type": "string"}]}
    order = {"type": "record", "name": "shop.Order", "fields": [{"name": "line", "type": "shop.Line"}]}
    client.register_schema("lines", Schema(json.dumps(line), "AVRO"))
    schema = Schema(json.dumps(order), "AVRO", [SchemaReference("shop.Line", "lines", 1)])
    where = SerializationContext("orders", MessageField.VALUE)
    data = AvroSerializer(client, schema)({"line": {"item": "tea"}}, where)
    whole = {**order, "fields": [{"name": "line", "type": line}]}

    assert serdes.Avro(whole, mock_registry).deserialize("orders", data) == {"line": {"item": "tea"}}


@pytest.mark.parametrize("kind", [Order, OrderStruct, OrderModel])
def test_classes_are_written_and_read(mock_registry: str, kind: Any) -> None:
    serde = serdes.Avro(ORDER, mock_registry, type=kind)

    data = serde.serialize("orders", kind(**TEA))

    assert data == serdes.Avro(ORDER, mock_registry).serialize("orders", TEA)
    assert serde.deserialize("orders", data) == kind(**TEA)


def test_a_model_is_written_by_its_aliases(mock_registry: str) -> None:
    class Aliased(pydantic.BaseModel):
        id: int
        item_name: str = pydantic.Field(alias="item")

    serde = serdes.Avro(ORDER, mock_registry, type=Aliased)
    order = Aliased(id=7, item="tea")

    data = serde.serialize("orders", order)

    assert data == serdes.Avro(ORDER, mock_registry).serialize("orders", {"id": 7, "item": "tea"})
    assert serde.deserialize("orders", data) == order


def test_types_that_avro_has_are_kept() -> None:
    @dataclass
    class Payment:
        at: datetime
        day: date
        amount: Decimal
        receipt: bytes

    fields = [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "receipt", "type": "bytes"},
    ]
    serde = serdes.Avro({"type": "record", "name": "Payment", "fields": fields}, type=Payment)
    payment = Payment(datetime(2026, 1, 2, 3, 4, tzinfo=UTC), date(2026, 1, 2), Decimal("7.50"), b"\x00")

    assert serde.deserialize("payments", serde.serialize("payments", payment)) == payment


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("topic", "orders-value"), ("record", "shop.Order"), ("topic_record", "orders-shop.Order")],
)
def test_subjects_are_named_by_the_strategy(mock_registry: str, strategy: str, subject: str) -> None:
    serdes.Avro(ORDER, mock_registry, subject=strategy).serialize("orders", TEA)

    assert client_of(mock_registry).get_subjects() == [subject]


def test_keys_have_a_subject_of_their_own(mock_registry: str) -> None:
    key = serdes.Avro("string", mock_registry)
    cases: list[tuple[serdes.Serde[Any], Any]] = [
        (key.for_keys(), "a"),
        (serdes.List(key).for_keys(), ["a"]),
        (serdes.Windowed(key, 10), Windowed("a", Window(0, 10))),
        (serdes.SessionWindowed(key), Windowed("a", Window(0, 10))),
    ]

    for serde, value in cases:
        data = serde.serialize(repr(serde), value)
        assert serde.deserialize(repr(serde), data) == value

    subjects = client_of(mock_registry).get_subjects()
    assert len(subjects) == 4
    assert all(subject.endswith("-key") for subject in subjects)


def test_the_latest_schema_is_written_with(mock_registry: str) -> None:
    newer = with_fields({"name": "count", "type": "int", "default": 1})
    serdes.Avro(ORDER, mock_registry).serialize("orders", TEA)
    serdes.Avro(newer, mock_registry).serialize("orders", {**TEA, "count": 2})
    serde = serdes.Avro(ORDER, mock_registry, use_latest=True)

    data = serde.serialize("orders", TEA)

    assert data is not None
    assert data[4] == 2
    assert serdes.Avro(newer, mock_registry).deserialize("orders", data) == {**TEA, "count": 1}


def test_nothing_is_registered_without_auto_register(mock_registry: str) -> None:
    serde = serdes.Avro(ORDER, mock_registry, auto_register=False)

    with pytest.raises(SerializationError, match=r"'orders-value': the registry at mock://.* has no such schema"):
        serde.serialize("orders", TEA)
    serdes.Avro(ORDER, mock_registry).serialize("orders", TEA)

    assert serde.serialize("orders", TEA) == serdes.Avro(ORDER, mock_registry).serialize("orders", TEA)


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_a_serde_can_be_sent_to_another_process(mock_registry: str, dumps: Any) -> None:
    serde = serdes.Avro(ORDER, {"url": mock_registry, "basic.auth.user.info": "me:secret"}, type=Order)
    data = serde.serialize("orders", Order(7, "tea"))

    arrived = pickle.loads(dumps(serdes.Windowed(serde, 10))).inner

    assert arrived.for_keys().deserialize("orders", data) == Order(7, "tea")
    assert repr(arrived) == repr(serde) == "serdes.Avro(shop.Order, registry)"


def test_a_value_that_does_not_fit_the_schema_is_refused(mock_registry: str) -> None:
    serde = serdes.Avro(ORDER, mock_registry)

    for value, reason in (
        ({"id": "seven", "item": "tea"}, "an integer is required on field id"),
        ({"id": 7}, "Field item is specified in the schema but missing"),
        ({"id": 7, "item": "tea", "prize": 2.5}, "more fields than the schema specifies: prize"),
    ):
        with pytest.raises(SerializationError, match=reason) as raised:
            serde.serialize("orders", value)
        assert "on topic 'orders': expected a value for schema shop.Order, got dict" in str(raised.value)


@pytest.mark.parametrize("data", [b"", b"hello", b"\x00\x00", b"\x01\x00\x00\x00\x01\x0e"])
def test_bytes_without_a_schema_id_are_refused(mock_registry: str, data: bytes) -> None:
    with pytest.raises(SerializationError, match=r"expected a message of a schema registry \(a byte 0, 4 bytes"):
        serdes.Avro(ORDER, mock_registry).deserialize("orders", data)


def test_an_id_that_is_not_known_is_refused(mock_registry: str) -> None:
    with pytest.raises(SerializationError, match=r"schema id 9: the registry at mock://.* has no such schema"):
        serdes.Avro(ORDER, mock_registry).deserialize("orders", b"\x00\x00\x00\x00\x09\x0e")


def test_a_message_of_another_format_is_refused(mock_registry: str) -> None:
    data = serdes.JsonSchema({"type": "object"}, mock_registry).serialize("orders", {})

    with pytest.raises(SerializationError, match="schema id 1: expected a schema of type AVRO, got JSON"):
        serdes.Avro(ORDER, mock_registry).deserialize("orders", data)


def test_data_that_is_cut_or_too_long_is_refused(mock_registry: str) -> None:
    serde = serdes.Avro(ORDER, mock_registry)
    data = serde.serialize("orders", TEA)
    assert data is not None

    with pytest.raises(SerializationError, match=r"expected data for schema shop\.Order, got 8 bytes .* schema id 1"):
        serde.deserialize("orders", data[:8])
    with pytest.raises(SerializationError, match="2 bytes are left over"):
        serde.deserialize("orders", data + b"!!")


def test_data_that_the_schema_cannot_read_is_refused(mock_registry: str) -> None:
    data = serdes.Avro(ORDER, mock_registry).serialize("orders", TEA)
    other = serdes.Avro(with_fields({"name": "count", "type": "int"}), mock_registry)

    with pytest.raises(SerializationError, match=r"expected data for schema shop\.Order, .*: .*count"):
        other.deserialize("orders", data)


@pytest.mark.parametrize("schema", ["orders", {"type": "recrd"}, "{", 7])
def test_an_invalid_schema_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"serdes\.Avro: expected an Avro schema, got"):
        serdes.Avro(schema)


@pytest.mark.parametrize(
    "given",
    ["https://me:hush@registry", "me:hush@registry:8081", {"url": "mock://a", "basic.auth.user.info": "hush"}],
)
@pytest.mark.parametrize("serde", [serdes.Avro, serdes.JsonSchema, serdes.Protobuf])
def test_a_registry_in_place_of_a_schema_is_refused_and_not_shown(serde: Any, given: Any) -> None:
    with pytest.raises(
        ValueError, match=r"got the address of a registry\. The schema is the first argument$"
    ) as raised:
        serde(given, "{}")

    assert raised.value.__cause__ is None


@pytest.mark.parametrize("password", ["p#w", "p?w", "p,w", "p@w", "p:w", "p%2Fw"])
def test_a_password_in_a_url_may_have_any_letters(password: str) -> None:
    registry = Registry.of(f"https://me:{password}@registry:8081", "x")

    assert registry.url == "https://registry:8081"
    assert registry.settings["basic.auth.user.info"] == f"me:{unquote(password)}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"registry": 7}, "registry: expected a URL or settings with a 'url', got int"),
        ({"registry": {"uri": "secret"}}, "registry: expected a URL or settings with a 'url', got dict"),
        ({"registry": "me:secret@registry:8081"}, "registry: expected a URL that begins with http:// or https://"),
        ({"registry": "http://me:sec/secret@registry"}, "registry: expected a URL without / and @ in its password"),
        ({"registry": "mock://a", "subject": "name"}, "subject: expected one of topic, record, topic_record"),
        ({"registry": "mock://a", "type": 7}, "type: expected a dataclass, a msgspec.Struct, a pydantic model"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        serdes.Avro(ORDER, **options)
    assert str(raised.value).startswith("serdes.Avro: ")
    assert "secret" not in str(raised.value)


def test_a_schema_without_a_name_has_no_subject_by_record(mock_registry: str) -> None:
    with pytest.raises(ValueError, match="subject='record' needs a schema with a name"):
        serdes.Avro("string", mock_registry, subject="record")


def test_a_subject_by_topic_needs_a_topic(mock_registry: str) -> None:
    with pytest.raises(SerializationError, match="subject='topic' needs a topic, got None"):
        serdes.Avro(ORDER, mock_registry).serialize(None, TEA)
