"""Settings of Kafka's clients: all of librdkafka's, except for those that Headrace fixes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigError
from headrace.properties import SECRET

_SERVER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+):([0-9]{1,5})")
_LOGIN = re.compile(r"[^/\s,]*@")

_ADDRESS = "the address says where the brokers are"
_GROUP = "the group belongs to the application, and its only member is the run"
_READING = "each call that reads decides where it begins and what it sees"
_WRITING = "records are written once and acknowledged by all replicas"
FIXED = {
    "acks": _WRITING,
    "auto.offset.reset": _READING,
    "bootstrap.servers": _ADDRESS,
    "enable.auto.commit": _READING,
    "enable.auto.offset.store": _READING,
    "enable.idempotence": _WRITING,
    "enable.partition.eof": _READING,
    "error_cb": "errors are raised, or logged by 'headrace.kafka'",
    "group.id": _GROUP,
    "group.instance.id": _GROUP,
    "group.protocol": _GROUP,
    "isolation.level": _READING,
    "log_cb": "clients log to the logger 'headrace.kafka'",
    "logger": "clients log to the logger 'headrace.kafka'",
    "metadata.broker.list": _ADDRESS,
    "on_delivery": _WRITING,
    "partitioner": "keys go to the partitions that a Java client would choose",
    "request.required.acks": _WRITING,
    "transactional.id": _WRITING,
}
"""Settings that Headrace fixes, and why."""

_TLS = "none: the clients take the highest version of TLS that they and the broker have"
JAVA_ONLY = {
    "buffer.memory": "queue.buffering.max.kbytes, in kilobytes",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "default.api.timeout.ms": "socket.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.block.ms": "socket.timeout.ms",
    "max.request.size": "message.max.bytes",
    "partitioner.class": "partitioner= of to and repartition",
    "sasl.jaas.config": "sasl.username and sasl.password",
    "sasl.login.callback.handler.class": "oauth_cb, a function that returns a token and its expiry",
    "ssl.enabled.protocols": _TLS,
    "ssl.protocol": _TLS,
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": "ssl.ca.location, a file in PEM",
    "ssl.truststore.password": "ssl.ca.location, a file in PEM",
    "ssl.truststore.type": "ssl.ca.location, a file in PEM",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.type": "ssl.keystore.location for PKCS#12, or ssl.certificate.location and ssl.key.location for PEM",
}
"""Settings of Java's clients, and what to set instead."""


def check_address(address: str) -> None:
    """Raise if an address is not a list of HOST:PORT."""
    servers = [_SERVER.fullmatch(server.strip()) for server in address.split(",")]
    if not all(server and 0 < int(server[2]) < 65536 for server in servers):
        shown = _LOGIN.sub("****@", address)
        raise ConfigError(f"expected 'local:PATH' or 'HOST:PORT,...', got {shown!r}")


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise if Headrace fixes a setting, or if it belongs to Java's clients."""
    for name in settings:
        if name in FIXED:
            raise ConfigError(f"Kafka setting '{name}' cannot be set: {FIXED[name]}")
        if name in JAVA_ONLY:
            raise ConfigError(f"Kafka setting '{name}' belongs to Java's clients. Instead: {JAVA_ONLY[name]}")


def whole_number(settings: Mapping[str, Any], name: str, default: int) -> int:
    """Return a setting that must be a whole number."""
    given = settings.get(name, default)
    try:
        return int(given)
    except (TypeError, ValueError):
        raise ConfigError(f"Kafka setting '{name}': expected a number, got {given!r}") from None


def without_secrets(text: str, settings: Mapping[str, Any]) -> str:
    """Return a text without the secrets that settings contain.

    >>> without_secrets("wrong password 'abc'", {"sasl.password": "abc"})
    "wrong password '****'"
    """
    for name, value in settings.items():
        if value and SECRET.search(name):
            text = text.replace(str(value), "****")
    return text
