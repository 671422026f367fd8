"""Settings: which values are allowed, where they come from, and what the errors for other values say."""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
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
    assert defaults.bootstrap_servers == "local:.headrace/topics.db"
    assert defaults.state_dir == Path(".headrace")
    assert defaults.master == "local[*]"
    assert defaults.processing_guarantee == "exactly_once_v2"
    assert defaults.commit_interval_ms == 100
    assert defaults.max_records_per_batch == 500_000
    assert defaults.task_timeout_ms == 300_000
    assert defaults.statestore_cache_max_bytes == 10 * 1024 * 1024
    assert defaults.default_key_serde is serdes.String
    assert defaults.default_value_serde is serdes.Json
    assert defaults.default_timestamp_extractor is FailOnInvalidTimestamp
    assert defaults.auto_offset_reset == "earliest"
    assert defaults.deserialization_exception_handler is LogAndFail
    assert defaults.processing_exception_handler is LogAndFail
    assert defaults.production_exception_handler is LogAndFail
    assert defaults.topology_optimization == "none"
    assert defaults.num_partitions == 1
    assert defaults.replication_factor == -1
    assert defaults.num_standby_replicas == 0
    assert defaults.application_server is None
    assert defaults.drop_stores == ()
    assert defaults.spark == {}
    assert defaults.kafka == {}


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
        ("state_dir", Path("/var/lib/headrace")),
        ("commit_interval_ms", 0),
        ("max_records_per_batch", 1),
        ("task_timeout_ms", 0),
        ("num_partitions", 12),
        ("replication_factor", 3),
        ("num_standby_replicas", 1),
        ("application_server", "host.example:8080"),
        ("application_server", "[::1]:8080"),
        ("drop_stores", ("counts", "sums")),
        ("spark", {"spark.driver.memory": "4g", "spark.executor.cores": 2, "spark.ui.enabled": True}),
        ("kafka", {"security.protocol": "SSL", "linger.ms": 5, "oauth_cb": print}),
        *[
            ("master", master)
            for master in (
                "local",
                "local[4]",
                "local[*]",
                "local[*, 1]",
                "local[4,1]",
                "local-cluster[2,1,1024]",
                "local-cluster[2, 1, 1024]",
                "spark://one:7077,two:7077",
                "yarn",
                "k8s://https://host:6443",
            )
        ],
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

    with pytest.raises(ConfigError, match=r"^setting 'application_id': cannot be changed\."):
        settings.application_id = "other"
    assert settings.application_id == "app"


# -- what follows from it ---------------------------------------------------------------------------------------------


def test_topics_are_in_the_embedded_log_under_the_state_dir_unless_told_otherwise() -> None:
    assert config().bootstrap_servers == "local:.headrace/topics.db"
    assert config(state_dir="/var/lib/headrace").bootstrap_servers == "local:/var/lib/headrace/topics.db"
    assert config(bootstrap_servers="host:9092", state_dir="x").bootstrap_servers == "host:9092"
    assert config(bootstrap_servers="").bootstrap_servers == "local:.headrace/topics.db"


def test_the_state_dir_may_be_in_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert config(state_dir="~/state").state_dir == tmp_path / "state"


def test_exactly_once_commits_more_often_unless_told_otherwise() -> None:
    assert config().commit_interval_ms == 100
    assert config(processing_guarantee="at_least_once").commit_interval_ms == 1000
    assert config(commit_interval_ms=7).commit_interval_ms == 7
    assert config(commit_interval_ms=0).commit_interval_ms == 0


def test_an_empty_server_is_none() -> None:
    assert config(application_server="").application_server is None


# -- secrets ----------------------------------------------------------------------------------------------------------

SECRETS = {
    "sasl.password": "hush-1",
    "sasl.jaas.config": "hush-2",
    "ssl.key.pem": "hush-3",
    "sasl.oauthbearer.client.secret": "hush-4",
    "SSL.KeyStore.Password": "hush-5",
    "access.token": "hush-6",
    "basic.auth.user.info": "hush-7",
    "sasl.oauthbearer.config": "hush-9",
}


