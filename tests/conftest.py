"""Fixtures of more than one package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

from headrace.task import garbage_collection as collector

if TYPE_CHECKING:
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
