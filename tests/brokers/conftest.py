from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.brokers import LocalBroker


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "topics.db"


@pytest.fixture
def broker(path: Path) -> Iterator[LocalBroker]:
    with LocalBroker(path) as broker:
        yield broker
