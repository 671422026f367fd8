"""The settings that Spark is started with: our defaults, the user's settings, and those that results depend on.

Tests: `tests/spark/runtime/test_session.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace.config import StreamsConfig
from headrace.errors import ConfigError
from headrace.spark.runtime.java import python_path

LOG_VARIABLE = "HEADRACE_SPARK_LOG"
LOG_LEVELS = ("off", "error", "warn", "info", "debug")

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
ATTEMPTS = ("spark.task.maxFailures", "spark.stage.maxConsecutiveAttempts")
REQUIRED = {
    **dict.fromkeys(ATTEMPTS, ("1", "a task that failed must not run again before the application has started again")),
    "spark.speculation": ("false", "a task must not run twice at the same time"),
    _PROVIDER: (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "the state of applications needs it",
    ),
    _FORMAT: ("2", "attempts at a batch must not write their state to the same files"),
}
"""The settings that results depend on, with the reasons."""

_SQL_SETTINGS = {
    _PROVIDER: REQUIRED[_PROVIDER][0],
    # Every attempt at a batch has its own files, and the batch's commit names the files that count. In the first format
    # all attempts use one name, and the first to write wins. It may be a failed attempt, or an attempt of another run.
    _FORMAT: REQUIRED[_FORMAT][0],
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    # Spark sees a few large rows. Generating code for them in every batch would take longer than it saves.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_RENAMING = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""As safe on a local disk, where a rename is atomic, as the default, which starts five programs for every file."""

JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")

# On one machine the JVM shares the cores with Python, which does the work. The JVM moves messages and keeps state. The
# quick compiler and the collector with one thread take half the time of the default ones, and start sooner.
_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
_ONE_THREAD_COLLECTOR = "-XX:+UseSerialGC"
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def settings_of(config: StreamsConfig) -> dict[str, str]:
    """Return Spark's settings for an application: our defaults, overridden by the user's settings."""
    given = {name: _text(value) for name, value in config.spark.items()}
    _check(config.master, given)
    settings = {
        "spark.master": config.master,
        "spark.app.name": f"headrace-{config.application_id}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.maxResultSize": "0",
        **dict.fromkeys(ATTEMPTS, "1"),
        "spark.speculation": "false",
        # PySpark would send a larger function as a broadcast variable, and stateful stages do not load these.
        "spark.broadcast.UDFCompressionThreshold": "2047m",
        "spark.executorEnv.PYTHONHASHSEED": "0",
        **_SQL_SETTINGS,
    }
    if is_local(config.master):
        settings |= {
            _FILE_MANAGER: _RENAMING,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executorEnv.PYTHONPATH": python_path(),
        }
    for name in JAVA_OPTIONS if is_local(config.master) else JAVA_OPTIONS[:1]:
        options = given.pop(name, "")
        settings[name] = " ".join([_log_options(), *_jvm_options(config.master, options), options]).rstrip()
    return settings | given


def _jvm_options(master: str, given: str) -> list[str]:
    """Return options that keep a JVM from taking time that the workers on its machine need. Given options win."""
    if not is_local(master):
        return []
    return [_QUICK_COMPILER, *([] if _COLLECTOR.search(given) else [_ONE_THREAD_COLLECTOR])]


def _check(master: str, given: Mapping[str, str]) -> None:
    """Refuse settings that would make results wrong."""
    for name, value in given.items():
        required, reason = REQUIRED.get(name, (value, ""))
        if value != required:
            raise ConfigError(f"setting 'spark': '{name}' must be '{required}', got '{value}': {reason}")
    if "spark.master" in given:
        raise ConfigError("setting 'spark': 'spark.master' cannot be set here. Use the setting 'master' instead")
    attempts = re.fullmatch(r"local\[.+,\s*(\d+)\]", master)
    if attempts and attempts[1] != "1":
        reason = REQUIRED[ATTEMPTS[0]][1]
        raise ConfigError(f"setting 'master': a task may have only 1 attempt, got '{master}': {reason}")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_local(master: str) -> bool:
    """Tell whether Spark runs on this machine alone."""
    return master.startswith("local")


def _log_options() -> str:
    file = Path(__file__).with_name("log4j2.properties").as_uri()
    return f'"-Dlog4j2.configurationFile={file}" -Dheadrace.spark.log={log_level()}'


def log_level() -> str:
    level = (os.environ.get(LOG_VARIABLE) or "off").lower()
    if level not in LOG_LEVELS:
        raise ConfigError(f"{LOG_VARIABLE}: expected one of {', '.join(LOG_LEVELS)}, got '{level}'")
    return level
