"""Avro by fastavro: plain, or in the format of Confluent's schema registry.

Functions import fastavro when they need it: the import takes 10 ms, in every process.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from headrace.records import Headers
from headrace.serdes.base import Serde, as_bytes
from headrace.serdes.class_conversion import check_class, from_dict, to_dict
from headrace.serdes.error_messages import shown
from headrace.serdes.registry import (
    FRAME,
    Registration,
    RegistryAddress,
    check_no_address,
    read_problem,
    schema_from,
    write_problem,
)

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema

_WHO = "serdes.Avro"


class AvroSerde(Serde[Any]):
    """Write values as Avro.

    The schema is a dict, JSON text, or the name of a primitive type such as ``"string"``. Without a registry the bytes
    are the data alone, and the serde must have the schema that wrote them:

    >>> order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    >>> Avro(order).serialize("orders", {"id": 7})
    b'\\x0e'

    With a registry the schema is registered, here under the subject ``orders-value``, and its id stands before the
    data:

    >>> serde = Avro(order, "mock://example")
    >>> serde.serialize("orders", {"id": 7})
    b'\\x00\\x00\\x00\\x00\\x01\\x0e'

    Data that another schema wrote is converted to the given schema: new fields get their defaults, unknown fields are
    left out. Records are dicts, or instances of `type`.
    """

    def __init__(
        self,
        schema: str | dict[str, Any] | list[Any],
        registry: RegistryAddress | None = None,
        *,
        type: Any = None,
        subject: str = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> None:
        check_no_address(_WHO, "an Avro schema", schema)
        try:
            self._text = _text_of(schema)
            own = parsed(self._text)
        except Exception as error:
            raise ValueError(f"{_WHO}: expected an Avro schema, got {shown(schema)}: {error}") from error
        name = own.get("name") if isinstance(own, dict) else None
        self._type = None if type is None else check_class(type, _WHO)
        self._registration: Registration | None = None
        if registry is not None:
            self._registration = Registration.of(_WHO, registry, subject, name, auto_register, use_latest)
        self._name = name or (own["type"] if isinstance(own, dict) else "union")

    def __repr__(self) -> str:
        return f"serdes.Avro({self._name}{', registry' if self._registration else ''})"

    def for_keys(self) -> Serde[Any]:
        if self._registration is None:
            return self
        serde = copy.copy(self)
        serde._registration = self._registration.for_keys()
        return serde

    # This calls fastavro directly. Confluent's serializers call it, too, but take twice the time to write and five
    # times the time to read.
    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[Any], bytes]:
        from fastavro import schemaless_writer

        prefix: bytes | None = None
        schema: Any = None
        convert = _same if self._type is None else to_dict(self._type)

        def encode(value: Any) -> bytes:
            nonlocal prefix, schema
            if prefix is None:
                prefix, schema = self._written_with(topic)
            if schema is RAW_BYTES:
                return prefix + as_bytes(value)
            buffer = BytesIO()
            buffer.write(prefix)
            schemaless_writer(buffer, schema, convert(value), strict_allow_default=True)
            return buffer.getvalue()

        return encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], Any]:
        from fastavro import schemaless_reader

        own = parsed(self._text)
        schemas: dict[int, tuple[Any, Any]] = {}
        framed, unpack, start = self._registration is not None, FRAME.unpack_from, FRAME.size
        convert = None if self._type is None else from_dict(self._type)

        def decode(data: bytes) -> Any:
            writer, reader = own, None
            stream = BytesIO(data)
            if framed:
                magic, schema_id = unpack(data)
                if magic:
                    raise ValueError("not a message of a registry")
                if schema_id not in schemas:
                    schemas[schema_id] = self._read_with(schema_id)
                writer, reader = schemas[schema_id]
                if writer is RAW_BYTES:
                    return data[start:]
                stream.seek(start)
            value = schemaless_reader(stream, writer, reader)
            if stream.tell() < len(data):
                raise ValueError(f"{len(data) - stream.tell()} bytes are left over")
            return value if convert is None else convert(value)

        return decode

    def write_problem(self, value: Any, error: Exception) -> str:
        return write_problem(f"schema {self._name}", value, error)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return read_problem(f"schema {self._name}", data, error, framed=self._registration is not None)

    def _written_with(self, topic: str | None) -> tuple[bytes, Any]:
        if self._registration is None:
            return b"", parsed(self._text)
        schema_id, schema = self._registration.written_with(topic, lambda: schema_from(self._text, "AVRO"))
        return FRAME.pack(0, schema_id), self._framed(schema)

    def _read_with(self, schema_id: int) -> tuple[Any, Any]:
        """Return the schema that wrote the data, and the serde's own schema if it is a different one."""
        assert self._registration is not None
        writer = self._framed(self._registration.registry.schema(schema_id, "AVRO"))
        own = parsed(self._text)
        return writer, None if writer == own else own

    def _framed(self, schema: Schema) -> Any:
        assert self._registration is not None
        references = self._registration.registry.references(schema)
        found = parsed(schema.schema_str or "", tuple(references.items()))
        return RAW_BYTES if found in ("bytes", {"type": "bytes"}) else found


Avro = AvroSerde

RAW_BYTES = object()
"""Stands for the schema "bytes". Confluent's serializers write its data without a length."""


@cache
def parsed(text: str, references: tuple[tuple[str, str], ...] = ()) -> Any:
    """Return a schema as fastavro takes it, together with the schemas that it refers to."""
    from fastavro.repository import AbstractSchemaRepository
    from fastavro.schema import load_schema, parse_schema

    if not references:
        return parse_schema(json.loads(text))
    texts = {**dict(references), "": text}

    class ReferredSchemas(AbstractSchemaRepository):
        def load(self, name: str) -> Any:
            return json.loads(texts[name])

    return load_schema("", repo=ReferredSchemas())


def _text_of(schema: Any) -> str:
    if isinstance(schema, str):
        text = schema.strip()
        if text.startswith(("{", "[")):
            return text
        quoted = text if text.startswith('"') else json.dumps(text)
        return f'{{"type":{quoted}}}'  # as Confluent's serializer for Python does
    return json.dumps(schema)


def _same(value: Any) -> Any:
    return value
