"""What the engine asks of a task, or of several that run as one.

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
        """The tasks in it; a task's own is itself."""

    @property
    def dropped_records(self) -> int:
        """How many records have been dropped so far."""

    def process_lanes(self, lanes: Sequence[Lane]) -> Causes:
        """Process a batch in the order of its causes; return the causes by ordinal, one more than there are records.

        The last cause is for the outputs at the end of the batch: those of a flush of the caches and of a punctuation
        by the wall clock.
        """

    def process_pages(self, pages: Iterable[Lane]) -> Causes:
        """Process a batch that is one lane, page by page; return its causes as `process_lanes` does."""

    def advance_wall_clock(self, now: int) -> None:
        """Set the clock and call the punctuations that are due."""

    def commit(self) -> list[Commit]:
        """Flush the caches and hand the changes to the image; return for each task the changes to persist."""

    def take_outputs(self) -> list[tuple[str, OutputColumns]]:
        """Return the outputs since the last call, by topic and page, and forget them."""

    def close(self) -> None:
        """Close the processors."""
