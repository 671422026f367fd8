"""The registry of these tests (`tests/registry.py`) answers as Confluent's does."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Schema, SchemaRegistryError, ServerConfig

from headrace.serdes.registry import Registry
from tests.registry import SchemaRegistry


def record(*fields: Any, kind: str = "long") -> str:
    named = [{"name": "id", "type": kind}, *fields]
    return json.dumps({"type": "record", "name": "Order", "fields": named})


ORDER = record()
WITH_DEFAULT = record({"name": "count", "type": "int", "default": 1})
WITHOUT_DEFAULT = record({"name": "count", "type": "int"})


@pytest.fixture
def client(schema_registry: SchemaRegistry) -> Any:
    return Registry.of(schema_registry.url, "test").client


def avro(text: str) -> Schema:
    return Schema(text, "AVRO")


def test_subjects_versions_and_ids(client: Any) -> None:
    first = client.register_schema("orders-value", avro(ORDER))
    second = client.register_schema("orders-value", avro(WITH_DEFAULT))
    again = client.register_schema("returns-value", avro(ORDER))

    assert (first, second, again) == (1, 2, 1)
    assert client.get_subjects() == ["orders-value", "returns-value"]
    assert client.get_versions("orders-value") == [1, 2]
    assert client.get_latest_version("orders-value").schema_id == 2
    assert json.loads(client.get_version("orders-value", 1).schema.schema_str) == json.loads(ORDER)
    assert client.lookup_schema("orders-value", avro(WITH_DEFAULT)).version == 2
    assert json.loads(client.get_schema(1).schema_str) == json.loads(ORDER)


def test_a_schema_has_one_id_in_any_notation(client: Any) -> None:
    assert client.register_schema("a", avro('"string"')) == client.register_schema("b", avro('{"type": "string"}'))


@pytest.mark.parametrize(
    ("ask", "status", "code"),
    [
        (lambda client: client.get_versions("nothing"), 404, 40401),
        (lambda client: client.get_version("orders-value", 9), 404, 40402),
        (lambda client: client.get_schema(9), 404, 40403),
        (lambda client: client.lookup_schema("orders-value", avro(WITH_DEFAULT)), 404, 40403),
        (lambda client: client.register_schema("orders-value", avro(WITHOUT_DEFAULT)), 409, 409),
        (lambda client: client.register_schema("orders-value", avro('{"type": "recrd"}')), 422, 42201),
    ],
)
def test_errors_have_confluents_codes(client: Any, ask: Any, status: int, code: int) -> None:
    client.register_schema("orders-value", avro(ORDER))

    with pytest.raises(SchemaRegistryError) as raised:
        ask(client)

    assert (raised.value.http_status_code, raised.value.error_code) == (status, code)


@pytest.mark.parametrize(
    ("level", "fitting"),
    [
        ("NONE", {"default", "no default", "other type"}),
        ("BACKWARD", {"default"}),
        ("FORWARD", {"default", "no default"}),
        ("FULL", {"default"}),
        ("FULL_TRANSITIVE", {"default"}),
    ],
)
def test_the_level_decides_what_is_compatible(client: Any, level: str, fitting: set[str]) -> None:
    client.register_schema("orders-value", avro(ORDER))
    client.set_config("orders-value", ServerConfig(compatibility=ConfigCompatibilityLevel(level)))
    schemas = {"default": WITH_DEFAULT, "no default": WITHOUT_DEFAULT, "other type": record(kind="string")}

    found = {name for name, schema in schemas.items() if client.test_compatibility("orders-value", avro(schema))}

    assert found == fitting
    assert client.get_config("orders-value").compatibility_level == level


def test_the_level_of_all_subjects_can_be_set(client: Any) -> None:
    client.set_config(None, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    client.register_schema("orders-value", avro(ORDER))

    client.register_schema("orders-value", avro(record(kind="string")))

    assert client.get_config().compatibility_level == "NONE"