def test_secrets_are_not_shown() -> None:
    settings = config(kafka=SECRETS | {"security.protocol": "SASL_SSL"}, spark={"spark.ssl.keyPassword": "hush-8"})

    for shown in (repr(settings), str(settings), f"{settings}", repr(settings.kafka), f"{settings.kafka}"):
        assert "hush" not in shown
    assert "'security.protocol': 'SASL_SSL'" in repr(settings)
    assert "'sasl.password': '****'" in repr(settings)
    assert settings.kafka["sasl.password"] == "hush-1"


@pytest.mark.parametrize(
    "given",
    [
        SECRETS | {"linger.ms": None},
        SECRETS | {"group.id": "x"},
        {"sasl.password": ["hush"]},
        {"sasl": {"password": "hush"}},
        [("sasl.password", "hush")],
        '{"sasl.password": "hush"',
        '["sasl.password", "hush"]',
        "hush",
    ],
    ids=["other-value", "not-a-client-setting", "list-value", "nested", "pairs", "bad-json", "json-list", "bare"],
)
def test_secrets_are_not_told_in_a_refusal(given: Any) -> None:
    said = refusal(lambda: config(kafka=given))

    assert said.startswith("setting 'kafka': ")
    assert "hush" not in said


def test_secrets_bound_to_a_function_are_not_shown() -> None:
    def fetch(settings: str, secret: str) -> tuple[str, float]:
        return secret, 0.0

    settings = config(kafka={"oauth_cb": partial(fetch, secret="hush"), "log.queue": True})

    assert repr(settings.kafka) == "{'oauth_cb': partial, 'log.queue': True}"
    assert "hush" not in repr(settings)


def test_secrets_are_not_told_when_somebody_tries_to_change_them() -> None:
    with pytest.raises(ConfigError, match=r"^setting 'kafka': cannot be changed\. [^']*$"):
        config().kafka = {"sasl.password": "hush"}


def test_settings_travel_to_the_workers() -> None:
    settings = config(kafka=SECRETS, spark={"spark.executor.cores": 2}, state_dir="x")

    there = pickle.loads(pickle.dumps(settings))

    assert (there.kafka, there.spark, there.state_dir) == (SECRETS, {"spark.executor.cores": 2}, Path("x"))
    assert "hush" not in repr(there)


