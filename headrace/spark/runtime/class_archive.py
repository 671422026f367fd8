"""Spark's classes in a file, as Java has them in memory: with it an application starts in two thirds of the time.

Most of what a start takes is Java's work on thousands of classes: it reads, checks and links them. It can keep what
came of that ("class data sharing"), for one Java and one PySpark. A file that does not fit is left aside silently.
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
    """Return what lets a JVM start with the file, unless there is none, or the options given name another."""
    file = archive_file(java_home)
    return f'"-XX:SharedArchiveFile={file}" {_QUIET}' if file.exists() and "Archive" not in given else ""


def archive_file(java_home: Path) -> Path:
    """Return where the file is: with the packages whose classes it has, and it goes with them."""
    return Path(sys.prefix) / "share" / "headrace" / f"{java_home.name}.jsa"


def make_archive() -> Path:
    """Make the file: run a demo, whose Java writes it when it ends."""
    file = archive_file(find_java())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=file.parent) as folder:
            draft = Path(folder) / "classes.jsa"
            _run_demo(folder, f'"-XX:ArchiveClassesAtExit={draft}" {_QUIET}')
            if not draft.exists():
                raise ConfigError("Java has written no file of Spark's classes: this one may not be able to")
            _run_demo(folder, f'"-XX:SharedArchiveFile={draft}" {_QUIET}')  # a part of a file would end Java
            draft.replace(file)
    except OSError as error:
        raise ConfigError(f"Spark's classes cannot be kept in '{file.parent}': {error.strerror}") from None
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
        raise ConfigError(f"the demo to take Spark's classes from has failed: {done.stderr.strip()}")
