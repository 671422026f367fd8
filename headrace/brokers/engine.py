"""The broker that an engine needs: it plans and reads batches, registers runs, and writes each batch once.

Tests: `tests/brokers/test_connecting.py`.
"""

from __future__ import annotations

from typing import Protocol

from headrace.brokers.batches import BatchSource
from headrace.brokers.broker import Broker
from headrace.brokers.runs import RunRegistry
from headrace.brokers.writing import BatchWriter


class EngineBroker(Broker, BatchSource, BatchWriter, RunRegistry, Protocol):
    """A broker that an engine can run on."""

    @property
    def closed(self) -> bool:
        """Whether the broker was closed."""
