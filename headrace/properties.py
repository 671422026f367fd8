"""Kafka Streams' names of settings, and what each of them means here."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from headrace.errors import ConfigError

_log = logging.getLogger(__name__)

SECRET = re.compile(r"password|secret|key|jaas|token|user\.info|oauthbearer\.config", re.IGNORECASE)
"""What the name of a setting contains when its value is a secret."""
OLDER_NAMES = {
    "cache.max.bytes.buffering": "statestore_cache_max_bytes",
    "default.deserialization.exception.handler": "deserialization_exception_handler",
    "default.production.exception.handler": "production_exception_handler",
}
_REGISTRY = "give settings of a schema registry to the serde: serdes.Avro(schema, registry)"
INSTEAD = {
    "schema.registry.url": _REGISTRY,
    "basic.auth.credentials.source": _REGISTRY,
    "basic.auth.user.info": _REGISTRY,
    "schema.registry.basic.auth.user.info": _REGISTRY,
    "auto.register.schemas": _REGISTRY,
    "use.latest.version": _REGISTRY,
    "specific.avro.reader": _REGISTRY,
    "errors.dead.letter.queue.topic.name": "give the handler DeadLetter(topic) as processing_exception_handler, "
    "deserialization_exception_handler or production_exception_handler",
}
CLIENT_PREFIXES = ("main.consumer.", "consumer.", "producer.", "admin.")
PLAIN_CLIENT_PREFIXES = ("security.", "sasl.", "ssl.", "metadata.", "reconnect.", "request.", "retry.", "connections.")

_ASSIGNMENT = "Spark decides which machine runs a task"
_METRICS = "read metrics from Streams.metrics() and Spark"
_STORES = "stores are kept in images beside the Python workers, not in RocksDB"
_SERDES = "give a serde such as serdes.Windowed(inner, size) or serdes.List(inner)"
_READING = "max_records_per_batch and commit_interval_ms set what a batch reads"
_ACKS = "records are always acknowledged by all replicas"
_TLS = "clients and broker use the highest version of TLS that both support"
_COMMITS = "the engine commits offsets and transactions, as processing_guarantee says"
NO_EFFECT = {
    "acceptable.recovery.lag": _ASSIGNMENT,
    "allow.os.group.write.access": "the umask of the process decides who may write to state_dir",
    "buffered.records.per.partition": _READING,
    "built.in.metrics.version": _METRICS,
    "client.id": "clients are named after application_id",
    "config.providers": "values are not looked up elsewhere; put secrets into HEADRACE_KAFKA in the environment",
    "default.client.supplier": "clients are made from the setting kafka",
    "default.dsl.store": _STORES,
    "default.list.key.serde.inner": _SERDES,
    "default.list.key.serde.type": _SERDES,
    "default.list.value.serde.inner": _SERDES,
    "default.list.value.serde.type": _SERDES,
    "dsl.store.format": _STORES,
    "dsl.store.suppliers.class": _STORES,
    "enable.auto.commit": _COMMITS,
    "enable.idempotence": _COMMITS,
    "enable.metrics.push": _METRICS,
    "ensure.explicit.internal.resource.naming": "give names that must last with name= and store=",
    "group.id": "the group is application_id",
    "group.protocol": _ASSIGNMENT,
    "isolation.level": _COMMITS,
    "log.summary.interval.ms": "Streams.run() shows its progress",
    "max.poll.interval.ms": _READING,
    "max.poll.records": _READING,
    "max.task.idle.ms": "a batch is sorted by timestamp, so no task waits for a partition",
    "max.warmup.replicas": _ASSIGNMENT,
    "metric.reporters": _METRICS,
    "num.stream.threads": "master sets how many tasks run at a time, such as local[4]",
    "poll.ms": _READING,
    "probing.rebalance.interval.ms": _ASSIGNMENT,
    "processing.exception.handler.global.enabled": "processing_exception_handler handles global stores, too",
    "processor.wrapper.class": "processors are not wrapped",
    "receive.buffer.bytes": "the clients call it socket.receive.buffer.bytes: give that in kafka",
    "repartition.purge.interval.ms": "a repartition is a shuffle of Spark, not a topic",
    "rocksdb.config.setter": _STORES,
    "send.buffer.bytes": "the clients call it socket.send.buffer.bytes: give that in kafka",
    "ssl.enabled.protocols": _TLS,
    "ssl.protocol": _TLS,
    "state.cleanup.delay.ms": "an application that starts deletes images from before the machine's last start",
    "state.cleanup.dir.max.age.ms": "an application that starts deletes images from before the machine's last start",
    "task.assignor.class": _ASSIGNMENT,
    "transactional.id": _COMMITS,
    "upgrade.from": "there is no older version to upgrade from",
    "window.size.ms": _SERDES,
    "windowed.inner.class.serde": _SERDES,
    "windowstore.changelog.additional.retention.ms": "a store keeps windows for its retention=",
}
NO_EFFECT_PREFIXES = {
    "client.tag.": _ASSIGNMENT,
    "global.consumer.": "global tables are read by the one consumer that reads everything",
    "metrics.": _METRICS,
    "rack.aware.assignment.": _ASSIGNMENT,
    "restore.consumer.": "state is restored from Spark's checkpoint",
    "topic.": "repartitions are shuffles of Spark; a changelog topic has the settings that it needs",
}


def settings_of(properties: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """Return properties as settings. Log and leave out properties without a meaning here."""
    names = {field.replace("_", "."): field for field in fields if field not in ("kafka", "spark")} | OLDER_NAMES
    settings: dict[str, Any] = {}
    kafka: dict[str, Any] = {}
    spark: dict[str, Any] = {}
    for name in sorted(properties, key=lambda name: name not in OLDER_NAMES):  # so that the newer name wins
        value, plain = properties[name], _without_client_prefix(name)
        if plain in names:
            settings[names[plain]] = value
        elif reason := _no_effect(plain):
            _log.warning("setting '%s' has no effect: %s", name, reason)
        elif plain == "acks":
            _check_acks(name, value)
        elif name in INSTEAD:
            raise ConfigError(f"setting '{name}': there is no such setting here; {INSTEAD[name]}")
        elif name.startswith("spark."):
            spark[name] = value
        elif plain != name or name.startswith(PLAIN_CLIENT_PREFIXES):
            if kafka.setdefault(plain, value) != value:
                raise ConfigError(f"setting '{name}': '{plain}' has two values, but all clients share one")
        else:
            raise ConfigError(unknown(name, names))
    return settings | ({"kafka": kafka} if kafka else {}) | ({"spark": spark} if spark else {})


def unknown(name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown setting, with the closest known name, or with all of them."""
    close = get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(sorted(known))}"
    if not close and "." in name:
        hint += "; and settings of Kafka's clients, with 'consumer.', 'producer.' or 'admin.' before their names"
    return f"setting '{name}': there is no such setting. {hint}"


def _no_effect(name: str) -> str | None:
    by_prefix = (reason for prefix, reason in NO_EFFECT_PREFIXES.items() if name.startswith(prefix))
    return NO_EFFECT.get(name) or next(by_prefix, None)


def _check_acks(name: str, value: Any) -> None:
    if str(value).strip() not in ("all", "-1"):
        raise ConfigError(f"setting '{name}': expected 'all', got '{value}': {_ACKS}")
    _log.warning("setting '%s' has no effect: %s", name, _ACKS)


def _without_client_prefix(name: str) -> str:
    return next((name.removeprefix(prefix) for prefix in CLIENT_PREFIXES if name.startswith(prefix)), name)
