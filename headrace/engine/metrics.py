"""Metrics: what an application did and how far behind it is, as a dict and for Prometheus."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headrace.engine.messages import Report

_RATE_SECONDS = 10.0
_HELP = {
    "records_in_total": "Records read from topics.",
    "records_out_total": "Records written to topics.",
    "dropped_records_total": "Records dropped: too late, without a key, or by a handler.",
    "batches_total": "Batches committed.",
    "records_per_second": "Records read per second, over the last seconds.",
    "state_bytes": "About how many bytes the stores hold.",
    "state_log_bytes": "How many bytes the state logs take in Spark's checkpoint.",
    "batch_seconds": "How long the last batch took.",
    "batch_source_seconds": "Of that, reading, over all workers.",
    "batch_process_seconds": "Of that, processing records, over all workers.",
    "batch_state_seconds": "Of that, restoring and keeping state, over all workers.",
    "batch_write_seconds": "Of that, writing the outputs, over all workers where they write.",
}


class Metrics:
    """Counts the batches of an application."""

    def __init__(self, application_id: str) -> None:
        self._application_id = application_id
        self._lock = threading.Lock()
        self._values = dict.fromkeys(_HELP, 0.0)
        self._positions: dict[str, dict[int, int]] = {}
        self._recent: deque[tuple[float, float]] = deque(maxlen=1000)
        self._state: dict[str, tuple[float, float]] = {}

    def add_batch(
        self,
        reports: Iterable[Report],
        positions: Mapping[str, Mapping[int, int]],
        stages_seconds: float,
        write_seconds: float,
        written: bool,
    ) -> None:
        """Add the reports of a batch. A skipped batch does not count."""
        sums: dict[str, float] = {}
        with self._lock:
            for report in reports:
                for name, number in report.numbers.items():
                    sums[name] = sums.get(name, 0.0) + number
                if "state_bytes" in report.numbers:
                    self._state[report.name] = report.numbers["state_bytes"], report.numbers["log_bytes"]
            for topic, ends in positions.items():
                self._positions.setdefault(topic, {}).update(ends)
            values = self._values
            if written:
                values["records_in_total"] += sums.get("records_read", 0)
                values["records_out_total"] += sums.get("records_written", 0)
                values["dropped_records_total"] += sums.get("dropped_records", 0)
                values["batches_total"] += 1
            values["state_bytes"] = sum(held for held, _ in self._state.values())
            values["state_log_bytes"] = sum(logged for _, logged in self._state.values())
            values["batch_seconds"] = stages_seconds + write_seconds
            values["batch_source_seconds"] = sums.get("source_seconds", 0)
            values["batch_process_seconds"] = sums.get("process_seconds", 0)
            values["batch_state_seconds"] = sums.get("state_seconds", 0)
            values["batch_write_seconds"] = write_seconds + sums.get("write_seconds", 0)
            self._recent.append((time.monotonic(), sums.get("records_read", 0) if written else 0))

    def batches(self) -> float:
        """Return how many batches this run has committed."""
        with self._lock:
            return self._values["batches_total"]

    def positions(self) -> dict[str, dict[int, int]]:
        """Return where the next batch begins to read, as far as this run knows."""
        with self._lock:
            return {topic: dict(ends) for topic, ends in self._positions.items()}

    def as_dict(self, ends: Mapping[str, Mapping[int, int]], start: Mapping[str, Mapping[int, int]]) -> dict[str, Any]:
        """Return all metrics, with the lag of each topic partition."""
        with self._lock:
            now = time.monotonic()
            while len(self._recent) > 2 and self._recent[1][0] < now - _RATE_SECONDS:
                self._recent.popleft()
            span = now - self._recent[0][0] if len(self._recent) > 1 else 0.0
            counted = sum(number for _, number in list(self._recent)[1:])
            rate = counted / span if span > 0 else 0.0
            known = {topic: {**start.get(topic, {}), **self._positions.get(topic, {})} for topic in ends}
            lag = {
                topic: {number: max(0, end - known[topic].get(number, 0)) for number, end in partitions.items()}
                for topic, partitions in ends.items()
            }
            return {**self._values, "records_per_second": rate, "lag": lag}

    def as_prometheus(
        self, ends: Mapping[str, Mapping[int, int]], start: Mapping[str, Mapping[int, int]], state: str
    ) -> str:
        """Return all metrics as text for Prometheus."""
        # Imported here: most applications are never asked for this, and it takes a moment.
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

        values, name = self.as_dict(ends, start), self._application_id

        class Collector:
            def collect(self) -> Iterator[Metric]:
                for what, said in _HELP.items():
                    kind = CounterMetricFamily if what.endswith("_total") else GaugeMetricFamily
                    family = kind(f"headrace_{what}", said, labels=["application_id"])
                    family.add_metric([name], values[what])
                    yield family
                lag = GaugeMetricFamily(
                    "headrace_lag", "Records not read.", labels=["application_id", "topic", "partition"]
                )
                for topic, partitions in values["lag"].items():
                    for number, behind in partitions.items():
                        lag.add_metric([name, topic, str(number)], behind)
                yield lag
                now = GaugeMetricFamily("headrace_state", "1 for the one it is in.", labels=["application_id", "state"])
                now.add_metric([name, state], 1)
                yield now

        registry = CollectorRegistry()
        registry.register(Collector())
        return generate_latest(registry).decode()
