"""Protobuf messages, in the format of Confluent's schema registry."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headrace.records import Headers
from headrace.serdes.base import Serde
from headrace.serdes.class_conversion import check_class, from_dict, to_dict
from headrace.serdes.error_messages import shown
from headrace.serdes.registry import (
    FRAME,
    Registration,
    RegistryAddress,
    check_no_address,
    read_problem,
    reference_to,
    schema_from,
    write_problem,
)

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaReference

_WHO = "serdes.Protobuf"
_BUILT_IN = ("google/protobuf/", "google/type/", "confluent/")
_TIMESTAMP, _DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_EPOCH, _SECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1)


class ProtobufSerde(Serde[Any]):
    """Write messages of a class that protoc made.

    >>> from google.protobuf.wrappers_pb2 import StringValue
    >>> serde = Protobuf(StringValue, "mock://example-of-protobuf")
    >>> serde.serialize("names", StringValue(value="tea"))
    b'\\x00\\x00\\x00\\x00\\x01\\x02\\x0e\\n\\x03tea'

    Values are messages. With ``type=dict`` they are dicts of a message's fields. With another `type` they are its
    instances, in which a ``Timestamp`` is a datetime in UTC and a ``Duration`` a timedelta.

    As with Confluent's serializers, the index of the message in its file comes before the data. All data is read as the
    given class, by the numbers of the fields.
    """

    def __init__(
        self,
        message: Any,
        registry: RegistryAddress,
        *,
        type: Any = None,
        subject: str = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> None:
        check_no_address(_WHO, "a class of protobuf messages", message)
        if not hasattr(message, "FromString") or not hasattr(message, "DESCRIPTOR"):
            raise TypeError(f"{_WHO}: expected a class of protobuf messages, got {shown(message)}")
        self._message = message
        self._name: str = message.DESCRIPTOR.full_name
        self._type = None if type is None else check_class(type, _WHO)
        self._registration = Registration.of(_WHO, registry, subject, self._name, auto_register, use_latest)

    def __repr__(self) -> str:
        return f"serdes.Protobuf({self._name}, registry)"

    def for_keys(self) -> Serde[Any]:
        serde = copy.copy(self)
        serde._registration = self._registration.for_keys()
        return serde

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[Any], bytes]:
        message, prefix = self._message, b""
        of, convert = self._type, to_dict(self._type)

        def encode(value: Any) -> bytes:
            nonlocal prefix
            if not prefix:
                prefix = self._prefix(topic)
            if of is not None:
                value = message(**(value if of is dict else _without_times(convert(value))))
            elif not isinstance(value, message):
                raise TypeError("not such a message")
            # Equal keys must have equal bytes, in any order of their maps.
            data: bytes = value.SerializeToString(deterministic=True)
            return prefix + data

        return encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], Any]:
        read = self._message.FromString
        of, convert = self._type, from_dict(self._type)

        def decode(data: bytes) -> Any:
            if data[0]:
                raise ValueError("not a message of a registry")
            value = read(data[_end_of_indexes(data) :])
            if of is None:
                return value
            return _fields_of(value) if of is dict else convert(_fields_of(value, times=True))

        return decode

    def write_problem(self, value: Any, error: Exception) -> str:
        return write_problem(f"message {self._name}", value, error)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return read_problem(f"message {self._name}", data, error)

    def _prefix(self, topic: str | None) -> bytes:
        descriptor = self._message.DESCRIPTOR
        schema_id, _ = self._registration.written_with(topic, lambda: self._schema_of(descriptor.file))
        return FRAME.pack(0, schema_id) + _encode_indexes(_indexes_of(descriptor))

    def _schema_of(self, file: Any) -> Schema:
        """Register the files that a file imports under their names; return the file's schema."""
        references = [self._reference(needed) for needed in file.dependencies if not needed.name.startswith(_BUILT_IN)]
        return schema_from(base64.standard_b64encode(file.serialized_pb).decode(), "PROTOBUF", references)

    def _reference(self, file: Any) -> SchemaReference:
        name, schema, ask = file.name, self._schema_of(file), self._registration.registry.ask
        about = f"subject '{name}'"
        if self._registration.auto_register:
            ask(about, lambda client: client.register_schema(name, schema), "subject")
        found = ask(about, lambda client: client.lookup_schema(name, schema), "schema, and auto_register is off")
        return reference_to(name, found.version)


