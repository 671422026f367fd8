"""Spark's classes in a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.spark.runtime.class_archive import archive_file, archive_options, make_archive
from headrace.spark.runtime.java import find_java

# Prints the options of Java, after anything that it has to say.
STARTED = """
import sys, json
from headrace import StreamsConfig
from headrace.spark.runtime.session import spark_session

sys.prefix, options = sys.argv[1:]
config = StreamsConfig(application_id="app", master="local[1]", spark={"spark.driver.extraJavaOptions": options})
jvm = spark_session(config)._jvm
print(json.dumps(list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())))
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def started(prefix: Path, options: str = "-Xshare:auto") -> tuple[list[str], str]:
    """Start Spark; return the options of its Java, and what was printed beside."""
    done = subprocess.run(
        [sys.executable, "-c", STARTED, str(prefix), options], capture_output=True, text=True, check=True
    )
    *said, told = done.stdout.splitlines()
    return json.loads(told), "".join(said) + done.stderr


def test_without_a_file_there_are_no_options(prefix: Path) -> None:
    assert archive_options(Path("java-17-abc"), "") == ""


def test_a_file_is_for_one_java(prefix: Path) -> None:
    file = archive_file(Path("java-17-abc"))
    file.parent.mkdir(parents=True)
    file.touch()

    assert archive_options(Path("java-17-abc"), "-Xlog:gc") == f'"-XX:SharedArchiveFile={file}" -Xlog:disable'
    assert archive_options(Path("java-21-abc"), "") == ""


def test_a_file_that_somebody_names_comes_first(prefix: Path) -> None:
    file = archive_file(Path("java-17-abc"))
    file.parent.mkdir(parents=True)
    file.touch()

    assert archive_options(Path("java-17-abc"), "-XX:ArchiveClassesAtExit=mine.jsa") == ""


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_a_file_that_does_not_fit_is_left_aside_without_a_word(prefix: Path) -> None:
    file = archive_file(find_java())
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no classes")

    options, printed = started(prefix)

    assert f"-XX:SharedArchiveFile={file}" in options
    assert printed == ""


def test_a_folder_that_cannot_be_written_is_named(prefix: Path) -> None:
    (prefix / "share").touch()

    with pytest.raises(
        ConfigError, match=f"cannot write Spark's classes to '{prefix}/share/headrace': Not a directory"
    ):
        make_archive()


@pytest.mark.slow
@pytest.mark.xdist_group("processes")
def test_java_starts_with_the_classes_of_the_file(prefix: Path) -> None:
    """The one that setting up has made; Java refuses to start when it has to have it, and it does not fit."""
    file = archive_file(find_java())
    made = Path(sys.executable).parents[1] / file.relative_to(prefix)
    if not made.exists():
        pytest.skip("this Java cannot keep classes in a file")
    file.parent.mkdir(parents=True)
    file.symlink_to(made)

    options, printed = started(prefix, "-Xshare:on")

    assert f"-XX:SharedArchiveFile={file}" in options
    assert printed == ""
