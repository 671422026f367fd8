"""Connections to the broker that `tests/conftest.py` starts."""

from collections.abc import Iterator

import pytest

from headrace.brokers.kafka.broker import KafkaBroker
from headrace.dev.kafka_broker import DevBroker
from tests.kafka.naming import unique


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
