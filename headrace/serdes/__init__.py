"""Bytes ↔ values: the serdes of keys and values, in the formats of Kafka's Java serdes.

>>> from headrace import serdes
>>> serdes.Long.serialize("counts", 1)
b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01'
"""

from headrace.serdes.avro_serde import Avro, AvroSerde
from headrace.serdes.base import Serde
from headrace.serdes.by_name import as_serde, serde_by_name
from headrace.serdes.json_schema_serde import JsonSchema, JsonSchemaSerde
from headrace.serdes.json_serde import Json, JsonSerde
from headrace.serdes.list_serde import List, ListSerde
from headrace.serdes.numbers import (
    Double,
    DoubleSerde,
    Float,
    FloatSerde,
    Integer,
    IntegerSerde,
    Long,
    LongSerde,
    Short,
    ShortSerde,
)
from headrace.serdes.primitives import (
    UUID,
    Boolean,
    BooleanSerde,
    Bytes,
    BytesSerde,
    String,
    StringSerde,
    UUIDSerde,
    Void,
    VoidSerde,
)
from headrace.serdes.protobuf_serde import Protobuf, ProtobufSerde
from headrace.serdes.windowed import SessionWindowed, SessionWindowedSerde, Windowed, WindowedSerde

__all__ = [
    "UUID",
    "Avro",
    "AvroSerde",
    "Boolean",
    "BooleanSerde",
    "Bytes",
    "BytesSerde",
    "Double",
    "DoubleSerde",
    "Float",
    "FloatSerde",
    "Integer",
    "IntegerSerde",
    "Json",
    "JsonSchema",
    "JsonSchemaSerde",
    "JsonSerde",
    "List",
    "ListSerde",
    "Long",
    "LongSerde",
    "Protobuf",
    "ProtobufSerde",
    "Serde",
    "SessionWindowed",
    "SessionWindowedSerde",
    "Short",
    "ShortSerde",
    "String",
    "StringSerde",
    "UUIDSerde",
    "Void",
    "VoidSerde",
    "Windowed",
    "WindowedSerde",
    "as_serde",
    "serde_by_name",
]
