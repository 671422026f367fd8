"""The address of a cluster and the settings of its clients."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headrace.brokers.kafka.settings import check_address, check_settings, whole_number, without_secrets
from headrace.errors import ConfigError

Client = TypeVar("Client")

PATIENCE_MS = 30_000
"""How long to wait for an answer, unless `socket.timeout.ms` is set."""

_log = logging.getLogger("headrace.kafka")
_log.addHandler(logging.NullHandler())  # otherwise Python prints the warnings of a logger without a handler


class Connection:
    """The address of a cluster and the settings of its clients.

    It makes clients and keeps none. The caller owns a client, closes it, and never takes it into a forked process. A
    connection itself can be shared with any process, and pickled if its settings can.
    """

    def __init__(self, address: str, settings: Mapping[str, Any] | None = None) -> None:
        check_address(address)
        check_settings(settings or {})
        self.address = address
        self.settings = dict(settings or {})
        self.patience = whole_number(self.settings, "socket.timeout.ms", PATIENCE_MS) / 1000

    def admin(self, **overrides: Any) -> AdminClient:
        """Return a client that manages topics."""
        return self._make(AdminClient, {"socket.timeout.ms": int(self.patience * 1000)}, overrides)

    def consumer(self, **overrides: Any) -> Consumer:
        """Return a client that reads the partitions assigned to it, without a group and without commits."""
        settings = {
            "group.id": "headrace",  # required, but not used
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }
        return self._make(Consumer, settings, overrides)

    def producer(self, **overrides: Any) -> Producer:
        """Return a client that writes each record once, in order, to all replicas."""
        settings = {"enable.idempotence": True, "message.timeout.ms": int(self.patience * 1000)}
        return self._make(Producer, settings, overrides)

    def without_secrets(self, text: str) -> str:
        """Return a text without the secrets that the settings contain."""
        return without_secrets(text, self.settings)

    def __repr__(self) -> str:
        return f"Connection({self.address!r})"

    def _make(
        self, kind: Callable[[dict[str, Any]], Client], settings: Mapping[str, Any], overrides: Mapping[str, Any]
    ) -> Client:
        common = {"bootstrap.servers": self.address, "client.id": "headrace", "logger": _log}
        try:
            return kind({**common, **settings, **self.settings, **overrides})
        except (KafkaException, TypeError, ValueError) as error:
            problem = error.args[0].str() if isinstance(error, KafkaException) else str(error)
            raise ConfigError(f"settings of Kafka's clients: {self.without_secrets(problem)}") from None
