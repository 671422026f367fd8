"""Spark's own daemon, which forks the Python workers. This one prints nothing if Spark ends before them.

Over TCP, a worker gets the rest of its input only when its system has acknowledged the beginning. This takes 40 ms,
several times in a batch. Over unix sockets it does not wait. But then a worker notices at once that nobody reads its
last message, and Spark's daemon prints a traceback for it while the application ends.
"""

from __future__ import annotations

import os
import sys
import traceback
from types import SimpleNamespace

from pyspark import daemon


def print_exception() -> None:
    """Print the exception that ended a worker, unless Spark itself closed the socket."""
    if not isinstance(sys.exception(), ConnectionError):
        traceback.print_exc()


if __name__ == "__main__":
    # Otherwise the daemon prints without calling `print_exception`.
    os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "true"
    vars(daemon)["traceback"] = SimpleNamespace(print_exc=print_exception, format_exc=traceback.format_exc)
    daemon.manager()
