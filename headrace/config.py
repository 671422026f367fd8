"""`StreamsConfig`: every setting of an application, checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from headrace.errors import ConfigError, HeadraceError
from headrace.handlers import Handler, LogAndContinue, LogAndFail
from headrace.serdes import Json, Serde, String, as_serde, serde_by_name
from headrace.topology.timestamps import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    TimestampExtractor,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)

_APPLICATION_ID = re.compile(r"[a-zA-Z0-9._-]{1,200}")
_OPTIMIZATIONS = ("reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join")
_EXTRACTORS: dict[str, Any] = {
    "FailOnInvalidTimestamp": FailOnInvalidTimestamp,
    "LogAndSkipOnInvalidTimestamp": LogAndSkipOnInvalidTimestamp,
    "UsePartitionTimeOnInvalidTimestamp": UsePartitionTimeOnInvalidTimestamp,
    "WallclockTimestampExtractor": WallclockTimestampExtractor,
}
_HANDLERS: dict[str, Any] = {"LogAndFail": LogAndFail, "LogAndContinue": LogAndContinue}
_JAVA_HANDLERS: dict[str, Any] = {
    "LogAndFailExceptionHandler": LogAndFail,
    "LogAndContinueExceptionHandler": LogAndContinue,
    "LogAndFailProcessingExceptionHandler": LogAndFail,
    "LogAndContinueProcessingExceptionHandler": LogAndContinue,
    "DefaultProductionExceptionHandler": LogAndFail,
}
_PROPERTIES = {
    "cache.max.bytes.buffering": "statestore_cache_max_bytes",
    "default.deserialization.exception.handler": "deserialization_exception_handler",
    "default.production.exception.handler": "production_exception_handler",
}


class StreamsConfig(BaseSettings):
    """The settings of an application; those not given come from `HEADRACE_*` in the environment, then the defaults.

    Serdes, handlers and timestamp extractors may be given by name too, which is how the environment has them.

    >>> StreamsConfig(application_id="word-count").processing_guarantee
    'exactly_once_v2'
    """

    model_config = SettingsConfigDict(
        env_prefix="HEADRACE_", extra="forbid", frozen=True, arbitrary_types_allowed=True, validate_default=True
    )

    application_id: str
    bootstrap_servers: str | None = None
    processing_guarantee: Literal["exactly_once_v2", "at_least_once"] = "exactly_once_v2"
    statestore_cache_max_bytes: int = Field(default=10 * 1024 * 1024, ge=0)
    default_key_serde: Any = String
    default_value_serde: Any = Json
    default_timestamp_extractor: Any = FailOnInvalidTimestamp
    auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest"
    deserialization_exception_handler: Any = LogAndFail
    processing_exception_handler: Any = LogAndFail
    production_exception_handler: Any = LogAndFail
    topology_optimization: str = "none"

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ConfigError("; ".join(map(_explain, error.errors()))) from None

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> StreamsConfig:
        """Take settings under Kafka Streams' own names.

        >>> StreamsConfig.from_properties({"application.id": "a", "statestore.cache.max.bytes": 0}).application_id
        'a'
        """
        names = {field.replace("_", "."): field for field in cls.model_fields} | _PROPERTIES
        for name in properties:
            if name not in names:
                raise ConfigError(_unknown(name, names))
        return cls(**{names[name]: value for name, value in properties.items()})

    @field_validator("application_id")
    @classmethod
    def _check_application_id(cls, value: str) -> str:
        if not _APPLICATION_ID.fullmatch(value):
            raise ValueError("expected up to 200 letters, digits, '.', '_' and '-'")
        return value

    @field_validator("topology_optimization")
    @classmethod
    def _check_optimization(cls, value: str) -> str:
        if value not in ("none", "all") and any(part.strip() not in _OPTIMIZATIONS for part in value.split(",")):
            raise ValueError(f"expected none, all, or some of {', '.join(_OPTIMIZATIONS)}")
        return value

    @field_validator("default_key_serde", "default_value_serde")
    @classmethod
    def _check_serde(cls, value: Any) -> Serde[Any]:
        try:
            return serde_by_name(value) if isinstance(value, str) else as_serde(value)
        except HeadraceError as error:
            raise ValueError(str(error).removeprefix("serde: ")) from error

    @field_validator("default_timestamp_extractor")
    @classmethod
    def _check_extractor(cls, value: Any) -> TimestampExtractor:
        return _function(value, _EXTRACTORS, {})  # type: ignore[no-any-return]

    @field_validator(
        "deserialization_exception_handler", "processing_exception_handler", "production_exception_handler"
    )
    @classmethod
    def _check_handler(cls, value: Any) -> Handler:
        return _function(value, _HANDLERS, _JAVA_HANDLERS)  # type: ignore[no-any-return]


def _function(value: Any, known: Mapping[str, Any], java: Mapping[str, Any]) -> Any:
    """Return a function, or the one that a name means, alone or as the end of a Java class's."""
    if isinstance(value, str):
        named = {**known, **java}.get(value.rpartition(".")[2])
        if named is not None:
            return named
    elif callable(value) and not isinstance(value, type):
        return value
    raise ValueError(f"expected a function, or one of {', '.join(known)}")


def _explain(problem: Any) -> str:
    """Say what is wrong with a setting, what was given and what is allowed."""
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"setting '{name}': must be given, as {name}=… or as HEADRACE_{name.upper()} in the environment"
    if problem["type"] == "extra_forbidden":
        return _unknown(name, StreamsConfig.model_fields)
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    message = message.replace("greater than or equal to", "at least")
    return f"setting '{name}': {message}" + ("" if ", got " in message else f", got {problem['input']!r}")


def _unknown(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(sorted(known))}"
    return f"setting '{name}': there is no such setting. {hint}"
