"""Spark's errors in words that help a user of Python."""

from __future__ import annotations

import re

from headrace.errors import HeadraceError, RecordsGoneError, StreamsError, SupersededError, UnavailableError

_KEPT: dict[str, type[HeadraceError]] = {
    "RecordsGoneError": RecordsGoneError,
    "SupersededError": SupersededError,
    "UnavailableError": UnavailableError,
}
"""The errors that decide what an application does next."""
_OURS = ("StreamsError", "TaskError", "TopicError", "ProcessorStateError")
_OF_SPARK = ("Py4JJavaError", "PythonException", "StreamingQueryException", "SparkException")
_LOG_IS_SHARED = "CONCURRENT_STREAM_LOG_UPDATE"
_JAVA_CLASS = re.compile(r"^:? ?(?:[\w$]+\.)+[\w$]+: ")
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt)): (.*)$")


def is_of_a_shared_log(error: BaseException) -> bool:
    """Tell whether Spark found that another run had noted the same batch in the same checkpoint."""
    return _LOG_IS_SHARED in str(error)


def readable(error: BaseException) -> BaseException:
    """Return an error of Headrace unchanged. Give an error of Spark the message of the Python error inside it."""
    if isinstance(error, HeadraceError) or not type(error).__module__.startswith(("pyspark", "py4j")):
        return error
    text = str(error)
    lines = [line.strip() for line in text.splitlines()]
    said = [match for line in lines if (match := _PYTHON_ERROR.match(line)) and match[1] not in _OF_SPARK]
    name, message = said[-1].groups() if said else ("", "")
    if name in _KEPT:
        return _KEPT[name](message)
    if name in _OURS:
        return StreamsError(message)
    # Only after our own errors, because these may mention a connection to a broker.
    if "Python worker exited unexpectedly" in text or "Connection reset" in text:
        return StreamsError(
            "a Python worker died (killed, or out of memory?): the batch was not committed. The next run tries it "
            "again. If memory is short, set a smaller max_records_per_batch"
        )
    if said:
        return StreamsError(f"{name}: {message}")
    told = [
        _JAVA_CLASS.sub("", line) for line in lines if line and not line.startswith("An error occurred while calling")
    ]
    return StreamsError(f"Spark failed: {told[0] if told else type(error).__name__}")
