from pathlib import Path

import pytest

from tests.spark.applications import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Give a folder for topics and state."""
    return Workspace(tmp_path)
