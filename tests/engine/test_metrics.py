"""What metrics count, as a dict and for Prometheus."""

from __future__ import annotations

from headrace.engine.messages import Report
from headrace.engine.metrics import Metrics


def batch_of(metrics: Metrics, *, written: bool = True) -> None:
    reports = [
        Report("task 0_0", {"records_read": 5, "dropped_records": 1, "state_bytes": 100, "log_bytes": 200}),
        Report("task 0_1", {"records_read": 3, "state_bytes": 10, "log_bytes": 20}),
        Report("driver", {"records_written": 4}),
    ]
    metrics.add_batch(reports, {"in": {0: 8}}, 0.5, 0.25, written)


def test_batches_add_up_and_state_does_not() -> None:
    metrics = Metrics("app")

    batch_of(metrics)
    batch_of(metrics)

    values = metrics.as_dict({"in": {0: 10, 1: 2}}, {})
    assert (values["records_in_total"], values["records_out_total"], values["dropped_records_total"]) == (16, 8, 2)
    assert (values["batches_total"], values["batch_seconds"]) == (2, 0.75)
    assert (values["state_bytes"], values["state_log_bytes"]) == (110, 220)
    assert values["lag"] == {"in": {0: 2, 1: 2}}


def test_a_batch_that_was_skipped_counts_for_nothing() -> None:
    metrics = Metrics("app")

    batch_of(metrics, written=False)

    assert (metrics.batches(), metrics.as_dict({}, {})["records_in_total"]) == (0, 0)
    assert metrics.positions() == {"in": {0: 8}}


def test_lag_counts_from_the_beginning_until_a_batch_is_done() -> None:
    assert Metrics("app").as_dict({"in": {0: 10}}, {"in": {0: 4}})["lag"] == {"in": {0: 6}}


def test_prometheus_reads_counters_lag_and_state() -> None:
    metrics = Metrics("app")
    batch_of(metrics)

    lines = metrics.as_prometheus({"in": {0: 10}}, {}, "running").splitlines()

    assert 'headrace_records_in_total{application_id="app"} 8.0' in lines
    assert 'headrace_lag{application_id="app",partition="0",topic="in"} 2.0' in lines
    assert 'headrace_state{application_id="app",state="running"} 1.0' in lines
