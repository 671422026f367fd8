"""Kafka Streams' names of settings: what each becomes, which have no effect, and which are refused."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from headrace import ConfigError, LogAndContinue, StreamsConfig, WallclockTimestampExtractor, serdes


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in StreamsConfig.model_fields:
        monkeypatch.delenv(f"HEADRACE_{name.upper()}", raising=False)


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as caught:
        make()
    return str(caught.value)


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


def test_a_newer_name_comes_before_an_older_one() -> None:
    settings = StreamsConfig.from_properties(
        {"application.id": "app", "statestore.cache.max.bytes": 1, "cache.max.bytes.buffering": 2}
    )

    assert settings.statestore_cache_max_bytes == 1


def test_values_may_be_texts_as_in_a_file_of_properties() -> None:
    settings = StreamsConfig.from_properties(
        {
            "application.id": "app",
            "bootstrap.servers": "host:9092",
            "state.dir": "/var/lib/headrace",
            "commit.interval.ms": "100",
            "task.timeout.ms": "1",
            "num.standby.replicas": "1",
            "replication.factor": "-1",
            "application.server": "host:8080",
            "num.partitions": "4",
            "master": "local[2]",
            "max.records.per.batch": "10",
        }
    )

    assert settings == StreamsConfig(
        application_id="app",
        bootstrap_servers="host:9092",
        state_dir="/var/lib/headrace",
        commit_interval_ms=100,
        task_timeout_ms=1,
        num_standby_replicas=1,
        replication_factor=-1,
        application_server="host:8080",
        num_partitions=4,
        master="local[2]",
        max_records_per_batch=10,
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("num.stream.threads", "master sets how many tasks run at a time, such as local[4]"),
        ("rocksdb.config.setter", "stores are kept in images beside the Python workers, not in RocksDB"),
        ("metrics.recording.level", "read metrics from Streams.metrics() and Spark"),
        ("rack.aware.assignment.tags", "Spark decides which machine runs a task"),
        ("topic.retention.ms", "repartitions are shuffles of Spark"),
        ("restore.consumer.max.poll.records", "state is restored from Spark's checkpoint"),
        ("consumer.max.poll.records", "max_records_per_batch and commit_interval_ms set what a batch reads"),
        ("ssl.protocol", "clients and broker use the highest version of TLS that both support"),
        ("consumer.ssl.enabled.protocols", "clients and broker use the highest version of TLS that both support"),
        ("producer.transactional.id", "the engine commits offsets and transactions, as processing_guarantee says"),
    ],
)
def test_a_property_without_a_meaning_here_is_logged(name: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings = StreamsConfig.from_properties({"application.id": "app", name: "x"})

    assert settings == StreamsConfig(application_id="app")
    assert [
        record.getMessage().startswith(f"setting '{name}' has no effect: {reason}") for record in caplog.records
    ] == [True]


@pytest.mark.parametrize("name", ["acks", "producer.acks"])
@pytest.mark.parametrize("value", ["all", "-1", -1])
def test_the_acks_that_are_always_so_are_logged(name: str, value: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings = StreamsConfig.from_properties({"application.id": "app", name: value})

    assert settings == StreamsConfig(application_id="app")
    assert [record.getMessage() for record in caplog.records] == [
        f"setting '{name}' has no effect: records are always acknowledged by all replicas"
    ]


@pytest.mark.parametrize("value", ["1", 0])
def test_fewer_acks_are_refused(value: Any) -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"application.id": "app", "producer.acks": value}))

    assert said == (
        f"setting 'producer.acks': expected 'all', got '{value}': records are always acknowledged by all replicas"
    )


KAFKA_STREAMS_4_3 = """
    acceptable.recovery.lag allow.os.group.write.access application.server buffered.records.per.partition
    built.in.metrics.version client.id commit.interval.ms config.providers connections.max.idle.ms
    default.client.supplier default.dsl.store default.list.key.serde.inner default.list.key.serde.type
    default.list.value.serde.inner default.list.value.serde.type dsl.store.format dsl.store.suppliers.class
    enable.metrics.push ensure.explicit.internal.resource.naming group.protocol log.summary.interval.ms max.task.idle.ms
    max.warmup.replicas metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms num.standby.replicas
    num.stream.threads poll.ms probing.rebalance.interval.ms processing.exception.handler.global.enabled
    processor.wrapper.class rack.aware.assignment.non_overlap_cost rack.aware.assignment.strategy
    rack.aware.assignment.tags rack.aware.assignment.traffic_cost receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms repartition.purge.interval.ms replication.factor request.timeout.ms retry.backoff.ms
    rocksdb.config.setter security.protocol send.buffer.bytes state.cleanup.delay.ms state.cleanup.dir.max.age.ms
    state.dir statestore.cache.max.bytes task.assignor.class task.timeout.ms upgrade.from window.size.ms
    windowed.inner.class.serde windowstore.changelog.additional.retention.ms
