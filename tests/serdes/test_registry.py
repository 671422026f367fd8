"""Serdes with a registry over HTTP: evolution under its compatibility check, credentials, errors."""

import json
import logging
import pickle
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headrace import SerializationError, serdes
from headrace.serdes.registry import Registry
from tests.registry import SchemaRegistry, serve
from tests.serdes.messages import Order

ORDER: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
COUNT = {"name": "count", "type": "int", "default": 1}
COUNTED = {**ORDER, "fields": [*ORDER["fields"], COUNT]}
AT_ONCE = {"max.retries": 0, "timeout": 5}


def test_a_schema_evolves(schema_registry: SchemaRegistry) -> None:
    older, newer = serdes.Avro(ORDER, schema_registry.url), serdes.Avro(COUNTED, schema_registry.url)

    from_older = older.serialize("orders", {"id": 7})
    from_newer = newer.serialize("orders", {"id": 8, "count": 2})

    assert [newer.deserialize("orders", data) for data in (from_older, from_newer)] == [
        {"id": 7, "count": 1},
        {"id": 8, "count": 2},
    ]
    assert [older.deserialize("orders", data) for data in (from_older, from_newer)] == [{"id": 7}, {"id": 8}]
    assert schema_registry.answer("GET", "/subjects/orders-value/versions", {}, None) == [1, 2]


def test_an_incompatible_schema_is_rejected(schema_registry: SchemaRegistry) -> None:
    serdes.Avro(ORDER, schema_registry.url).serialize("orders", {"id": 7})
    without_default = {**ORDER, "fields": [*ORDER["fields"], {"name": "count", "type": "int"}]}

    with pytest.raises(SerializationError) as raised:
        serdes.Avro(without_default, schema_registry.url).serialize("orders", {"id": 7, "count": 1})

    assert str(raised.value) == (
        "serdes.Avro(Order, registry) on topic 'orders': subject 'orders-value': the registry at "
        f"{schema_registry.url} rejects the schema because it is not compatible with earlier versions: Schema being "
        "registered is incompatible with an earlier schema for subject 'orders-value'. Give new fields a default"
    )


def test_confluents_serializers_and_these_understand_each_other(schema_registry: SchemaRegistry) -> None:
    client = Registry.of(schema_registry.url, "test").client
    where = SerializationContext("orders", MessageField.VALUE, [])
    theirs, ours = AvroSerializer(client, json.dumps(ORDER)), serdes.Avro(ORDER, schema_registry.url)

    data = ours.serialize("orders", {"id": 7})

    assert theirs({"id": 7}, where) == data
    assert AvroDeserializer(client, json.dumps(COUNTED))(data, where) == {"id": 7, "count": 1}


def test_the_registry_is_asked_once(schema_registry: SchemaRegistry) -> None:
    serde = serdes.Avro(ORDER, schema_registry.url)
    for _ in range(3):
        arrived = pickle.loads(pickle.dumps(serde))
        data = arrived.serialize("orders", {"id": 7})
        assert arrived.deserialize("orders", data) == {"id": 7}

    assert [request.partition("?")[0] for request in schema_registry.requests] == [
        "POST /subjects/orders-value/versions",
        "GET /schemas/ids/1",
    ]


def test_all_formats_live_in_one_registry(schema_registry: SchemaRegistry) -> None:
    url = schema_registry.url
    cases: list[tuple[serdes.Serde[Any], Any]] = [
        (serdes.Avro("string", url), "tea"),
        (serdes.JsonSchema({"type": "object"}, url), {"id": 7}),
        (serdes.Protobuf(Order, url), Order(id=7, items=[{"name": "tea"}])),
    ]

    for topic, (serde, value) in enumerate(cases):
        assert serde.deserialize(str(topic), serde.serialize(str(topic), value)) == value

    assert schema_registry.answer("GET", "/subjects", {}, None) == ["0-value", "1-value", "2-value", "shop/items.proto"]


@pytest.mark.parametrize(
    "settings",
    [
        lambda url: url.replace("//", "//me:top%20secret@"),
        lambda url: {"url": url, "basic.auth.user.info": "me:top secret"},
    ],
    ids=["url", "settings"],
)
def test_credentials_are_sent_and_never_shown(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serve(credentials="me:top secret") as registry:
        serde = serdes.Avro(ORDER, settings(registry.url))

        data = serde.serialize("orders", {"id": 7})

    assert data == b"\x00\x00\x00\x00\x01\x0e"
    assert "secret" not in f"{serde!r} {vars(serde)} {caplog.text}"


def test_credentials_that_are_refused_are_not_shown() -> None:
    with serve(credentials="me:top secret") as registry:
        address = registry.url.replace("//", "//me:wrong-secret@")

        with pytest.raises(SerializationError, match="rejects the credentials: Unauthorized") as raised:
            serdes.Avro(ORDER, address).serialize("orders", {"id": 7})

    assert "secret" not in str(raised.value)


def test_a_missing_registry_is_named_without_credentials() -> None:
    with serve() as registry:
        address = {"url": registry.url.replace("//", "//me:secret@"), **AT_ONCE}

    with pytest.raises(SerializationError) as raised:
        serdes.Avro(ORDER, address).serialize("orders", {"id": 7})
    with pytest.raises(SerializationError, match=f"schema id 1: the registry at {registry.url} cannot be reached"):
        serdes.Avro(ORDER, address).deserialize("orders", b"\x00\x00\x00\x00\x01\x0e")

    assert str(raised.value).startswith(
        "serdes.Avro(Order, registry) on topic 'orders': subject 'orders-value': "
        f"the registry at {registry.url} cannot be reached: ConnectError"
    )
    assert "secret" not in str(raised.value)


def test_settings_that_the_client_does_not_know_are_refused(schema_registry: SchemaRegistry) -> None:
    serde = serdes.Avro(ORDER, {"url": schema_registry.url, "basic.auth.usr.info": "me:secret"})

    with pytest.raises(SerializationError, match=r"settings of the registry at .* basic\.auth\.usr\.info") as raised:
        serde.serialize("orders", {"id": 7})

    assert "secret" not in str(raised.value)
