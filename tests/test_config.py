"""Settings: what is allowed, where they come from, and what is said about those that are not allowed."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace import (
    ConfigError,
    DeadLetter,
    ErrorContext,
    FailOnInvalidTimestamp,
    HandlerResponse,
    LogAndContinue,
    LogAndFail,
    LogAndSkipOnInvalidTimestamp,
    StreamsConfig,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
    serdes,
)


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in StreamsConfig.model_fields:
        monkeypatch.delenv(f"HEADRACE_{name.upper()}", raising=False)


def config(**settings: Any) -> StreamsConfig:
    return StreamsConfig(application_id="app", **settings)


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as caught:
        make()
    return str(caught.value)


# -- what is given ----------------------------------------------------------------------------------------------------


def test_the_defaults_are_those_that_the_documentation_says() -> None:
    defaults = config()

    assert defaults.application_id == "app"
    assert defaults.bootstrap_servers is None
    assert defaults.processing_guarantee == "exactly_once_v2"
    assert defaults.statestore_cache_max_bytes == 10 * 1024 * 1024
    assert defaults.default_key_serde is serdes.String
    assert defaults.default_value_serde is serdes.Json
    assert defaults.default_timestamp_extractor is FailOnInvalidTimestamp
    assert defaults.auto_offset_reset == "earliest"
    assert defaults.deserialization_exception_handler is LogAndFail
    assert defaults.processing_exception_handler is LogAndFail
    assert defaults.production_exception_handler is LogAndFail
    assert defaults.topology_optimization == "none"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bootstrap_servers", "host:9092"),
        ("processing_guarantee", "at_least_once"),
        ("statestore_cache_max_bytes", 0),
        ("default_key_serde", serdes.Long),
        ("default_value_serde", serdes.Json(dict[str, int])),
        ("default_timestamp_extractor", WallclockTimestampExtractor),
        ("default_timestamp_extractor", lambda record, partition_time: 0),
        ("auto_offset_reset", "latest"),
        ("auto_offset_reset", "none"),
        ("deserialization_exception_handler", LogAndContinue),
        ("processing_exception_handler", DeadLetter("dead")),
        ("production_exception_handler", lambda context, error: HandlerResponse.CONTINUE),
        ("topology_optimization", "all"),
        ("topology_optimization", "merge.repartition.topics,single.store.self.join"),
    ],
)
def test_what_is_allowed_is_taken_as_it_is(name: str, value: Any) -> None:
    assert getattr(config(**{name: value}), name) == value


def test_a_ready_made_handler_may_be_called_like_a_class() -> None:
    assert config(processing_exception_handler=LogAndContinue()).processing_exception_handler is LogAndContinue


def test_a_handler_may_be_a_method_or_an_object_that_can_be_called() -> None:
    class Handler:
        def __call__(self, context: ErrorContext, error: Exception) -> HandlerResponse:
            return HandlerResponse.CONTINUE

    handler = Handler()

    assert config(processing_exception_handler=handler).processing_exception_handler is handler
    assert callable(config(processing_exception_handler=handler.__call__).processing_exception_handler)


def test_settings_cannot_be_changed_afterwards() -> None:
    settings = config()

    with pytest.raises(ValueError, match="frozen"):
        settings.application_id = "other"
    assert settings.application_id == "app"


# -- by name ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "serde"),
    [
        ("Long", serdes.Long),
        ("serdes.Bytes", serdes.Bytes),
        ("org.apache.kafka.common.serialization.Serdes$StringSerde", serdes.String),
    ],
)
def test_a_serde_may_be_named(name: str, serde: Any) -> None:
    assert config(default_value_serde=name).default_value_serde is serde


@pytest.mark.parametrize(
    ("name", "handler"),
    [
        ("LogAndFail", LogAndFail),
        ("LogAndContinue", LogAndContinue),
        ("org.apache.kafka.streams.errors.LogAndContinueExceptionHandler", LogAndContinue),
        ("org.apache.kafka.streams.errors.LogAndFailExceptionHandler", LogAndFail),
        ("org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler", LogAndContinue),
        ("org.apache.kafka.streams.errors.LogAndFailProcessingExceptionHandler", LogAndFail),
        ("org.apache.kafka.streams.errors.DefaultProductionExceptionHandler", LogAndFail),
    ],
)
def test_a_handler_may_be_named(name: str, handler: Any) -> None:
    assert config(processing_exception_handler=name).processing_exception_handler is handler


@pytest.mark.parametrize(
    "extractor",
    [
        FailOnInvalidTimestamp,
        LogAndSkipOnInvalidTimestamp,
        UsePartitionTimeOnInvalidTimestamp,
        WallclockTimestampExtractor,
    ],
)
def test_a_timestamp_extractor_may_be_named(extractor: Any) -> None:
    name = extractor.__name__

    assert config(default_timestamp_extractor=name).default_timestamp_extractor is extractor
    java = f"org.apache.kafka.streams.processor.{name}"
    assert config(default_timestamp_extractor=java).default_timestamp_extractor is extractor


# -- refusals: each names the setting, what was given, and what is allowed --------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("application_id", "a b", "expected up to 200 letters, digits, '.', '_' and '-', got 'a b'"),
        ("application_id", "", "expected up to 200 letters, digits, '.', '_' and '-', got ''"),
        ("application_id", 5, "expected a valid string, got 5"),
        ("bootstrap_servers", 9092, "expected a valid string, got 9092"),
        ("processing_guarantee", "once", "expected 'exactly_once_v2' or 'at_least_once', got 'once'"),
        ("statestore_cache_max_bytes", -1, "expected at least 0, got -1"),
        ("statestore_cache_max_bytes", "lots", "expected a valid integer"),
        ("auto_offset_reset", "first", "expected 'earliest', 'latest' or 'none', got 'first'"),
        ("default_key_serde", int, "expected a serde such as serdes.String, got <class 'int'>. Hint: serdes.Long"),
        ("default_value_serde", "Lnog", "expected the name of a serde (String, Integer, Long"),
        ("default_timestamp_extractor", 5, "expected a function, or one of FailOnInvalidTimestamp, LogAndSkipOn"),
        ("default_timestamp_extractor", "Clock", "got 'Clock'"),
        ("deserialization_exception_handler", None, "expected a function, or one of LogAndFail, LogAndContinue"),
        ("processing_exception_handler", "Retry", "LogAndFail, LogAndContinue, got 'Retry'"),
        ("production_exception_handler", DeadLetter, "got <class 'headrace.handlers.DeadLetter'>"),
        ("topology_optimization", "some", "expected none, all, or some of reuse.ktable.source.topics, merge."),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(name: str, value: Any, allowed: str) -> None:
    said = refusal(lambda: StreamsConfig(**({"application_id": "app"} | {name: value})))

    assert said.startswith(f"setting '{name}': ")
    assert allowed in said


def test_the_application_id_must_be_given() -> None:
    assert refusal(StreamsConfig) == (
        "setting 'application_id': must be given, as application_id=… or as HEADRACE_APPLICATION_ID in the environment"
    )


@pytest.mark.parametrize(
    ("misspelled", "meant"),
    [
        ("aplication_id", "application_id"),
        ("statestore_cache_max_byte", "statestore_cache_max_bytes"),
        ("processing_exception_handlers", "processing_exception_handler"),
        ("default_serde_key", "default_key_serde"),
    ],
)
def test_a_misspelled_setting_gets_a_hint(misspelled: str, meant: str) -> None:
    said = refusal(lambda: config(**{misspelled: "x"}))

    assert said == f"setting '{misspelled}': there is no such setting. Did you mean '{meant}'?"


def test_a_setting_that_resembles_none_gets_the_list() -> None:
    said = refusal(lambda: config(threads=4))

    assert said.startswith("setting 'threads': there is no such setting. There are: application_id, auto_offset_reset,")


def test_all_that_is_wrong_is_said_at_once() -> None:
    said = refusal(lambda: config(statestore_cache_max_bytes=-1, auto_offset_reset="first", statestore="x"))

    assert [part.split("'")[1] for part in said.split("; ")] == [
        "statestore_cache_max_bytes",
        "auto_offset_reset",
        "statestore",
    ]


@pytest.mark.parametrize("topic", ["", None, 5])
def test_dead_letters_need_a_topic(topic: Any) -> None:
    with pytest.raises(ConfigError, match=r"^DeadLetter: expected the name of a topic, got "):
        DeadLetter(topic)


# -- the environment --------------------------------------------------------------------------------------------------


def test_what_is_not_given_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_APPLICATION_ID", "from-environment")
    monkeypatch.setenv("HEADRACE_STATESTORE_CACHE_MAX_BYTES", "77")
    monkeypatch.setenv("HEADRACE_DEFAULT_VALUE_SERDE", "Long")
    monkeypatch.setenv("HEADRACE_PROCESSING_EXCEPTION_HANDLER", "LogAndContinue")
    monkeypatch.setenv("HEADRACE_DEFAULT_TIMESTAMP_EXTRACTOR", "WallclockTimestampExtractor")

    settings = StreamsConfig()

    assert settings.application_id == "from-environment"
    assert settings.statestore_cache_max_bytes == 77
    assert settings.default_value_serde is serdes.Long
    assert settings.processing_exception_handler is LogAndContinue
    assert settings.default_timestamp_extractor is WallclockTimestampExtractor


def test_what_is_given_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_APPLICATION_ID", "from-environment")

    assert config().application_id == "app"


def test_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_AUTO_OFFSET_RESET", "first")

    assert refusal(config).startswith(
        "setting 'auto_offset_reset': expected 'earliest', 'latest' or 'none', got 'first'"
    )


# -- Kafka Streams' names ---------------------------------------------------------------------------------------------


def test_settings_may_have_kafka_streams_names() -> None:
    settings = StreamsConfig.from_properties(
        {
            "application.id": "word-count",
            "processing.guarantee": "at_least_once",
            "statestore.cache.max.bytes": "0",
            "default.key.serde": "org.apache.kafka.common.serialization.Serdes$LongSerde",
            "default.timestamp.extractor": "org.apache.kafka.streams.processor.WallclockTimestampExtractor",
            "auto.offset.reset": "latest",
            "processing.exception.handler": LogAndContinue,
            "topology.optimization": "all",
        }
    )

    assert settings.application_id == "word-count"
    assert settings.processing_guarantee == "at_least_once"
    assert settings.statestore_cache_max_bytes == 0
    assert settings.default_key_serde is serdes.Long
    assert settings.default_timestamp_extractor is WallclockTimestampExtractor
    assert settings.auto_offset_reset == "latest"
    assert settings.processing_exception_handler is LogAndContinue
    assert settings.topology_optimization == "all"


@pytest.mark.parametrize(
    ("older", "name", "value"),
    [
        ("cache.max.bytes.buffering", "statestore_cache_max_bytes", 5),
        ("default.deserialization.exception.handler", "deserialization_exception_handler", LogAndContinue),
        ("default.production.exception.handler", "production_exception_handler", LogAndContinue),
    ],
)
def test_older_names_are_known_too(older: str, name: str, value: Any) -> None:
    settings = StreamsConfig.from_properties({"application.id": "app", older: value})

    assert getattr(settings, name) == value


def test_an_unknown_property_is_refused_under_its_own_name() -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"application.id": "app", "processing.guarante": "x"}))

    assert said == "setting 'processing.guarante': there is no such setting. Did you mean 'processing.guarantee'?"


def test_properties_are_checked_like_settings() -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"application.id": "app", "auto.offset.reset": "first"}))

    assert said.startswith("setting 'auto_offset_reset': expected 'earliest', 'latest' or 'none', got 'first'")
