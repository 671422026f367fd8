"""Open a broker by its address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from headrace.brokers.broker import Broker
from headrace.brokers.engine import EngineBroker
from headrace.brokers.local.broker import LocalBroker
from headrace.errors import ConfigError


def connect(address: str, **settings: Any) -> Broker:
    """Open the topics at an address: `local:PATH` is the embedded log in a file, `HOST:PORT,...` a Kafka cluster.

    The settings are those of Kafka's clients, under librdkafka's names: `**{"security.protocol": "SSL"}`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, connect(f"local:{folder}/topics.db") as broker:
    ...     _ = broker.create_topic("lines")
    ...     _ = broker.produce("lines", [(b"a", b"hello", 1000)])
    ...     [record.value for record in broker.records("lines")]
    [b'hello']
    """
    return _open(address, settings)


_shared: dict[tuple[int, str, str], EngineBroker] = {}


def shared_broker(address: str, settings: Mapping[str, Any] | None = None) -> EngineBroker:
    """Return this process's broker at an address. It stays open for everyone who uses it."""
    used = {} if address.startswith("local:") else dict(settings or {})
    key = os.getpid(), address, repr(sorted(map(str, used.items())))  # a forked process opens its own
    broker = _shared.get(key)
    if broker is not None and not broker.closed:
        return broker
    opened = _open(address, used)
    if broker is not None:
        _shared.pop(key, None)
    # No lock: another thread might hold it while this process forks. If two threads open a broker, the first one stays.
    broker = _shared.setdefault(key, opened)
    if broker is not opened:
        opened.close()
    return broker


def _open(address: str, settings: Mapping[str, Any]) -> EngineBroker:
    scheme, separator, path = address.partition(":")
    if scheme == "local" and separator and path:
        if settings:
            raise ConfigError(f"'{address}': the embedded log takes no settings, got {', '.join(sorted(settings))}")
        return LocalBroker(path)
    if scheme == "local" or not separator:
        raise ConfigError(f"expected 'local:PATH' or 'HOST:PORT,...', got {address!r}")
    from headrace.brokers.kafka import KafkaBroker  # 0.1 s that the embedded log need not pay

    return KafkaBroker(address, **settings)
