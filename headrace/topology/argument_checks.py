"""Checks of the arguments that build a topology: each raises a `TopologyError` that names the call and the value.

Tests: `tests/topology/test_bad_arguments.py` and `test_bad_names.py`.
"""

from __future__ import annotations

import re
from typing import Any

from headrace.errors import SerializationError, TopologyError
from headrace.serdes import Serde, as_serde

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_OFFSET_RESETS = ("earliest", "latest", "none")


def check_name(name: object, what: str) -> str:
    """Return a name that can be a Kafka topic's name, or a part of it.

    >>> check_name("by user", "repartition, name")
    Traceback (most recent call last):
    headrace.errors.TopologyError: repartition, name: expected a name of up to 249 letters, digits, '.', '_' and '-',
    got 'by user'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        raise TopologyError(f"{what}: expected a name of up to 249 letters, digits, '.', '_' and '-', got {name!r}")
    return name


def check_step_name(name: object, what: str) -> str:
    """Return the name of a step of the Processor API: any text of one line, since no topic is named after it."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise TopologyError(f"{what}: expected a name, got {name!r}")
    return name


def check_offset_reset(reset: object, what: str) -> None:
    """Raise unless this is an offset reset, or None, which leaves it to the configuration."""
    if reset is not None and reset not in _OFFSET_RESETS:
        raise TopologyError(f"{what}: offset_reset must be one of {', '.join(_OFFSET_RESETS)}, got {reset!r}")


def check_function(function: Any, what: str, hint: str = "") -> Any:
    """Return a function, or raise."""
    if not callable(function):
        raise TopologyError(f"{what}: expected a function, got {type(function).__name__} ({function!r}){hint}")
    return function


def check_optional_function(function: Any, what: str) -> Any:
    """Return a function or None, or raise."""
    return None if function is None else check_function(function, what)


def check_supplier(supplier: Any, what: str) -> Any:
    """Return a function that makes processors, or raise."""
    if not callable(supplier):
        hint = f". Pass the class: {type(supplier).__name__}" if callable(getattr(supplier, "process", None)) else ""
        raise TopologyError(
            f"{what}: expected a supplier, a function that makes a processor, "
            f"got {type(supplier).__name__} ({supplier!r}){hint}"
        )
    return supplier


def check_serde(serde: Any, what: str) -> Serde[Any] | None:
    """Return a serde or None, or raise."""
    if serde is None:
        return None
    try:
        return as_serde(serde, what)
    except SerializationError as error:
        raise TopologyError(str(error)) from None


def check_serdes(key_serde: Any, value_serde: Any, what: str) -> tuple[Serde[Any] | None, Serde[Any] | None]:
    """Return the serdes of keys and values, each of them or None, or raise."""
    return check_serde(key_serde, f"{what}, key_serde"), check_serde(value_serde, f"{what}, value_serde")