def test_a_function_among_the_settings_is_the_same_object_each_time_they_arrive() -> None:
    settings = config(kafka={"oauth_cb": lambda token: token})

    first, second = (pickle.loads(pickle.dumps(settings)) for _ in range(2))

    assert first.kafka["oauth_cb"] is second.kafka["oauth_cb"]
    assert first.kafka["oauth_cb"]("token") == "token"


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
        ("default_key_serde", int, "expected a serde such as serdes.String, got <class 'int'>. Use serdes.Long"),
        ("default_value_serde", "Lnog", "expected the name of a serde (String, Integer, Long"),
        ("default_timestamp_extractor", 5, "expected a function, or one of FailOnInvalidTimestamp, LogAndSkipOn"),
        ("default_timestamp_extractor", "Clock", "got 'Clock'"),
        ("deserialization_exception_handler", None, "expected a function, or one of LogAndFail, LogAndContinue"),
        ("processing_exception_handler", "Retry", "LogAndFail, LogAndContinue, got 'Retry'"),
        ("production_exception_handler", DeadLetter, "got <class 'headrace.handlers.DeadLetter'>"),
        ("processing_guarantee", "exactly_once", "or 'at_least_once', got 'exactly_once'. Use 'exactly_once_v2'"),
        ("processing_guarantee", "exactly_once_beta", "got 'exactly_once_beta'. Use 'exactly_once_v2'"),
        ("state_dir", "", "expected the path of a folder, got ''"),
        ("state_dir", 5, "expected the path of a folder, got 5"),
        (
            "state_dir",
            "s3a://bucket/x",
            "expected the path of a folder; object stores and HDFS are not supported, got 's3",
        ),
        ("state_dir", Path("hdfs://host/x"), "expected the path of a folder; object stores and HDFS are not supported"),
        ("state_dir", "~nobody-of-that-name/x", "expected the path of a folder, but there is no such home, got '~nobo"),
        ("commit_interval_ms", -1, "expected at least 0, got -1"),
        ("max_records_per_batch", 0, "expected at least 1, got 0"),
        ("task_timeout_ms", -1, "expected at least 0, got -1"),
        ("num_partitions", 0, "expected at least 1, got 0"),
        ("replication_factor", 0, "expected at least 1, or -1 for the broker's default, got 0"),
        ("replication_factor", -2, "expected at least 1, or -1 for the broker's default, got -2"),
        ("num_standby_replicas", -1, "expected at least 0, got -1"),
        ("drop_stores", 5, "got 5"),
        (
            "spark",
            {"driver.memory": "4g"},
            "must begin with 'spark.', got 'driver.memory'. Did you mean 'spark.driver.memory'?",
        ),
        ("spark", {"spark.x": [1]}, "'spark.x' must be a string, a number or a boolean, got list"),
        (
            "spark",
            {"spark.x": print},
            "'spark.x' must be a string, a number or a boolean, got builtin_function_or_method",
        ),
        ("spark", {5: "x"}, "the names must be strings, got 5"),
        ("spark", 5, 'expected a dict such as {"spark.driver.memory": "4g"}, got int'),
        ("kafka", {"linger.ms": None}, "'linger.ms' must be a string, a number or a boolean, got NoneType"),
        ("kafka", {"group.id": "x"}, "'group.id' cannot be set here. Use the setting application_id instead"),
        (
            "kafka",
            {"bootstrap.servers": "x"},
            "'bootstrap.servers' cannot be set here. Use the setting bootstrap_servers instead",
        ),
        *[
            ("master", master, "expected one of Spark's masters: local, local[N], local[*], local[N,M], local-cluster[")
            for master in ("", "locl", "local[0]", "local[]", "local[a]", "local-cluster[2]", "spark://", "yarn-client")
        ],
        *[
            ("application_server", server, f"expected HOST:PORT, got '{server}'")
            for server in ("host", "host:", ":8080", "host:port", "host:0", "host:65536", "http://host:80", "a b:80")
        ],
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

    assert said.startswith("setting 'threads': there is no such setting. There are: application_id, application_")


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


def test_settings_of_others_are_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SPARK", '{"spark.driver.memory": "4g", "spark.executor.cores": 2}')
    monkeypatch.setenv("HEADRACE_KAFKA", '{"security.protocol": "SSL"}')
    monkeypatch.setenv("HEADRACE_DROP_STORES", "counts, sums")

    assert config().spark == {"spark.driver.memory": "4g", "spark.executor.cores": 2}
    assert config().kafka == {"security.protocol": "SSL"}
    assert config().drop_stores == ("counts", "sums")


@pytest.mark.parametrize("given", ["spark.driver.memory=4g", "", '{"spark.ssl.keyPassword": "hush"', "hush"])
def test_what_is_not_json_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("HEADRACE_SPARK", given)

    assert refusal(config) == 'HEADRACE_SPARK: expected a JSON object such as {"spark.driver.memory": "4g"}'


@pytest.mark.parametrize("given", ["12345", '["hush"]', '"hush"'])
def test_json_of_something_else_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("HEADRACE_KAFKA", given)

    said = refusal(config)

    assert said.startswith("setting 'kafka': expected a")
    assert "hush" not in said
    assert "12345" not in said


def test_settings_of_others_come_from_both_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_KAFKA", '{"sasl.username": "ann", "sasl.password": "abc", "linger.ms": 5}')

    assert config(kafka={"linger.ms": 7, "security.protocol": "SASL_SSL"}).kafka == {
        "sasl.username": "ann",
        "sasl.password": "abc",
        "security.protocol": "SASL_SSL",
        "linger.ms": 7,
    }
    assert config(kafka='{"linger.ms": 7}').kafka["sasl.username"] == "ann"
    given = StreamsConfig.from_properties({"application.id": "a", "security.protocol": "SASL_SSL"})
    assert given.kafka["sasl.password"] == "abc"
