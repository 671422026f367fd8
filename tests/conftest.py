"""Fixtures of more than one package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.registry import SchemaRegistry

_numbers = count(1)


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
