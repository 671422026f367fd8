"""The seam for runs: only the latest start of an application may write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from headrace.brokers.broker import TopicInfo

NO_BATCH = -1
"""The last batch of an application that has not written any."""


@dataclass(frozen=True)
class Run:
    """One start of an application.

    The lineage names the checkpoint that counts the batches: in another lineage the same number is another batch.
    """

    application_id: str
    number: int
    lineage: str


class RunRegistry(Protocol):
    """Applications as the broker knows them."""

    def begin_run(
        self,
        application_id: str,
        lineage: str,
        *,
        exactly_once: bool = True,
        changelogs: Iterable[TopicInfo] = (),
        replication_factor: int = -1,
    ) -> Run:
        """Begin a run of an application: from now on no earlier one can write."""

    def end_run(self, run: Run) -> None:
        """Release what is open for a run that writes no more; the application can be started again at any time."""

    def run_number(self, application_id: str) -> int:
        """Return the number of an application's latest run; 0 when there was none."""

    def last_batch(self, application_id: str) -> tuple[str, int] | None:
        """Return the lineage of an application's latest run and the last batch it has written, -1 for none."""

    def positions(self, application_id: str) -> dict[str, dict[int, int]]:
        """Return the next offset to read, by topic and partition, as of the last batch that was written."""

    def forget_application(self, application_id: str) -> None:
        """Forget an application's runs, batches and positions; a process that still runs it can write no more."""
