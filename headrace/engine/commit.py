"""The commit: when all tasks of a batch have run, the driver ends the batch and says that it counts.

One transaction has the records that tasks have not written themselves, the positions at which the next batch begins,
and a marker with the batch's number. If a batch is tried again after a crash, its marker is there and it is skipped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from headrace.brokers.runs import Run
from headrace.engine.crash import crash_point
from headrace.engine.delivery import merged
from headrace.engine.messages import Failure, OutputRecords, Report, decode
from headrace.engine.metrics import Metrics
from headrace.engine.worker import Worker
from headrace.task.garbage_collection import collection_paused

_log = logging.getLogger(__name__)


class BatchCommitter:
    """Commits the batches of one run."""

    def __init__(self, worker: Worker, run: Run, metrics: Metrics) -> None:
        self._worker, self._run, self._metrics = worker, run, metrics

    def commit(self, messages: list[bytes], batch: int, stages_seconds: float) -> None:
        """Write a batch, given the messages for the driver. If a task has failed, raise its exception."""
        started = time.perf_counter()
        with collection_paused():  # until all objects of the batch are gone
            outputs, reports = _sorted_out(messages)
            messages.clear()
            positions = self._positions(reports)
            self._worker.create_topics({message.topic for message in outputs})
            crash_point("before-commit")
            written = self._worker.broker.write_batch(self._run, batch, merged(outputs), positions)
            crash_point("after-commit")
            records = float(sum(len(message.records) for message in outputs))
            reports.append(Report("driver", {"records_written": records}))
            del outputs
        write_seconds = time.perf_counter() - started
        self._metrics.add_batch(reports, positions, stages_seconds, write_seconds, written)
        crash_point("before-commit-log")

    def _positions(self, reports: Iterable[Report]) -> dict[str, dict[int, int]]:
        """Return where the next batch begins, and log what the user should know."""
        positions: dict[str, dict[int, int]] = {}
        for report in reports:
            for note in report.notes:
                _log.warning("%s: %s", self._run.application_id, note)
            for topic, ends in report.positions.items():
                positions.setdefault(topic, {}).update(ends)
        return positions


def _sorted_out(messages: Iterable[bytes]) -> tuple[list[OutputRecords], list[Report]]:
    outputs, reports = [], []
    for data in messages:
        message = decode(data)
        if isinstance(message, Failure):
            raise message.error()
        if isinstance(message, OutputRecords):
            outputs.append(message)
        elif isinstance(message, Report):
            reports.append(message)
    return outputs, reports
