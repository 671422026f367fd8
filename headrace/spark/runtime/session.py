"""Start Spark without any setup and without output on the terminal.

A process has one Spark and one JVM. Every application has its own session with its own SQL settings. The settings of
the JVM are those of the first application.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headrace.config import StreamsConfig
from headrace.errors import ConfigError
from headrace.spark.runtime.class_archive import archive_options
from headrace.spark.runtime.java import end_java, find_java, python_path, worker_variables
from headrace.spark.runtime.jvm import delete_at_the_end, log_uncaught_exceptions, write_files_quickly
from headrace.spark.runtime.settings import ATTEMPTS, JAVA_OPTIONS, REQUIRED, is_local, log_level, settings_of

_SOCKETS = "spark.python.unix.domain.socket"
_SOCKET_FOLDER = f"{_SOCKETS}.dir"
_LONGEST_FOLDER = 42
"""In characters. The strictest system allows 103 for the path of a unix socket, and 61 of them follow the folder."""

_log = logging.getLogger(__name__)
_lock = threading.RLock()
_first: dict[str, str] = {}
"""The settings that Spark was started with."""


def spark_session(config: StreamsConfig) -> SparkSession:
    """Return a new session for an application. Start Spark if this process has none."""
    settings = settings_of(config)
    with _lock:
        _keep_py4j_from_telling()
        if _has_a_useless_jvm():
            stop_session()
        context = SparkContext._active_spark_context or _start(settings)
        _check_same(context, config)
        session = SparkSession(context).newSession()
        try:
            _set(session, settings, config.spark)
        except Exception as error:
            raise ConfigError(f"setting 'spark': {_reason(error)}") from None
        return session


def stop_session() -> None:
    """Stop Spark and its JVM, if they run. This ends every session."""
    with _lock:
        context = SparkContext._active_spark_context
        if context is not None:
            for _ in range(2):  # if the JVM is dead, the first call gives up halfway, and the second one finishes
                with warnings.catch_warnings(), suppress(Exception):
                    warnings.simplefilter("ignore")
                    context.stop()
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        _end_jvm()
        SparkContext._gateway = None
        SparkContext._jvm = None
        _first.clear()


# -- the settings of a session -----------------------------------------------------------------------------------------


def _set(session: SparkSession, settings: Mapping[str, str], given: Iterable[str]) -> None:
    """Give a session its settings. The settings of the JVM cannot change after the first application has started."""
    for name in _first.keys() - settings:
        if session.conf.isModifiable(name):
            session.conf.unset(name)
    running = _first or dict(session.sparkContext.getConf().getAll())
    for name, value in settings.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
        elif name in given and running.get(name) != value:
            _log.warning("setting 'spark': '%s' has no effect, since Spark already runs in this process", name)


def _check_same(context: SparkContext, config: StreamsConfig) -> None:
    """Refuse a Spark that runs in this process with settings that do not fit."""
    if context.master != config.master:
        raise ConfigError(
            f"setting 'master': this process already runs Spark on '{context.master}', got '{config.master}'. "
            "Run this application in a process of its own"
        )
    if _first:
        return
    attempts = {} if is_local(context.master) else dict.fromkeys(ATTEMPTS, "4")
    for name, usual in {**attempts, "spark.speculation": "false"}.items():
        required, reason = REQUIRED[name]
        running = context.getConf().get(name, usual)
        if running != required:
            raise ConfigError(
                f"this process already runs Spark with '{name}' set to '{running}'. It must be '{required}': {reason}. "
                "Let Headrace start Spark"
            )


# -- the JVM ----------------------------------------------------------------------------------------------------------


def _start(settings: Mapping[str, str]) -> SparkContext:
    _warn_of_another_spark()
    if log_level() == "off":
        _silence_py4j()
    imports = threading.Thread(target=_import_ahead, name="headrace-imports", daemon=True)
    imports.start()
    conf, master, java_home = SparkConf(), settings["spark.master"], find_java()
    sockets = _sockets(master)
    for name, value in {**sockets, **settings}.items():
        conf.set(name, value)
    if is_local(master):
        java_options = settings[JAVA_OPTIONS[0]]
        conf.set(JAVA_OPTIONS[0], f"{archive_options(java_home, java_options)} {java_options}".lstrip())
    with _environment(_variables(master, java_home)), _interrupts_as_before():
        try:
            context = SparkContext(conf=conf)
        except Exception as error:
            reason = _reason(error)
            stop_session()
            if sockets:
                shutil.rmtree(sockets[_SOCKET_FOLDER], ignore_errors=True)
            raise ConfigError(f"Spark cannot start: {reason}") from None
    imports.join()
    # Its thread would print a traceback if the JVM ends first, as it does when the process ends.
    vars(context._accumulatorServer)["handle_error"] = lambda request, client_address: None
    log_uncaught_exceptions(context)
    if sockets:
        delete_at_the_end(context, sockets[_SOCKET_FOLDER])
    if is_local(master):
        write_files_quickly(context)
    _first.update(settings)
    atexit.register(_at_exit, os.getpid())
    return context


def _sockets(master: str) -> dict[str, str]:
    """Let Spark and its workers on this machine use unix sockets, in a folder that only this user can open.

    The module `worker_daemon` says how much time this saves. Other machines may not have a folder with such a short
    name.
    """
    if not is_local(master) or os.name == "nt":
        return {}
    usual = tempfile.gettempdir()
    try:
        folder = tempfile.mkdtemp(prefix="headrace-", dir=usual if len(usual) <= _LONGEST_FOLDER else "/tmp")
    except OSError:
        return {}
    return {f"{_SOCKETS}.enabled": "true", _SOCKET_FOLDER: folder}


def _keep_py4j_from_telling() -> None:
    """Keep py4j from logging its messages to the JVM even if everything is logged: they may contain passwords."""
    logger = logging.getLogger("py4j")
    logger.setLevel(max(logger.level, logging.INFO))


def _silence_py4j() -> None:
    """Keep py4j from logging interrupts, and exceptions that it also raises. Some of these go to the root logger."""
    logger = logging.getLogger("py4j")
    logger.setLevel(logging.CRITICAL + 1)
    vars(import_module("py4j.java_gateway"))["logging"] = logger


def _reason(error: Exception) -> str:
    """Return the message of a Spark error, without its Java class."""
    if "JAVA_GATEWAY_EXITED" in str(error):
        return "its Java ended at once. Look above for the reason, and check the settings spark.driver.*"
    said = next((line for line in str(error).splitlines() if line and not line.startswith("An error occurred")), "")
    return re.sub(r"^:? ?([\w$]+\.)+[\w$]+: ", "", said) or type(error).__name__


def _import_ahead() -> None:
    """Import the modules that PySpark needs, while the JVM starts."""
    for module in ("numpy", "pyarrow"):
        with suppress(ImportError):
            import_module(module)


def _variables(master: str, java_home: Path) -> dict[str, str]:
    """Return the environment of the JVM, which the Python workers on this machine inherit."""
    variables = {"JAVA_HOME": str(java_home), "PYTHONHASHSEED": "0", "PYSPARK_DRIVER_PYTHON": sys.executable}
    if not is_local(master):
        return variables | {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    return variables | worker_variables() | {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": python_path()}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables while the JVM starts, but not for other processes that the user starts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """Undo the handler that PySpark sets, because on an interrupt it would cancel the current batch."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def _warn_of_another_spark() -> None:
    home = os.environ.get("SPARK_HOME")
    if home and not any(Path(home, "jars").glob(f"spark-core_*-{pyspark.__version__}.jar")):
        _log.warning("SPARK_HOME is '%s', which is not Spark %s. Unset it if Spark fails", home, pyspark.__version__)


def _has_a_useless_jvm() -> bool:
    """Tell whether the JVM has died, or Spark was stopped in it. The next Spark would get the old settings."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and (process.poll() is not None or SparkContext._active_spark_context is None)


def _at_exit(owner: int) -> None:
    if os.getpid() == owner:  # a forked child comes here too
        with suppress(KeyboardInterrupt):  # a second Ctrl-C: the JVM ends anyway
            _end_jvm()


def _end_jvm() -> None:
    gateway = SparkContext._gateway
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()  # otherwise a thread continues to tell the JVM which objects are no longer used
        end_java(getattr(gateway, "proc", None))
