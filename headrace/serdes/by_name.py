"""Find the serde that a caller or a setting names."""

from __future__ import annotations

from typing import Any

from headrace.errors import ConfigError, SerializationError
from headrace.serdes import numbers, primitives
from headrace.serdes.base import Serde
from headrace.serdes.error_messages import fitting_serde, shown
from headrace.serdes.json_serde import Json

_JAVA_PREFIXES = (
    "org.apache.kafka.common.serialization.Serdes$",
    "org.apache.kafka.common.serialization.Serdes.",
)

_BY_NAME: dict[str, Serde[Any]] = {
    "String": primitives.String,
    "Integer": numbers.Integer,
    "Long": numbers.Long,
    "Short": numbers.Short,
    "Float": numbers.Float,
    "Double": numbers.Double,
    "Boolean": primitives.Boolean,
    "Bytes": primitives.Bytes,
    "UUID": primitives.UUID,
    "Void": primitives.Void,
    "Json": Json,
}
_BY_JAVA_NAME: dict[str, Serde[Any]] = {
    **{f"{name}Serde": serde for name, serde in _BY_NAME.items() if name != "Json"},
    "ByteArraySerde": primitives.Bytes,
    "ByteBufferSerde": primitives.Bytes,
}


def as_serde(value: Any, what: str = "serde") -> Serde[Any]:
    """Return the serde that was passed, or raise an error that says what to pass.

    >>> as_serde(primitives.String())
    serdes.String
    >>> as_serde(int, "value_serde")
    Traceback (most recent call last):
    headrace.errors.SerializationError: value_serde: expected a serde such as serdes.String, got <class 'int'>.
    Use serdes.Long
    """
    if isinstance(value, Serde):
        return value
    hint = _hint(value)
    got = str(value) if isinstance(value, type) else shown(value)
    raise SerializationError(
        f"{what}: expected a serde such as serdes.String, got {got}" + (f". Use {hint}" if hint else "")
    )


def serde_by_name(name: str, what: str = "serde") -> Serde[Any]:
    """Return the serde that a setting names, by Headrace's name or by the name of Kafka's Java class.

    >>> serde_by_name("Long")
    serdes.Long
    >>> serde_by_name("org.apache.kafka.common.serialization.Serdes$StringSerde")
    serdes.String
    """
    serde = _find(name)
    if serde is None:
        known = ", ".join(_BY_NAME)
        raise ConfigError(f"{what}: expected the name of a serde ({known}) or of its class in Kafka, got {name!r}")
    return serde


def _find(name: str) -> Serde[Any] | None:
    for prefix in _JAVA_PREFIXES:
        if name.startswith(prefix):
            return _BY_JAVA_NAME.get(name.removeprefix(prefix))
    return _BY_NAME.get(name.removeprefix("headrace.").removeprefix("serdes."))


def _hint(value: Any) -> str | None:
    if isinstance(value, str):
        serde = _find(value)
        return None if serde is None else repr(serde)
    if not isinstance(value, type):
        return None
    if issubclass(value, Serde):
        return f"an instance: {value.__name__}(...)"
    return fitting_serde(value)