Protobuf = ProtobufSerde


def _indexes_of(descriptor: Any) -> list[int]:
    """Return the index of a message in its file; of a nested one, the indexes of the outer messages and its own."""
    outer = descriptor.containing_type
    if outer is None:
        return [list(descriptor.file.message_types_by_name).index(descriptor.name)]
    return [*_indexes_of(outer), [nested.name for nested in outer.nested_types].index(descriptor.name)]


def _encode_indexes(indexes: list[int]) -> bytes:
    """Write the count of indexes and the indexes, as numbers of variable length. The first message is one byte 0.

    >>> _encode_indexes([0]), _encode_indexes([1, 0]), _encode_indexes([64])
    (b'\\x00', b'\\x04\\x02\\x00', b'\\x02\\x80\\x01')
    """
    if indexes == [0]:
        return b"\x00"
    data = bytearray()
    for number in (len(indexes), *indexes):
        number <<= 1  # zigzag
        while number > 0x7F:
            data.append(number & 0x7F | 0x80)
            number >>= 7
        data.append(number)
    return bytes(data)


def _end_of_indexes(data: bytes) -> int:
    at = FRAME.size
    if data[at] == 0:
        return at + 1
    count, at = _read_number(data, at)
    for _ in range(count):
        _, at = _read_number(data, at)
    return at


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] > 0x7F:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return (number | data[at] << shift) >> 1, at + 1


def _fields_of(message: Any, *, times: bool = False) -> Any:
    """Return a message as a dict. A field with presence that is not set is None. Google's own types stay messages.

    With `times`, timestamps and durations become Python's.

    >>> from google.protobuf.wrappers_pb2 import StringValue
    >>> _fields_of(StringValue(value="tea"))
    {'value': 'tea'}
    """
    return {field.name: _field_of(message, field, times) for field in message.DESCRIPTOR.fields}


def _field_of(message: Any, field: Any, times: bool) -> Any:
    value, kind = getattr(message, field.name), field.message_type
    if field.has_presence:
        return _entry_of(value, kind, times) if message.HasField(field.name) else None
    if kind is not None and kind.GetOptions().map_entry:
        kind = kind.fields_by_name["value"].message_type
        return {key: _entry_of(entry, kind, times) for key, entry in value.items()}
    if kind is None and isinstance(value, int | float | str | bytes):
        return value
    return [_entry_of(entry, kind, times) for entry in value]


def _entry_of(value: Any, kind: Any, times: bool) -> Any:
    if kind is None:
        return value
    if times and kind.full_name == _TIMESTAMP:
        return value.ToDatetime(UTC)
    if times and kind.full_name == _DURATION:
        return value.ToTimedelta()
    return value if kind.file.name.startswith(_BUILT_IN) else _fields_of(value, times=times)


def _without_times(value: Any) -> Any:
    """Turn times into the dicts of their messages. Protobuf takes Python's times as fields, but not in maps.

    >>> _without_times({"at": datetime(1969, 12, 31, 23, 59, 58, 500000), "took": timedelta(seconds=-1.5)})
    {'at': {'seconds': -2, 'nanos': 500000000}, 'took': {'seconds': -1, 'nanos': -500000000}}
    """
    if isinstance(value, dict):
        return {name: _without_times(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_times(inner) for inner in value]
    if isinstance(value, datetime):
        seconds, rest = divmod((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH, _SECOND)
        return {"seconds": seconds, "nanos": rest.microseconds * 1000}
    if isinstance(value, timedelta):
        sign = -1 if value < timedelta() else 1  # both parts of a Duration have it
        seconds, rest = divmod(abs(value), _SECOND)
        return {"seconds": sign * seconds, "nanos": sign * rest.microseconds * 1000}
    return value
