"""`StreamsConfig`: every setting of an application, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from headrace.errors import ConfigError
from headrace.handlers import Handler, LogAndFail
from headrace.serdes import Json, Serde, String, as_serde, serde_by_name
from headrace.topology.timestamps import FailOnInvalidTimestamp, TimestampExtractor


class StreamsConfig(BaseSettings):
    """The settings of an application; those not given come from `HEADRACE_*` in the environment, then the defaults.

    >>> StreamsConfig(application_id="word-count").processing_guarantee
    'exactly_once_v2'
    """

    model_config = SettingsConfigDict(
        env_prefix="HEADRACE_", extra="forbid", frozen=True, arbitrary_types_allowed=True, validate_default=True
    )

    application_id: str = Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")
    bootstrap_servers: str | None = None
    processing_guarantee: str = Field(default="exactly_once_v2", pattern=r"^(exactly_once_v2|at_least_once)$")
    statestore_cache_max_bytes: int = Field(default=10 * 1024 * 1024, ge=0)
    default_key_serde: Any = String
    default_value_serde: Any = Json
    default_timestamp_extractor: Any = FailOnInvalidTimestamp
    auto_offset_reset: str = Field(default="earliest", pattern=r"^(earliest|latest|none)$")
    deserialization_exception_handler: Any = LogAndFail
    processing_exception_handler: Any = LogAndFail
    production_exception_handler: Any = LogAndFail
    topology_optimization: str = "none"

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ConfigError(_explain(error)) from None

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> StreamsConfig:
        """Take settings under Kafka Streams' own names.

        >>> StreamsConfig.from_properties({"application.id": "a", "statestore.cache.max.bytes": 0}).application_id
        'a'
        """
        return cls(**{_PROPERTIES.get(name, name.replace(".", "_")): value for name, value in properties.items()})

    @field_validator("default_key_serde", "default_value_serde")
    @classmethod
    def _check_serde(cls, value: Any) -> Serde[Any]:
        return serde_by_name(value) if isinstance(value, str) else as_serde(value)

    @field_validator(
        "default_timestamp_extractor",
        "deserialization_exception_handler",
        "processing_exception_handler",
        "production_exception_handler",
    )
    @classmethod
    def _check_callable(cls, value: Any) -> TimestampExtractor | Handler:
        if not callable(value):
            raise ValueError(f"expected something to call, got {type(value).__name__}")
        return value  # type: ignore[no-any-return]


_PROPERTIES = {
    "default.key.serde": "default_key_serde",
    "default.value.serde": "default_value_serde",
    "cache.max.bytes.buffering": "statestore_cache_max_bytes",
    "default.deserialization.exception.handler": "deserialization_exception_handler",
    "default.production.exception.handler": "production_exception_handler",
}


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        given = "" if problem["type"] == "missing" else f", got {problem['input']!r}"
        lines.append(f"setting '{name}': {problem['msg']}{given}")
    return "; ".join(lines)
