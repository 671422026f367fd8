"""JSON with a JSON Schema, in the format of Confluent's schema registry."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from headrace.records import Headers
from headrace.serdes.base import Serde
from headrace.serdes.class_conversion import check_class, from_dict, to_dict
from headrace.serdes.error_messages import shorten, shown
from headrace.serdes.registry import (
    FRAME,
    Registration,
    RegistryAddress,
    check_no_address,
    read_problem,
    schema_from,
    write_problem,
)

_WHO = "serdes.JsonSchema"

_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


class JsonSchemaSerde(Serde[Any]):
    """Write values as JSON that a schema in a registry describes.

    >>> order = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    >>> serde = JsonSchema(order, "mock://example-of-json")
    >>> serde.serialize("orders", {"id": 7})
    b'\\x00\\x00\\x00\\x00\\x01{"id":7}'

    The schema is a dict or JSON text. Every value that is written or read must be valid. The check takes most of the
    time; ``validate=False`` turns it off. Objects are dicts, or instances of `type`.
    """

    def __init__(
        self,
        schema: str | dict[str, Any],
        registry: RegistryAddress,
        *,
        type: Any = None,
        subject: str = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
        validate: bool = True,
    ) -> None:
        check_no_address(_WHO, "a JSON Schema", schema)
        self._text = schema if isinstance(schema, str) else json.dumps(schema)
        try:
            title = _title_of(json.loads(self._text))
            _checker(self._text)
        except Exception as error:
            reason = getattr(error, "message", error)
            raise ValueError(f"{_WHO}: expected a JSON Schema, got {shown(schema)}: {reason}") from error
        self._type = None if type is None else check_class(type, _WHO)
        self._registration = Registration.of(_WHO, registry, subject, title, auto_register, use_latest)
        self._validate = validate
        self._name = title or "untitled"

    def __repr__(self) -> str:
        return f"serdes.JsonSchema({self._name}, registry)"

    def for_keys(self) -> Serde[Any]:
        serde = copy.copy(self)
        serde._registration = self._registration.for_keys()
        return serde

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[Any], bytes]:
        prefix: bytes | None = None
        check: Callable[[Any], None] = _accept
        convert = None if self._type is None else to_dict(self._type, json=True)

        def encode(value: Any) -> bytes:
            nonlocal prefix, check
            if prefix is None:
                prefix, check = self._written_with(topic)
            if convert is not None:
                value = convert(value)
            check(value)
            return prefix + _encode_json(value)

        return encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], Any]:
        check = _checker(self._text) if self._validate else _accept
        convert = None if self._type is None else from_dict(self._type, json=True)

        def decode(data: bytes) -> Any:
            if data[0]:
                raise ValueError("not a message of a registry")
            value = _decode_json(data[FRAME.size :])
            check(value)
            return value if convert is None else convert(value)

        return decode

    def write_problem(self, value: Any, error: Exception) -> str:
        return write_problem(f"schema {self._name}", value, error)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return read_problem(f"schema {self._name}", data, error)

    def _written_with(self, topic: str | None) -> tuple[bytes, Callable[[Any], None]]:
        schema_id, schema = self._registration.written_with(topic, lambda: schema_from(self._text, "JSON"))
        references = self._registration.registry.references(schema)
        check = _checker(schema.schema_str or "", tuple(references.items())) if self._validate else _accept
        return FRAME.pack(0, schema_id), check


JsonSchema = JsonSchemaSerde


def _title_of(schema: Any) -> str | None:
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) else None


def _accept(value: Any) -> None:
    pass


@cache
def _checker(text: str, references: tuple[tuple[str, str], ...] = ()) -> Callable[[Any], None]:
    """Return the function that raises an error when a value is not valid."""
    # Imported here because it takes 50 ms, in every process, and most applications have no JSON Schema.
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    schema = json.loads(text)
    validator = validator_for(schema)
    validator.check_schema(schema)
    # With a registry of its own jsonschema does not fetch schemas from the URLs that a schema refers to.
    referred = [(name, Resource.from_contents(json.loads(found), DRAFT7)) for name, found in references]
    errors_of = validator(schema, registry=Registry().with_resources(referred)).iter_errors

    def check(value: Any) -> None:
        for error in errors_of(value):
            raise ValueError(f"{error.json_path}: {shorten(error.message)}")

    return check
