"""Records per second through the engine on Spark, compared with a script that does the same work.

    python -m benchmarks.engine [--records N] [--partitions N] [--rounds N] [W1 W2 ...]
    python -m benchmarks.engine --overhead        a batch of 100 records with one stateful stage, and with no stage
    python -m benchmarks.engine --state           Spark's state after 100 batches, and the time of a small batch
    python -m benchmarks.engine --start           a process, with and without Spark's classes in a file

The script is one Python process that reads the same records from the same log, works on a dict and writes the same
output, without an engine and without a guarantee. The engine is warm, runs exactly once and writes its outputs. The
time runs from the moment the records are there to the moment the last batch is committed.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.workloads import START, WINDOW, WORKLOADS, Produced, Workload, make_records
from headrace import Streams, StreamsConfig, Topology
from headrace.brokers import Broker, connect

WARM_UP = 20_000


def lag(app: Streams) -> int:
    """Return how many records are not processed yet."""
    return sum(behind for partitions in app.metrics()["lag"].values() for behind in partitions.values())


def wait_until_caught_up(app: Streams) -> None:
    """Wait until everything is committed."""
    while lag(app):
        if not app.state.is_running():
            raise RuntimeError(f"the application is {app.state.value}") from app.error
        time.sleep(0.01)


@contextmanager
def application(topology: Topology, folder: Path, prepare: Callable[[Broker], None], partitions: int, **settings: Any):  # type: ignore[no-untyped-def]
    """Start an application over an empty log. Yield the application and its broker."""
    address = f"local:{folder}/topics.db"
    config = StreamsConfig(
        **{"application_id": "bench", "bootstrap_servers": address, "state_dir": str(folder / "state"), **settings}
    )
    with connect(address) as broker:
        for topic in ("in", "out"):
            broker.create_topic(topic, partitions)
        prepare(broker)
        with Streams(topology, config) as app:
            app.start()
            yield app, broker
            app.close()


def engine_seconds(work: Workload, records: list[Produced], partitions: int, folder: Path) -> tuple[float, float, Any]:
    """Return the time for all records, the time to the first output, and the metrics."""
    warm_up = [(key, value, START - 20_000_000 + number) for number, (key, value, _) in enumerate(records[:WARM_UP])]
    started = time.perf_counter()
    with application(work.build(), folder, work.prepare, partitions) as (app, broker):
        broker.produce("in", warm_up[: WARM_UP // 2])
        wait_until_caught_up(app)
        first = time.perf_counter() - started
        broker.produce("in", warm_up[WARM_UP // 2 :])
        wait_until_caught_up(app)
        broker.produce("in", records)
        before = app.metrics()
        began = time.perf_counter()
        wait_until_caught_up(app)
        took = time.perf_counter() - began
        metrics = app.metrics()
        metrics["records_out_total"] -= before["records_out_total"]
        if work.name == "W4":
            check_windows(records, broker, metrics)
    return took, first, metrics


def check_windows(records: list[Produced], broker: Broker, metrics: Any) -> None:
    """Check that every window counts all of its records."""
    import msgspec

    expected: dict[tuple[bytes, int], int] = {}
    for _, value, timestamp in records:
        place = (msgspec.json.decode(value)["symbol"].encode(), timestamp // WINDOW * WINDOW)
        expected[place] = expected.get(place, 0) + 1
    found: dict[tuple[bytes, int], int] = {}
    for record in broker.records("out"):
        assert record.key is not None
        start = int.from_bytes(record.key[-8:], "big")
        if start >= START - WINDOW:
            found[record.key[:-8], start] = msgspec.json.decode(record.value or b"")[0]
    wrong = sum(found.get(place) != number for place, number in expected.items())
    metrics["windows"] = f"{len(expected) - wrong} of {len(expected)} windows exact"


def script_seconds(work: Workload, records: list[Produced], partitions: int, folder: Path) -> float:
    """Return how long the script takes."""
    with connect(f"local:{folder}/script.db") as broker:
        for topic in ("in", "out"):
            broker.create_topic(topic, partitions)
        broker.produce("in", records)

        def write(out: list[Produced]) -> None:
            broker.produce("out", out)

        began = time.perf_counter()
        work.script(broker.records("in"), write)
        return time.perf_counter() - began


def compare(work: Workload, count: int, partitions: int, rounds: int) -> None:
    """Print the rates of both, best of the rounds."""
    records = make_records(count, work.keys)
    engine, script, firsts = [], [], []
    metrics: Any = {}
    for _ in range(rounds):
        folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
        try:
            script.append(script_seconds(work, records, partitions, folder))
            took, first, metrics = engine_seconds(work, records, partitions, folder)
            engine.append(took)
            firsts.append(first)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    ratio = min(script) / min(engine)
    print(
        f"{work.name} {work.title}: engine {count / min(engine):,.0f}/s, script {count / min(script):,.0f}/s, "
        f"ratio {ratio:.2f} (goal {work.goal}), first output after {min(firsts):.1f} s, "
        f"{metrics['records_out_total']:,.0f} records out, {metrics['dropped_records_total']:.0f} dropped"
        + (f", {metrics['windows']}" if "windows" in metrics else ""),
        flush=True,
    )
    split = ", ".join(
        f"{name} {metrics[f'batch_{name}_seconds']:.2f}" for name in ("source", "process", "state", "write")
    )
    print(f"   last batch {metrics['batch_seconds']:.2f} s; over all workers: {split}", flush=True)


def overhead(batches: int = 30) -> None:
    """Compare small batches with one stateful stage to the same batches with no stage at all."""
    with_stage = _small_batches(WORKLOADS["W2"].build(), batches)
    without = _bare_batches(batches)
    print(
        f"a batch of 100 records: {with_stage * 1000:.0f} ms with a stateful stage, {without * 1000:.0f} ms with none, "
        f"ratio {with_stage / without:.2f} (goal at most 3)"
    )


def _small_batches(topology: Topology, batches: int) -> float:
    records = make_records(100, 5_000)
    folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
    took = []
    try:
        with application(topology, folder, lambda broker: None, 1, commit_interval_ms=1) as (app, broker):
            for _ in range(batches + 10):
                broker.produce("in", records)
                began = time.perf_counter()
                wait_until_caught_up(app)
                took.append(time.perf_counter() - began)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return statistics.median(took[10:])


def _bare_batches(batches: int) -> float:
    """Measure the source and an empty `foreachBatch`: the time that Spark itself needs."""
    from headrace.brokers.connecting import shared_broker
    from headrace.engine.batches import ReadPlan
    from headrace.spark.runtime.session import spark_session
    from headrace.spark.source import OPTION, SourceSettings, TopicsSource

    folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
    address = f"local:{folder}/topics.db"
    config = StreamsConfig(application_id="bare", bootstrap_servers=address, state_dir=str(folder))
    broker, session = shared_broker(address), spark_session(config)
    broker.create_topic("in", 1)
    records, took, done = make_records(100, 5_000), [], [0]

    def take(rows: Any, batch: int) -> None:
        rows.toArrow()
        done[0] = batch + 1

    session.dataSource.register(TopicsSource)
    plan = ReadPlan(
        tasks={"in": [[0]]},
        resets={"in": "earliest"},
        limit=500_000,
        ticking=[],
        tick_ms=0,
        goes_on_after_loss=False,
    )
    settings = SourceSettings(address, pickle.dumps({}), plan, [], str(folder / "stop"), 2)
    query = (
        session.readStream.format("headrace")
        .option(OPTION, settings.dumps())
        .load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 milliseconds")
        .start()
    )
    try:
        for number in range(1, batches + 11):
            broker.produce("in", records)
            began = time.perf_counter()
            while done[0] < number:
                time.sleep(0.01)
            took.append(time.perf_counter() - began)
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return statistics.median(took[10:])


def state(keys: int = 1_000_000, batches: int = 100, touched: int = 1_000) -> None:
    """Fill a store, then touch a few keys per batch. Print the size of Spark's state, and the time of such a batch."""
    medians = {}
    for size in (keys // 100, keys):
        folder = Path(tempfile.mkdtemp(prefix="headrace-bench-"))
        try:
            with application(WORKLOADS["W2"].build(), folder, lambda broker: None, 1, commit_interval_ms=1) as (
                app,
                broker,
            ):
                for first in range(0, size, 250_000):
                    broker.produce(
                        "in", [(b"k%07d" % key, b"1", START) for key in range(first, min(first + 250_000, size))]
                    )
                    wait_until_caught_up(app)
                took = []
                for number in range(batches):
                    keys_now = [(number * 7919 + step * (size // touched)) % size for step in range(touched)]
                    broker.produce("in", [(b"k%07d" % key, b"1", START + number) for key in keys_now])
                    began = time.perf_counter()
                    wait_until_caught_up(app)
                    took.append(time.perf_counter() - began)
                medians[size] = statistics.median(took)
                live = size * (8 + 8 + 8)
                held = int(app.metrics()["state_log_bytes"])
                print(
                    f"{size:,} keys: {held:,} bytes in Spark's state, {held / live:.1f} times the {live:,} live ones "
                    f"(goal at most 4); a batch of {touched:,} keys {medians[size] * 1000:.0f} ms"
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    small, large = medians[keys // 100], medians[keys]
    print(f"{keys:,} keys instead of {keys // 100:,}: a batch takes {large / small:.2f} times as long")


def start(rounds: int = 3) -> None:
    """Print how long a demo takes with the file of `headrace dev classes` and without it, in turn."""
    # Headrace does not use its file if an option contains "Archive".
    seconds: dict[str, list[float]] = {"-Dwith=file": [], "-Dwithout=Archive": []}
    with tempfile.TemporaryDirectory() as folder:
        for options in [*seconds] * rounds:
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "headrace", "demo", "word_count", "--records", "2000"],
                cwd=folder,
                env={**os.environ, "HEADRACE_SPARK": json.dumps({"spark.driver.extraJavaOptions": options})},
                stdout=subprocess.DEVNULL,
                check=True,
            )
            seconds[options].append(time.perf_counter() - began)
    quick, usual = map(statistics.median, seconds.values())
    print(f"a demo takes {quick:.1f} s with the file, {usual:.1f} s without: ratio {quick / usual:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", nargs="*", default=list(WORKLOADS), help="W1 to W5; all if none is named")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--state", action="store_true")
    parser.add_argument("--start", action="store_true")
    given = parser.parse_args()
    if given.overhead:
        overhead()
    elif given.state:
        state()
    elif given.start:
        start()
    else:
        for name in given.work:
            compare(WORKLOADS[name], given.records, given.partitions, given.rounds)


if __name__ == "__main__":
    main()
