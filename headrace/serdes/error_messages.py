"""The parts of error messages: values and bytes as text, and advice.

Tests: `tests/serdes/test_base.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

_LONGEST = 60

_FITTING: tuple[tuple[type, str], ...] = (
    (bool, "Boolean"),
    (str, "String"),
    (int, "Long"),
    (float, "Double"),
    (bytes, "Bytes"),
    (bytearray, "Bytes"),
    (uuid.UUID, "UUID"),
    (dict, "Json"),
    (list, "Json"),
)

READ_HINT = "Pass the serde that wrote the data as key_serde= or value_serde="


def shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def shown(value: Any) -> str:
    """Return a value's type and its text, shortened.

    >>> shown(42)
    'int (42)'
    """
    try:
        text = repr(value)
    except Exception:  # from a user's __repr__, or of an int with too many digits
        return type(value).__name__
    return f"{type(value).__name__} ({shorten(text)})"


def shown_bytes(data: bytes) -> str:
    """Return the number of bytes and their text, shortened.

    >>> shown_bytes(b"hello")
    "5 bytes (b'hello')"
    """
    return f"{len(data)} byte{'' if len(data) == 1 else 's'} ({quoted(data)})"


def quoted(data: bytes) -> str:
    return shorten(repr(data[: _LONGEST + 1]))


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function))


def fitting_serde(python_type: type) -> str | None:
    """Return the name of the serde for values of a Python type.

    >>> fitting_serde(int)
    'serdes.Long'
    """
    return next((f"serdes.{name}" for known, name in _FITTING if issubclass(python_type, known)), None)


def write_hint(value: Any) -> str:
    fitting = fitting_serde(type(value)) or "..."
    return f"Pass key_serde= or value_serde={fitting}, or convert with map_values"


def mistaken(expected: str, value: Any) -> str:
    """Say that a value has the wrong type.

    >>> mistaken("str", 42)
    'expected str, got int (42). Pass key_serde= or value_serde=serdes.Long, or convert with map_values'
    """
    return f"expected {expected}, got {shown(value)}. {write_hint(value)}"


def wrong_size(size: int, data: bytes) -> str:
    """Say that there are too many or too few bytes.

    >>> wrong_size(1, b"ab").partition(".")[0]
    "expected 1 byte, got 2 (b'ab')"
    """
    return f"expected {size} byte{'' if size == 1 else 's'}, got {len(data)} ({quoted(data)}). {READ_HINT}"
