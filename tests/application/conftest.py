from pathlib import Path

import pytest

from tests.spark.applications import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Give a folder for topics and state."""
    return Place(tmp_path)
