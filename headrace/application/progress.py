"""Progress of an application: one line that is updated on a terminal, log lines elsewhere.

Tests: `tests/cli/test_terminal.py`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

_log = logging.getLogger("headrace")
_LOG_SECONDS = 5.0
_SHOW_SECONDS = 0.25


class Progress:
    """Shows the metrics of a running application."""

    def __init__(self, name: str, metrics: Callable[[], dict[str, Any]], *, show: bool | None) -> None:
        self._name, self._metrics = name, metrics
        self._show = sys.stderr.isatty() if show is None else show
        self._live: Live | None = None
        self._spinner = Spinner("dots", text=f"{name}: starting Spark")
        self._next = 0.0
        self._batches = -1.0

    def __enter__(self) -> Self:
        if self._show:
            self._live = Live(self._spinner, console=Console(stderr=True), transient=True, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        else:
            self._log_line()

    def update(self, state: str) -> None:
        """Show the current numbers, but no more often than people can read them."""
        now = time.monotonic()
        if now < self._next:
            return
        if self._live is not None:
            self._next = now + _SHOW_SECONDS
            values = self._metrics()
            self._spinner.update(
                text=f"{self._name}: {metrics_line(values)}" if values["batches_total"] else self._starting(state)
            )
        else:
            self._next = now + _LOG_SECONDS
            self._log_line()

    def _starting(self, state: str) -> str:
        return f"{self._name}: {state}, waiting for the first batch"

    def _log_line(self) -> None:
        values = self._metrics()
        if values["batches_total"] != self._batches:
            self._batches = values["batches_total"]
            _log.info("%s: %s", self._name, metrics_line(values))


def metrics_line(values: dict[str, Any]) -> str:
    """Format metrics as a line.

    >>> metrics_line({"records_in_total": 20000, "records_out_total": 9000, "records_per_second": 8123.4,
    ...               "batch_seconds": 0.42, "dropped_records_total": 0, "lag": {"lines": {0: 5, 1: 7}}})
    '20,000 records in, 9,000 out, 8,123/s, lag 12, batch 0.42 s'
    """
    lag = sum(behind for partitions in values["lag"].values() for behind in partitions.values())
    parts = [
        f"{values['records_in_total']:,.0f} records in",
        f"{values['records_out_total']:,.0f} out",
        f"{values['records_per_second']:,.0f}/s",
        f"lag {lag:,}",
        f"batch {values['batch_seconds']:.2f} s",
    ]
    if values["dropped_records_total"]:
        parts.insert(2, f"{values['dropped_records_total']:,.0f} dropped")
    return ", ".join(parts)
