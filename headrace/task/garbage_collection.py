"""Python's cycle collector and its memory, kept out of a batch's way."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def collection_paused() -> Iterator[None]:
    """Keep the collector from running while a large batch is processed and committed.

    What a batch makes lives until its commit, so looking through it over and over finds nothing: measured, that takes
    a third of the time.

    >>> with collection_paused():
    ...     gc.isenabled()
    False
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_kept = False


def collect_when_asked() -> None:
    """Once in a process: from now on the collector runs only when it is asked to, and leaves alone what there is.

    Spark asks its workers to collect after every task. Over all their modules that takes longer than a small batch,
    and to collect while a task holds what it is going to write takes as long and finds nothing.
    """
    global _kept
    if not _kept:
        _kept = True
        gc.disable()
        gc.collect()
        gc.freeze()


_EVERY = 1000
_samples: dict[str, list[Sequence[Any]]] = {}


def sample(records: Sequence[Any]) -> Sequence[Any]:
    """Return a few of some records."""
    return records[::_EVERY]


def keep_memory(what: str, samples: Iterable[Sequence[Any]]) -> None:
    """Keep samples of the records that a task has had in a batch, until the next task has had its own.

    They keep Python from giving the memory around them back to the system, which takes far longer to hand it out again
    than Python does: measured, a tenth of a batch's time. A smaller batch keeps less.
    """
    _samples[what] = list(samples)
