"""Keys and values as text, for `headrace produce` and `headrace consume`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.errors import SerializationError
from headrace.serdes import Serde, serde_by_name
from headrace.serdes.error_messages import READ_HINT

_BOOLEANS = {"true": True, "false": False}


def _nothing(text: str) -> Any:
    raise ValueError


_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "String": ("text", str),
    "Integer": ("a whole number", int),
    "Long": ("a whole number", int),
    "Short": ("a whole number", int),
    "Float": ("a number", float),
    "Double": ("a number", float),
    "Boolean": ("true or false", _BOOLEANS.__getitem__),
    "Bytes": ("text", str.encode),
    "UUID": ("a UUID", uuid.UUID),
    "Void": ("null", _nothing),
    "Json": ("JSON", msgspec.json.decode),
}


class TextSerde:
    """Convert between text and the bytes of a serde.

    >>> TextSerde("Long", "--value-serde", "null").to_bytes("counts", "7")
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'
    >>> TextSerde("Json", "--value-serde", "null").to_text("orders", b'{"id": 7}')
    '{"id":7}'
    """

    def __init__(self, name: str, option: str, null: str | None) -> None:
        self._serde: Serde[Any] = serde_by_name(name, option)
        self._name = repr(self._serde).removeprefix("serdes.")
        self._expected, self._read = _READERS[self._name]
        self._option = option
        self._null = null

    def to_bytes(self, topic: str, text: str) -> bytes | None:
        """Return the bytes for a text; None for the null marker."""
        if text == self._null:
            return None
        try:
            value = self._read(text)
        except (ValueError, KeyError):  # msgspec's error is a ValueError
            raise SerializationError(f"{self._option} {self._name}: expected {self._expected}, got {text!r}") from None
        return self._serde.serialize(topic, value)

    def to_text(self, topic: str, data: bytes | None) -> str:
        """Return bytes as text."""
        if data is None:
            return self._null or ""
        try:
            value = self._serde.deserialize(topic, data)
        except SerializationError as error:
            reason = str(error).partition(f". {READ_HINT}")[0]
            raise SerializationError(f"{reason}. Name the serde it was written with: {self._option}") from error
        if self._name == "Json":
            return msgspec.json.encode(value).decode()
        if isinstance(value, bytes):
            return bytes_as_text(value)
        return str(value).lower() if isinstance(value, bool) else str(value)


def bytes_as_text(data: bytes) -> str:
    """Decode bytes as UTF-8; show invalid bytes with backslashes.

    >>> bytes_as_text("grüezi".encode() + bytes([0xff]))
    'grüezi\\\\xff'
    """
    return data.decode("utf-8", "backslashreplace")
