"""Fixtures of more than one package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

from headrace.task import garbage_collection as collector

if TYPE_CHECKING:
    from headrace.dev.kafka_broker import DevBroker
    from tests.kafka.secured import SecuredBroker
    from tests.registry import SchemaRegistry

_numbers = count(1)


@pytest.fixture(scope="session", autouse=True)
def _collects_by_itself() -> Iterator[None]:
    """Keep what Spark's workers do to Python's collector out of this process, which nobody asks to collect."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collector, "_kept", True)
        yield


@pytest.fixture
def mock_registry() -> str:
    """Name a registry of confluent-kafka's mock, which is empty and in this process alone."""
    return f"mock://test-{next(_numbers)}"


@pytest.fixture
def schema_registry() -> Iterator[SchemaRegistry]:
    """Serve a schema registry over HTTP."""
    from tests.registry import serve

    with serve() as registry:
        yield registry


# Tests that use one of these two carry `pytest.mark.xdist_group`, "kafka" or "secured" for most, so that few workers
# start a broker, each once. The imports wait: most workers need no broker.


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """Run a broker. A test that kills it starts it again."""
    from tests.kafka.shared_broker import shared_broker

    with shared_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Run a broker with TLS, SASL and ACLs."""
    from tests.kafka.secured import secured_broker

    with secured_broker(tmp_path_factory.mktemp("secured")) as secured:
        yield secured
