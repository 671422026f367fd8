"""Serdes of single values that are not numbers, in the formats of Kafka's own serdes.

Each is an instance. Calling it returns the instance, so that `String` and `String()` are the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.records import Headers
from headrace.serdes.base import ReadySerde, Serde, as_bytes
from headrace.serdes.error_messages import READ_HINT, mistaken, quoted, shown, shown_bytes, wrong_size


class StringSerde(Serde[str]):
    """Write str as UTF-8.

    >>> String.serialize("greetings", "grüezi")
    b'gr\\xc3\\xbcezi'

    Bytes that are not UTF-8 are an error. Kafka's StringDeserializer replaces them by U+FFFD, and so does
    ``String(errors="replace")``. For another encoding give its name in Python: ``String("latin-1")``.
    """

    def __init__(self, encoding: str = "utf-8", errors: str = "strict") -> None:
        "".encode(encoding, errors)  # an unknown encoding fails here
        self._encoding = encoding
        self._errors = errors
        self._is_default = (encoding, errors) == ("utf-8", "strict")
        self.exact_type = str if self._is_default else None

    def __call__(self, encoding: str | None = None, errors: str | None = None) -> StringSerde:
        if encoding is None and errors is None:
            return self
        return StringSerde(encoding or self._encoding, errors or self._errors)

    def __repr__(self) -> str:
        return "serdes.String" if self._is_default else f"serdes.String({self._encoding!r}, {self._errors!r})"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[str], bytes]:
        if self._is_default:
            return str.encode
        encoding, errors = self._encoding, self._errors
        return lambda value: str.encode(value, encoding, errors)

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], str]:
        if self._is_default:
            return bytes.decode
        encoding, errors = self._encoding, self._errors
        return lambda data: data.decode(encoding, errors)

    def write_problem(self, value: Any, error: Exception) -> str:
        if isinstance(value, str):
            return f"expected text that {self._encoding} can hold, got {shown(value)}: {error}"
        return mistaken("str", value)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return f"expected {self._encoding} text, got {shown_bytes(data)}: {error}. {READ_HINT}"


class BooleanSerde(ReadySerde[bool]):
    """Write bool as one byte, 1 or 0.

    >>> Boolean.serialize("flags", True)
    b'\\x01'
    """

    name = "Boolean"
    exact_type = bool

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bool], bytes]:
        return _encode_bool

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], bool]:
        return {b"\x00": False, b"\x01": True}.__getitem__

    def write_problem(self, value: Any, error: Exception) -> str:
        return mistaken("bool", value)

    def read_problem(self, data: bytes, error: Exception) -> str:
        if len(data) != 1:
            return wrong_size(1, data)
        return f"expected a byte of 0 or 1, got {quoted(data)}. {READ_HINT}"


class BytesSerde(ReadySerde[bytes]):
    """Write bytes as they are.

    >>> Bytes.serialize("blobs", bytearray(b"as is"))
    b'as is'
    """

    name = "Bytes"
    exact_type = bytes

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], bytes]:
        return as_bytes

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], bytes]:
        return as_bytes

    def write_problem(self, value: Any, error: Exception) -> str:
        return mistaken("bytes", value)


class UUIDSerde(ReadySerde[uuid.UUID]):
    """Write uuid.UUID as its 36 characters.

    >>> UUID.serialize("orders", uuid.UUID(int=10))
    b'00000000-0000-0000-0000-00000000000a'
    """

    name = "UUID"
    exact_type = uuid.UUID
    list_entry_size = 36

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[uuid.UUID], bytes]:
        return _encode_uuid

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], uuid.UUID]:
        return _decode_uuid

    def write_problem(self, value: Any, error: Exception) -> str:
        return mistaken("uuid.UUID", value)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return f"expected a UUID of 36 characters, got {shown_bytes(data)}. {READ_HINT}"


class VoidSerde(ReadySerde[None]):
    """Write nothing but None, Kafka's null.

    >>> Void.serialize("signals", None) is None
    True
    """

    name = "Void"
    exact_type = type(None)

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[None], bytes]:
        return _refuse

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], None]:
        return _refuse

    def write_problem(self, value: Any, error: Exception) -> str:
        return mistaken("None", value)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return f"expected None, got {shown_bytes(data)}. {READ_HINT}"


String = StringSerde()
Boolean = BooleanSerde()
Bytes = BytesSerde()
UUID = UUIDSerde()
Void = VoidSerde()


def _encode_bool(value: bool) -> bytes:
    if value is True:
        return b"\x01"
    if value is False:
        return b"\x00"
    raise TypeError("not a bool")


# msgspec reads and writes a UUID in a fraction of the time that uuid.UUID and str take.
def _encode_uuid(value: uuid.UUID) -> bytes:
    if not isinstance(value, uuid.UUID):
        raise TypeError("not a UUID")
    return str.encode(msgspec.to_builtins(value))


def _decode_uuid(data: bytes) -> uuid.UUID:
    if len(data) != 36:
        raise ValueError("not 36 characters")
    return msgspec.convert(data.decode("ascii"), uuid.UUID)


def _refuse(value: object) -> Any:
    raise TypeError(f"only None is allowed, got {shown(value)}")
