"""Keep forked processes from inheriting an open log.

SQLite remembers locks per process and file. A child that inherits this memory believes that it holds its parent's
locks, even through connections that it opens itself. Once the parent closes the file, everything that the child writes
is lost. So every log is closed before a fork, and the next call opens it again.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """An open file that no child may inherit."""

    def before_fork(self) -> None:
        """Close the file, and let no thread open it again."""

    def after_fork(self) -> None:
        """Let threads open the file again, in the parent and in the child."""


class _ClosedByThread(threading.local):
    """The files that a thread has closed for the fork that it is about to make."""

    def __init__(self) -> None:
        self.files: list[Forkable] = []


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_closed = _ClosedByThread()


def watch(opened: Forkable) -> None:
    """Close a file before every fork of this process."""
    _watched.add(opened)


def _before() -> None:
    for opened in sorted(_watched, key=id):  # always in the same order, because each waits for a lock
        opened.before_fork()
        _closed.files.append(opened)


def _after() -> None:
    while _closed.files:
        _closed.files.pop().after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
