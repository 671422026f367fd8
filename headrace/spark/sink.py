"""The sink: it lets Spark run the stages of a batch, and gives the messages for the driver to the commit.

Tests: `tests/application/test_streams.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headrace.engine.commit import BatchCommitter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sink:
    """Takes the batches of one run: Spark's `foreachBatch`."""

    def __init__(self, committer: BatchCommitter) -> None:
        self._committer = committer
        self.failure: BaseException | None = None
        """The error that ended the run, as the worker raised it."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Run the stages and commit the batch."""
        try:
            started = time.perf_counter()
            messages = rows.toArrow().column("block").to_pylist()
            self._committer.commit(messages, batch, time.perf_counter() - started)
        except BaseException as error:
            if self.failure is None and not _is_of_spark(error):
                self.failure = error
            raise


def _is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