"""


@pytest.mark.parametrize("name", KAFKA_STREAMS_4_3.split())
def test_every_name_of_kafka_streams_is_taken(name: str) -> None:
    value = "host:80" if name == "application.server" else "1"

    assert StreamsConfig.from_properties({"application.id": "app", name: value}).application_id == "app"


def test_the_settings_of_clients_go_to_kafka() -> None:
    settings = StreamsConfig.from_properties(
        {
            "application.id": "app",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "ssl.ca.location": "ca.pem",
            "consumer.fetch.min.bytes": "1",
            "main.consumer.fetch.wait.max.ms": "2",
            "producer.linger.ms": "3",
            "admin.socket.timeout.ms": "4",
            "consumer.auto.offset.reset": "latest",
            "spark.driver.memory": "4g",
        }
    )

    assert settings.kafka == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.ca.location": "ca.pem",
        "fetch.min.bytes": "1",
        "fetch.wait.max.ms": "2",
        "linger.ms": "3",
        "socket.timeout.ms": "4",
    }
    assert settings.auto_offset_reset == "latest"
    assert settings.spark == {"spark.driver.memory": "4g"}


def test_clients_cannot_be_told_different_things() -> None:
    given = {"consumer.sasl.password": "hush-1", "producer.sasl.password": "hush-2"}

    said = refusal(lambda: StreamsConfig.from_properties({"application.id": "app"} | given))

    assert said == ("setting 'producer.sasl.password': 'sasl.password' has two values, but all clients share one")


def test_a_dead_letter_queue_is_a_handler() -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"errors.dead.letter.queue.topic.name": "dead"}))

    assert said.startswith(
        "setting 'errors.dead.letter.queue.topic.name': there is no such setting here; "
        "give the handler DeadLetter(topic) as processing_exception_handler, "
    )


def test_the_schema_registry_is_the_serdes() -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"schema.registry.url": "http://registry:8081"}))

    assert said == (
        "setting 'schema.registry.url': there is no such setting here; "
        "give settings of a schema registry to the serde: serdes.Avro(schema, registry)"
    )


def test_a_property_that_resembles_none_gets_the_way_for_clients() -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"application.id": "app", "fetch.min.bytes": "1"}))

    assert said.endswith(", with 'consumer.', 'producer.' or 'admin.' before their names")


def test_an_unknown_property_is_refused_under_its_own_name() -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"application.id": "app", "processing.guarante": "x"}))

    assert said == "setting 'processing.guarante': there is no such setting. Did you mean 'processing.guarantee'?"


def test_properties_are_checked_like_settings() -> None:
    said = refusal(lambda: StreamsConfig.from_properties({"application.id": "app", "auto.offset.reset": "first"}))

    assert said.startswith("setting 'auto_offset_reset': expected 'earliest', 'latest' or 'none', got 'first'")
