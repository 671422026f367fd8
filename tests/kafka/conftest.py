"""Fixtures for applications on Kafka. `tests/conftest.py` starts the brokers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.brokers.kafka.broker import KafkaBroker
from headrace.dev.kafka_broker import DevBroker
from tests.kafka.workspaces import OnKafka


@pytest.fixture
def broker(kafka: DevBroker) -> Iterator[KafkaBroker]:
    """Connect to the broker."""
    with KafkaBroker(kafka.address) as broker:
        yield broker


@pytest.fixture
def workspace(tmp_path: Path, kafka: DevBroker) -> OnKafka:
    """Have an application on the broker."""
    return OnKafka(tmp_path, kafka)
