"""Spark's own daemon, which forks the Python workers, but quiet when Spark ends before them.

Over TCP a worker waits for the rest of its input until its system has acknowledged the beginning: 40 ms, several times
in a batch. Over unix sockets it does not wait. But there a worker learns at once that nobody reads its last message,
and Spark's daemon prints that as a traceback while the application ends.
"""

from __future__ import annotations

import os
import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon


def print_exception() -> None:
    """Print what a worker died of, unless Spark has closed its socket: Spark knows that."""
    if not isinstance(sys.exception(), ConnectionError):
        traceback.print_exc()


if __name__ == "__main__":
    os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "true"  # or else it prints that without asking us
    vars(daemon)["traceback"] = SimpleNamespace(print_exc=print_exception, format_exc=traceback.format_exc)
    daemon.manager()
