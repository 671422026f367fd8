"""A broker for the tests of Kafka, and another one that asks who one is.

Tests carry `pytest.mark.xdist_group`, most of them "kafka" or "secured", so that few workers start a broker, each once.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.brokers.kafka.broker import KafkaBroker
from headrace.dev.kafka_broker import DevBroker, free_port
from tests.kafka.naming import unique
from tests.kafka.places import OnKafka
from tests.kafka.secured import SecuredBroker, secured_broker

# A broker that was killed comes back as soon as the controller has given up its predecessor. Compaction is soon, and so
# is the end of a transaction that took too long.
SETTINGS = {
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    "log.cleaner.backoff.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """Run a broker. A test that kills it starts it again."""
    with DevBroker(tmp_path_factory.mktemp("kafka"), free_port(), settings=SETTINGS) as broker:
        yield broker


@pytest.fixture
def broker(kafka: DevBroker) -> Iterator[KafkaBroker]:
    """Connect to the broker."""
    with KafkaBroker(kafka.address) as broker:
        yield broker


@pytest.fixture
def elsewhere(kafka: DevBroker) -> Iterator[KafkaBroker]:
    """Connect as another process would."""
    with KafkaBroker(kafka.address) as broker:
        yield broker


@pytest.fixture
def app() -> str:
    """Name an application."""
    return unique("app")


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Run a broker with TLS, SASL and ACLs."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as secured:
        yield secured


@pytest.fixture
def place(tmp_path: Path, kafka: DevBroker) -> OnKafka:
    """Have an application on the broker."""
    return OnKafka(tmp_path, kafka)
