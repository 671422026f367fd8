"""Forks: a process must not inherit an open log.

SQLite keeps what it has locked per process and file. A child that inherits this believes to hold locks that only its
parent has, also for connections that it opens itself; when the parent closes the file, what the child writes from
then on is lost. So every log is closed before a fork, and opened again by whoever uses it next.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something open that no child may inherit."""

    def before_fork(self) -> None:
        """Close it, and let no thread open it again."""

    def after_fork(self) -> None:
        """Let threads open it again, in the parent and in the child."""


class _Held(threading.local):
    def __init__(self) -> None:
        self.watched: list[Forkable] = []


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held = _Held()


def watch(opened: Forkable) -> None:
    """Have something closed before every fork of this process."""
    _watched.add(opened)


def _before() -> None:
    for opened in sorted(_watched, key=id):  # in one order, for each waits for a lock
        opened.before_fork()
        _held.watched.append(opened)


def _after() -> None:
    while _held.watched:
        _held.watched.pop().after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
