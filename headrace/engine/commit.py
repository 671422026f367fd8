"""The writer: what the stages of a batch put out goes to the broker, once.

The records that tasks have not written themselves, where the next batch begins to read, and a marker with the batch's
number are one transaction. A batch that Spark runs again after a crash finds its marker and is skipped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from headrace.brokers.runs import Run
from headrace.brokers.writing import PartitionRecords
from headrace.engine.application import Application
from headrace.engine.crash import crash_point
from headrace.engine.messages import Failure, Output, Report, causes_of, decode, lane_order, unpack_failure
from headrace.engine.metrics import Metrics
from headrace.task.garbage_collection import collection_paused
from headrace.task.lanes import merge_order, taken_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_log = logging.getLogger(__name__)


class Writer:
    """Writes the batches of one run."""

    def __init__(self, application: Application, run: Run, metrics: Metrics) -> None:
        self._application, self._run, self._metrics = application, run, metrics
        self.failure: BaseException | None = None
        """What ended the run, as the worker raised it."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Run the stages and write what comes out: the one action of a batch."""
        try:
            self._write(rows, batch)
        except BaseException as error:
            if self.failure is None and not _is_of_spark(error):
                self.failure = error
            raise

    def _write(self, rows: DataFrame, batch: int) -> None:
        started = time.perf_counter()
        blocks = rows.toArrow().column("block").to_pylist()
        ran = time.perf_counter()
        with collection_paused():  # until all that the batch has made is gone again
            reports, positions, written = self._commit(blocks, batch)
        self._metrics.add_batch(reports, positions, ran - started, time.perf_counter() - ran, written)
        crash_point("before-commit-log")

    def _commit(self, blocks: list[bytes], batch: int) -> tuple[list[Report], dict[str, dict[int, int]], bool]:
        """Write a batch; return what was said, where the next one begins, and whether it was not written before."""
        outputs, reports = self._sort_out(blocks)
        blocks.clear()
        positions: dict[str, dict[int, int]] = {}
        for report in reports:
            for note in report.notes:
                _log.warning("%s: %s", self._run.application_id, note)
            for topic, ends in report.positions.items():
                positions.setdefault(topic, {}).update(ends)
        self._application.make_named_topics({block.topic for block in outputs})
        crash_point("before-commit")
        written = self._application.broker.write_batch(self._run, batch, in_order(outputs), positions)
        crash_point("after-commit")
        reports.append(Report("writer", {"records_written": float(sum(len(block.records) for block in outputs))}))
        return reports, positions, written

    def _sort_out(self, blocks: Iterable[bytes]) -> tuple[list[Output], list[Report]]:
        outputs, reports = [], []
        for data in blocks:
            block = decode(data)
            if isinstance(block, Failure):
                self.failure = unpack_failure(block)
                raise self.failure
            if isinstance(block, Output):
                outputs.append(block)
            elif isinstance(block, Report):
                reports.append(block)
        return outputs, reports


def in_order(outputs: list[Output]) -> Iterator[PartitionRecords]:
    """Walk what a batch has for each topic partition, in the order of the causes."""
    places: dict[tuple[str, int], list[Output]] = {}
    for block in sorted(outputs, key=lane_order):
        places.setdefault((block.topic, block.partition), []).append(block)
    for (topic, partition), blocks in sorted(places.items()):
        records = [record for block in blocks for record in block.records]
        yield topic, None if partition < 0 else partition, taken_in(merge_order(causes_of(blocks)), records)


def _is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
