"""Measure one peer and one work: the time, the memory, whether the results are right, and the latency."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition

from benchmarks.side_by_side.catalogue import PARTITIONS, Peer, Work
from benchmarks.side_by_side.processes import PeerError, Processes
from benchmarks.side_by_side.results import Output, Results, judged, wanted_results
from benchmarks.side_by_side.topics import Ends, Tap, Topics
from benchmarks.workloads import START, Produced

FIRST, WARM_UP = 20_000, 100_000
RATE, LATENCY_SECONDS, LATENCY_LEAD_SECONDS = 200, 30, 5

_LOOK_SECONDS = 0.02
_START_SECONDS = 240
_QUIET_SECONDS, _GIVE_UP_SECONDS = 3.0, 30.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a peer's run. It is JSON in the file of results."""

    peer: str
    work: str
    records: int = 0
    seconds: float = 0.0
    first_output_seconds: float = 0.0
    peak_bytes: int = 0
    records_out: int = 0
    right: int = 0
    wanted: int = 0
    lost_records: int | None = None
    """How many records are in no window's count, for W4."""
    median_ms: float | None = None
    p99_ms: float | None = None
    failed: str | None = None

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds if self.seconds else 0.0


class Bench:
    """The broker, and a folder for the state of the peers."""

    def __init__(self, topics: Topics, folder: Path, limit: float) -> None:
        self.topics = topics
        self._folder = folder
        self._limit = limit
        self._wanted: dict[tuple[str, int], Results] = {}

    def measure_rate(self, peer: Peer, work: Work, records: Sequence[Produced]) -> Outcome:
        """Send the records through a warm peer."""
        warm_up = earlier(records)
        wanted = self._results(work, warm_up, records)  # before the time runs, because it uses a core for seconds
        with self._running(peer, work) as run:
            first_output = run.warm_up(warm_up)
            run.tap.fill(run.source, records)
            began = run.tap.open()
            ended = run.wait(wanted, self._limit)
            windows = judged(work.base, wanted)
            return Outcome(
                peer.name,
                work.name,
                records=len(records),
                seconds=ended - began,
                first_output_seconds=first_output,
                peak_bytes=run.processes.peak_bytes,
                records_out=run.output.records,
                right=run.output.right(windows),
                wanted=len(windows),
                lost_records=_lost(windows, run.output.results) if work.base == "W4" else None,
            )

    def measure_latency(self, peer: Peer, work: Work, records: Sequence[Produced]) -> Outcome:
        """Send records one by one to a warm peer, and note when the count that includes each record can be read."""
        warm_up = earlier(records)
        with self._running(peer, work) as run:
            first_output = run.warm_up(warm_up)
            took = _Latency(self.topics, run, wanted_results(work.base, warm_up)).measure()
            return Outcome(
                peer.name,
                "latency",
                records=len(took),
                first_output_seconds=first_output,
                peak_bytes=run.processes.peak_bytes,
                median_ms=statistics.median(took) * 1000,
                p99_ms=statistics.quantiles(took, n=100)[98] * 1000,
            )

    @contextmanager
    def _running(self, peer: Peer, work: Work):  # type: ignore[no-untyped-def]
        name = f"{peer.name}-{work.name}-{time.time_ns() // 1_000_000}".lower()
        folder = self._folder / name
        folder.mkdir(parents=True)
        source, sink = f"{name}-in", f"{name}-out"
        for topic in (source, sink):
            self.topics.create(topic, PARTITIONS)
        tap = Tap(self.topics)
        commands, variables = peer.commands(work, self.topics.address, source, sink, name, folder)
        try:
            with Processes(commands, variables, folder / "peer.log") as processes:
                yield _Run(self.topics, processes, tap, Output(work.base), work.base, source, sink)
        finally:
            self.topics.delete(name)

    def _results(self, work: Work, warm_up: Sequence[Produced], records: Sequence[Produced]) -> Results:
        place = work.base, len(records)
        if place not in self._wanted:
            self._wanted = {place: wanted_results(work.base, [*warm_up, *records])}  # large: only the last one is kept
        return self._wanted[place]


