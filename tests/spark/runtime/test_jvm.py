"""What Headrace changes in Spark's JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import StreamsConfig
from headrace.spark.runtime.session import spark_session

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture
def jvm() -> Any:
    return spark_session(StreamsConfig(application_id="app", master="local[*]"))._jvm


def test_a_file_is_one_file_with_the_usual_permissions(jvm: Any, tmp_path: Path) -> None:
    path = getattr(jvm, "org.apache.hadoop.fs.Path")
    permission = getattr(jvm, "org.apache.hadoop.fs.permission.FsPermission")
    conf = getattr(jvm, "org.apache.hadoop.conf.Configuration")()
    files = getattr(jvm, "org.apache.hadoop.fs.FileSystem").get(jvm.java.net.URI("file:///"), conf)

    files.create(path(f"{tmp_path}/file")).close()
    files.setPermission(path(f"{tmp_path}/file"), permission("640"))
    files.mkdirs(path(f"{tmp_path}/folder"))
    files.setPermission(path(f"{tmp_path}/folder"), permission("1777"))

    assert files.getClass().getName() == "LocalFiles"
    assert {entry.name: oct(entry.stat().st_mode & 0o7777) for entry in tmp_path.iterdir()} == {
        "file": "0o640",
        "folder": "0o1777",
    }


def test_what_a_thread_dies_of_goes_to_the_log(jvm: Any) -> None:
    handler = jvm.java.lang.Thread.getDefaultUncaughtExceptionHandler()

    assert handler.getClass().getSimpleName() == "SparkUncaughtExceptionHandler"
