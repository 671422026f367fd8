"""`StreamsConfig`: every setting of an application, checked when the configuration is made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from headrace.errors import ConfigError, HeadraceError
from headrace.foreign_settings import EXAMPLES, ForeignSettings, kafka_settings, spark_settings
from headrace.handlers import Handler, LogAndContinue, LogAndFail
from headrace.properties import settings_of, unknown
from headrace.serdes import Json, Serde, String, as_serde, serde_by_name
from headrace.serdes.incomplete import IncompleteSerde
from headrace.serdes.renamed_topic import RenamedTopic
from headrace.topology.names import CHANGELOG_SUFFIX, topic_prefix
from headrace.topology.timestamps import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    TimestampExtractor,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)

_APPLICATION_ID = re.compile(r"[a-zA-Z0-9._-]{1,200}")
_SERVER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+):([0-9]{1,5})")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")
_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[\s*[1-9]\d*(\s*,\s*[1-9]\d*){2}\s*\]"
    r"|spark://.+|yarn|k8s://.+"
)
_MASTERS = "local, local[N], local[*], local[N,M], local-cluster[N,CORES,MEMORY], spark://HOST:PORT, yarn, k8s://HOST"
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


class StreamsConfig(BaseSettings):
    """The settings of an application. A setting that is not given comes from `HEADRACE_*` in the environment.

    A setting in neither place has its default. Serdes, handlers and timestamp extractors can also be given by name, as
    in the environment. `spark` and `kafka` combine both places: for a name in both, the value given here counts.

    >>> StreamsConfig(application_id="word-count").processing_guarantee
    'exactly_once_v2'
    """

    model_config = SettingsConfigDict(
        env_prefix="HEADRACE_",
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
        validate_default=True,
    )

    application_id: str
    state_dir: Path = Path(".headrace")
    bootstrap_servers: str = ""
    master: str = "local[*]"
    processing_guarantee: Literal["exactly_once_v2", "at_least_once"] = "exactly_once_v2"
    commit_interval_ms: int = Field(default=cast(int, None), ge=0)
    max_records_per_batch: int = Field(default=500_000, ge=1)
    task_timeout_ms: int = Field(default=300_000, ge=0)
    statestore_cache_max_bytes: int = Field(default=10 * 1024 * 1024, ge=0)
    default_key_serde: Any = String
    default_value_serde: Any = Json
    default_timestamp_extractor: Any = FailOnInvalidTimestamp
    auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest"
    on_data_loss: Literal["fail", "continue"] = "fail"
    deserialization_exception_handler: Any = LogAndFail
    processing_exception_handler: Any = LogAndFail
    production_exception_handler: Any = LogAndFail
    topology_optimization: str = "none"
    num_partitions: int = Field(default=1, ge=1)
    replication_factor: int = -1
    num_standby_replicas: int = Field(default=0, ge=0)
    application_server: str | None = None
    drop_stores: Annotated[tuple[str, ...], NoDecode] = ()
    spark: dict[str, Any] = {}
    kafka: dict[str, Any] = {}

    def __init__(self, **settings: Any) -> None:
        for name in EXAMPLES.keys() & settings.keys():
            if isinstance(settings[name], str):
                with suppress(ValueError):  # the validator reports it
                    settings[name] = json.loads(settings[name])
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise ConfigError("; ".join(map(_explain, error.errors()))) from None
        except SettingsError as error:
            name = next(name for name in EXAMPLES if f'"{name}"' in str(error))
            raise ConfigError(f"HEADRACE_{name.upper()}: expected a JSON object such as {EXAMPLES[name]}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse the change. Pydantic's own message would show the value, which may be a secret."""
        raise ConfigError(f"setting '{name}': cannot be changed. Make a new StreamsConfig")

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> StreamsConfig:
        """Make a configuration from settings with Kafka Streams' names.

        >>> StreamsConfig.from_properties({"application.id": "a", "statestore.cache.max.bytes": 0}).application_id
        'a'
        """
        return cls(**settings_of(properties, cls.model_fields))

    def serde(self, serde: Serde[Any] | None, role: str) -> Serde[Any]:
        """Return a serde, or the default serde of the "key" or "value" for None.

        >>> StreamsConfig(application_id="a").serde(None, "key")
        serdes.String
        """
        if serde is None:
            serde = self.default_key_serde if role == "key" else self.default_value_serde
        if isinstance(serde, IncompleteSerde):
            serde = serde.build(self.serde)
        return serde.for_keys() if role == "key" else serde

    def store_serde(self, serde: Serde[Any] | None, role: str) -> Serde[Any]:
        """Return the serde of a store. It gets the store's changelog as its topic, as in Kafka Streams."""
        return RenamedTopic(self.serde(serde, role), topic_prefix(self.application_id), CHANGELOG_SUFFIX)

    @field_validator("application_id")
    @classmethod
    def _check_application_id(cls, value: str) -> str:
        if not _APPLICATION_ID.fullmatch(value):
            raise ValueError("expected up to 200 letters, digits, '.', '_' and '-'")
        return value

    @field_validator("state_dir", mode="plain")
    @classmethod
    def _check_state_dir(cls, value: Any) -> Path:
        if not isinstance(value, str | Path) or not str(value).strip():
            raise ValueError("expected the path of a folder")
        if _URL.match(str(value)):
            raise ValueError("expected the path of a folder; object stores and HDFS are not supported")
        try:
            return Path(value).expanduser()
        except RuntimeError:
            raise ValueError("expected the path of a folder, but there is no such home") from None

    @field_validator("bootstrap_servers", mode="before")
    @classmethod
    def _choose_servers(cls, value: Any, info: ValidationInfo) -> Any:
        return value or f"local:{info.data.get('state_dir', Path()) / 'topics.db'}"

    @field_validator("commit_interval_ms", mode="before")
    @classmethod
    def _choose_interval(cls, value: Any, info: ValidationInfo) -> Any:
        usual = 100 if info.data.get("processing_guarantee") == "exactly_once_v2" else 1000
        return usual if value is None else value

    @field_validator("master")
    @classmethod
    def _check_master(cls, value: str) -> str:
        if not _MASTER.fullmatch(value):
            raise ValueError(f"expected one of Spark's masters: {_MASTERS}")
        return value

    @field_validator("processing_guarantee", mode="before")
    @classmethod
    def _check_guarantee(cls, value: Any) -> Any:
        if value in ("exactly_once", "exactly_once_beta"):
            raise ValueError(f"expected 'exactly_once_v2' or 'at_least_once', got '{value}'. Use 'exactly_once_v2'")
        return value

    @field_validator("replication_factor")
    @classmethod
    def _check_replication(cls, value: int) -> int:
        if value != -1 and value < 1:
            raise ValueError("expected at least 1, or -1 for the broker's default")
        return value

    @field_validator("application_server")
    @classmethod
    def _check_server(cls, value: str | None) -> str | None:
        server = _SERVER.fullmatch(value) if value else None
        if value and not (server and 0 < int(server[2]) < 65536):
            raise ValueError("expected HOST:PORT")
        return value or None

    @field_validator("drop_stores", mode="before")
    @classmethod
    def _split_stores(cls, value: Any) -> Any:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value

    @field_validator("spark", mode="plain")
    @classmethod
    def _check_spark(cls, value: Any) -> ForeignSettings:
        return spark_settings(value)

    @field_validator("kafka", mode="plain")
    @classmethod
    def _check_kafka(cls, value: Any) -> ForeignSettings:
        return kafka_settings(value)

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
    """Return a function, or the one with this name; a Java class counts by the last part of its name."""
    if isinstance(value, str):
        named = {**known, **java}.get(value.rpartition(".")[2])
        if named is not None:
            return named
    elif callable(value) and not isinstance(value, type):
        return value
    raise ValueError(f"expected a function, or one of {', '.join(known)}")


def _explain(problem: Any) -> str:
    """Return the message for a wrong setting, with the allowed and the given value."""
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"setting '{name}': must be given, as {name}=… or as HEADRACE_{name.upper()} in the environment"
    if problem["type"] == "extra_forbidden":
        return unknown(name, StreamsConfig.model_fields)
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    message = message.replace("greater than or equal to", "at least")
    if message.startswith("expected ") and ", got " not in message:
        message += f", got {_shown(name, problem['input'])}"
    return f"setting '{name}': {message}"


def _shown(name: str, given: Any) -> str:
    # A value that is no dict of settings may still contain a secret.
    return type(given).__name__ if name in EXAMPLES else repr(given)
