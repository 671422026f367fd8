"""Spark's classes in a file, in the form that Java has in memory: an application starts in two thirds of the time.

Most of a start is Java's work on thousands of classes: it reads, checks and links them. Java can keep the result
("class data sharing") for one version of Java and PySpark. It silently ignores a file that does not fit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from headrace.errors import ConfigError
from headrace.spark.runtime.java import find_java

_QUIET = "-Xlog:disable"


def archive_options(java_home: Path, given: str) -> str:
    """Return the options that let a JVM use the file. Return none if there is no file or `given` names another one."""
    file = archive_file(java_home)
    return f'"-XX:SharedArchiveFile={file}" {_QUIET}' if file.exists() and "Archive" not in given else ""


def archive_file(java_home: Path) -> Path:
    """Return the path of the file. It is beside the packages whose classes it holds, so it is removed with them."""
    return Path(sys.prefix) / "share" / "headrace" / f"{java_home.name}.jsa"


def make_archive() -> Path:
    """Make the file: run a demo and let its Java write the file at the end."""
    file = archive_file(find_java())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=file.parent) as folder:
            draft = Path(folder) / "classes.jsa"
            _run_demo(folder, f'"-XX:ArchiveClassesAtExit={draft}" {_QUIET}')
            if not draft.exists():
                raise ConfigError("Java did not write a file of Spark's classes. Try another Java, which supports this")
            _run_demo(folder, f'"-XX:SharedArchiveFile={draft}" {_QUIET}')  # an incomplete file would crash Java
            draft.replace(file)
    except OSError as error:
        raise ConfigError(f"cannot write Spark's classes to '{file.parent}': {error.strerror}") from None
    return file


def _run_demo(folder: str, java_options: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "demo", "word_count", "--records", "100"],
        cwd=folder,
        env={**os.environ, "HEADRACE_SPARK": json.dumps({"spark.driver.extraJavaOptions": java_options})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigError(f"the demo that loads Spark's classes failed: {done.stderr.strip()}")