class _Run:
    """A running peer, its topics, and its output so far."""

    def __init__(
        self, topics: Topics, processes: Processes, tap: Tap, output: Output, work: str, source: str, sink: str
    ) -> None:
        self.processes = processes
        self.tap = tap
        self.output = output
        self.source = source
        self.sink = sink
        self._topics = topics
        self._work = work
        self._read: Ends = (0,) * PARTITIONS

    def warm_up(self, records: Sequence[Produced]) -> float:
        """Let the peer work until it is warm. Return the time from its start to its first output."""
        first = records[:FIRST]
        self.tap.fill(self.source, first)
        self.tap.open()
        while not any(self.ends()):
            self.processes.check()
            if time.perf_counter() - self.processes.started > _START_SECONDS:
                raise PeerError(f"the peer had no output within {_START_SECONDS} s: {self.processes.last_words()}")
            time.sleep(_LOOK_SECONDS)
        first_output = time.perf_counter() - self.processes.started
        self.wait(wanted_results(self._work, first), _START_SECONDS)
        if len(records) > FIRST:
            self.tap.fill(self.source, records[FIRST:])
            self.tap.open()
            self.wait(wanted_results(self._work, records), _START_SECONDS)
        return first_output

    def wait(self, wanted: Results, limit: float) -> float:
        """Wait until the peer has output all results. Return the time at which the last one could be read.

        Reading the output takes time that the peer needs. So look only at its end offsets, until they have not changed
        for longer than ever before. A peer without any output yet has time until the limit.
        """
        began = grown = time.perf_counter()
        longest = 0.0
        before, ends = self._read, self.ends()
        while True:
            self.processes.check()
            now, found = time.perf_counter(), self.ends()
            if found != ends:
                longest = max(longest, now - grown)
                ends, grown = found, now
            elif now - grown > max(_QUIET_SECONDS, 2 * longest):
                self.read(ends)
                gives_up = ends != before and now - grown > max(_GIVE_UP_SECONDS, 3 * longest)
                if self.output.results == wanted or gives_up:
                    return grown
            if now - began > limit:
                raise PeerError(f"the peer did not finish within {limit:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def ends(self) -> Ends:
        """Return the end offsets of the output."""
        return self._topics.ends(self.sink, PARTITIONS)

    def read(self, ends: Ends) -> None:
        """Read the output up to these offsets."""
        if ends != self._read:
            self.output.take(self._topics.records(self.sink, self._read, ends))
            self._read = ends


class _Latency:
    """Sends records of W2 at a steady rate, and notes when the counts that include them can be read."""

    def __init__(self, topics: Topics, run: _Run, counts: Results) -> None:
        self._topics = topics
        self._run = run
        self._counts = defaultdict(int, counts)
        self._waiting: dict[bytes, deque[tuple[int, float]]] = defaultdict(deque)
        self._pending = 0
        self._took: list[tuple[float, float]] = []
        self._done = threading.Event()

    def measure(self) -> list[float]:
        """Return how many seconds each record took."""
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        began = time.perf_counter()
        self._send(began)
        end = time.perf_counter() + _GIVE_UP_SECONDS
        while self._pending > len(self._took):
            self._run.processes.check()
            if time.perf_counter() > end:
                raise PeerError(f"{self._pending - len(self._took)} of {self._pending} records were in no count")
            time.sleep(_LOOK_SECONDS)
        self._done.set()
        reader.join()
        return [took for sent, took in self._took if sent - began > LATENCY_LEAD_SECONDS]

    def _send(self, began: float) -> None:
        producer = self._topics.producer(**{"linger.ms": 0, "acks": "all"})
        rng = random.Random(11)
        for number in range(RATE * (LATENCY_LEAD_SECONDS + LATENCY_SECONDS)):
            due = began + number / RATE
            producer.poll(max(0.0, due - time.perf_counter()))
            while time.perf_counter() < due:
                time.sleep(0.0005)
            key = b"k%07d" % rng.randrange(5_000)
            self._counts[key] += 1
            self._pending += 1
            self._waiting[key].append((self._counts[key], time.perf_counter()))
            producer.produce(self._run.source, b'{"user":"u1","symbol":"S01","price":1.5,"size":1}', key)
        producer.flush()

    def _read(self) -> None:
        consumer = self._topics.consumer(**{"fetch.wait.max.ms": 10})
        ends = self._run.ends()
        consumer.assign([TopicPartition(self._run.sink, partition, end) for partition, end in enumerate(ends)])
        try:
            while not self._done.is_set():
                for message in consumer.consume(1_000, 0.005):
                    if message.error() is not None:
                        continue
                    now = time.perf_counter()
                    waiting, count = self._waiting[message.key()], int.from_bytes(message.value(), "big")
                    while waiting and waiting[0][0] <= count:
                        sent = waiting.popleft()[1]
                        self._took.append((sent, now - sent))
        finally:
            consumer.close()


def earlier(records: Sequence[Produced]) -> list[Produced]:
    """Return records to warm up with: the first ones, hours earlier."""
    return [(key, value, START - 20_000_000 + number) for number, (key, value, _) in enumerate(records[:WARM_UP])]


def _lost(wanted: Results, found: Results) -> int:
    nothing: list[Any] = [0]
    return sum(result[0] - found.get(key, nothing)[0] for key, result in wanted.items())
