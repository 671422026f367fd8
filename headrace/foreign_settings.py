"""Settings that are not Headrace's own: of Spark, and of Kafka's clients.

Tests: `tests/test_config.py`.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import cache
from typing import Any

import cloudpickle

from headrace.properties import SECRET

EXAMPLES = {"spark": '{"spark.driver.memory": "4g"}', "kafka": '{"security.protocol": "SSL"}'}
"""Examples of settings of Spark and of Kafka's clients."""
_SET_BY = {
    "auto.offset.reset": "auto_offset_reset",
    "bootstrap.servers": "bootstrap_servers",
    "enable.auto.commit": "processing_guarantee",
    "enable.idempotence": "processing_guarantee",
    "group.id": "application_id",
    "isolation.level": "processing_guarantee",
    "transactional.id": "application_id",
}
"""Settings of the clients that follow from a setting of Headrace."""


class ForeignSettings(dict[str, Any]):
    """Settings of Spark or of Kafka's clients; shows no secrets.

    >>> ForeignSettings({"security.protocol": "SSL", "ssl.key.password": "abc"})
    {'security.protocol': 'SSL', 'ssl.key.password': '****'}
    """

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {_setting(name, value)}" for name, value in self.items()) + "}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (cloudpickle.dumps(dict(self)),)


def _restored(data: bytes) -> ForeignSettings:
    return ForeignSettings(_unpickled(data))


@cache
def _unpickled(data: bytes) -> dict[str, Any]:
    """Unpickle settings only once, because a function that is unpickled again is a different object."""
    found: dict[str, Any] = pickle.loads(data)
    return found


def _setting(name: str, value: Any) -> str:
    """Show a setting, but only the name of a function: a secret may be bound to it."""
    if SECRET.search(str(name)):
        return "'****'"
    return getattr(value, "__qualname__", type(value).__name__) if callable(value) else repr(value)


def spark_settings(value: Any) -> ForeignSettings:
    """Return settings of Spark, or raise a ValueError."""
    settings = _checked(value, EXAMPLES["spark"], functions=False)
    for name in settings:
        if not name.startswith("spark."):
            raise ValueError(f"the names must begin with 'spark.', got '{name}'. Did you mean 'spark.{name}'?")
    return settings


def kafka_settings(value: Any) -> ForeignSettings:
    """Return settings of Kafka's clients, or raise a ValueError."""
    settings = _checked(value, EXAMPLES["kafka"], functions=True)
    for name in settings:
        if name in _SET_BY:
            raise ValueError(f"'{name}' cannot be set here. Use the setting {_SET_BY[name]} instead")
    return settings


def _checked(value: Any, example: str, *, functions: bool) -> ForeignSettings:
    """Return settings of Spark or of the clients, or raise."""
    if isinstance(value, str):
        raise ValueError(f"expected a JSON object such as {example}")
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a dict such as {example}")
    for name, setting in value.items():
        if not isinstance(name, str):
            raise ValueError(f"the names must be strings, got {name!r}")
        if not (isinstance(setting, str | int | float | bool) or (functions and callable(setting))):
            # Say only its type: the value may be a secret, whatever its name is.
            kind = type(setting).__name__
            raise ValueError(f"'{name}' must be a string, a number or a boolean, got {kind}")
    return ForeignSettings(value)
