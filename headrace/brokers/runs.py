"""The seam for runs: only the latest start of an application may write.

Tests: `tests/brokers/local/test_runs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from headrace.brokers.broker import TopicInfo

NO_BATCH = -1
"""The last batch of an application that has not written one."""


@dataclass(frozen=True)
class Run:
    """One start of an application.

    The lineage identifies the checkpoint that numbers the batches. The same number in another lineage is another batch.
    """

    application_id: str
    number: int
    lineage: str


class RunRegistry(Protocol):
    """The applications that a broker knows: their runs, batches and positions."""

    def begin_run(
        self,
        application_id: str,
        lineage: str,
        *,
        exactly_once: bool = True,
        changelogs: Iterable[TopicInfo] = (),
        replication_factor: int = -1,
    ) -> Run:
        """Begin a run of an application. From now on, earlier runs cannot write."""

    def end_run(self, run: Run) -> None:
        """Close the connections of a run that has stopped writing. The application can be started again at any time."""

    def run_number(self, application_id: str) -> int:
        """Return the number of an application's latest run, 0 if there is none."""

    def last_batch(self, application_id: str) -> tuple[str, int] | None:
        """Return the lineage of an application's latest run and the last batch written in it, -1 for none."""

    def positions(self, application_id: str) -> dict[str, dict[int, int]]:
        """Return the next offset to read, by topic and partition, as of the last batch that was written."""

    def forget_application(self, application_id: str) -> None:
        """Forget an application's runs, batches and positions. A process that still runs it cannot write any more."""
