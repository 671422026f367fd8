"""The seam between an engine and a task, or several tasks that run as one.

Tests: `tests/task/test_group.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from headrace.raw_records import OutputColumns
from headrace.task.lanes import Causes, Lane
from headrace.task.task import Commit, Task


class TaskRunner(Protocol):
    """A `Task`, or a `TaskGroup` of several.

    A batch is one call of `process_lanes`, or several of `process_pages`, then `advance_wall_clock`, `commit` and
    `take_outputs`. `close` comes last.
    """

    @property
    def tasks(self) -> Sequence[Task]:
        """The tasks in the group; a single task returns itself."""

    @property
    def dropped_records(self) -> int:
        """How many records have been dropped so far."""

    def process_lanes(self, lanes: Sequence[Lane]) -> Causes:
        """Process a batch in the order of its causes. Return the causes by ordinal, and one more.

        The last cause is for the outputs at the end of the batch, from flushed caches and wall-clock punctuations.
        """

    def process_pages(self, pages: Iterable[Lane]) -> Causes:
        """Process a batch of a single lane, page by page. Return its causes as `process_lanes` does."""

    def advance_wall_clock(self, now: int) -> None:
        """Set the clock and call the punctuations that are due."""

    def commit(self) -> list[Commit]:
        """Flush the caches and hand the changes to the image. Return the changes to persist for each task."""

    def take_outputs(self) -> list[tuple[str, OutputColumns]]:
        """Return the outputs since the last call, by topic and page, and forget them."""

    def close(self) -> None:
        """Close the processors."""
