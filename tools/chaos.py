"""Kill an application over and over, and check that its output is that of an undisturbed one.

    python -m tools.chaos --rounds 10 --seed 7        (or: make chaos ROUNDS=10 SEED=7)
    python -m tools.chaos --broker kafka              (or: make chaos BROKER=kafka)

A round generates records for one of four topologies and runs the topology in its own process, which is killed with
kill -9: at the points named in headrace/engine/crash.py, alone or with the worker that gets there, or at a random
moment. It is started again until it finishes. Then its output is compared, key by key, with the test driver's output
for the same records: nothing may be lost, doubled or out of order.

On Kafka the broker is killed too, and stays away for a while, or it freezes. The application may also freeze for longer
than its transactions may take. Another one is then started as if on another machine, and the first one wakes up. In the
end no transaction may be open.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from headrace import (
    JoinWindows,
    Streams,
    StreamsBuilder,
    StreamsConfig,
    StreamThreadExceptionResponse,
    Topology,
    TumblingWindows,
    serdes,
)
from headrace.brokers import Broker, connect
from headrace.brokers.engine import EngineBroker
from headrace.dev.kafka_broker import DevBroker, free_port
from headrace.engine.crash import POINTS, POINTS_WHERE_TASKS_WRITE
from headrace.errors import SupersededError, UnavailableError
from headrace.partitioning import partition_of
from headrace.testing import TopologyTestDriver

PARTITIONS = 2
TRANSACTION_MS = 10_000
QUICK_BROKER = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "1000"}
"""Settings with which a killed broker comes back soon: the controller gives it up quickly."""
_FORGOTTEN = b"Couldn't find leader endpoint for partitions"
"""The log line of a broker that thinks the partitions are deleted, and never ends their transaction."""
NO_BROKER, SUPERSEDED = 75, 76
"""The statuses of an application that must be started again, and of one that must not; any other is a fault."""
IN_WORKERS = ("after-read", "mid-task", "after-state-write")
Results = dict[bytes | None, list[tuple[bytes | None, int]]]
"""The values and timestamps by key, in order."""
Made = tuple[str, bytes, bytes, int]


def mapped() -> Topology:
    """Split values, without any store."""
    builder = StreamsBuilder()
    builder.stream("left", value_serde=serdes.String).flat_map_values(lambda text: text.split("-")).to("out")
    return builder.build()


def windowed() -> Topology:
    """Count per key in windows of 50 ms."""
    builder = StreamsBuilder()
    counts = builder.stream("left", value_serde=serdes.String).group_by_key().windowed_by(TumblingWindows(50, 10_000))
    counts.count(store="counts").to_stream().to(
        "out", key_serde=serdes.Windowed(serdes.String, 50), value_serde=serdes.Long
    )
    return builder.build()


def joined() -> Topology:
    """Join two streams within 20 ms, and the result with a table."""
    builder = StreamsBuilder()
    left, right = (builder.stream(topic, value_serde=serdes.String) for topic in ("left", "right"))
    pairs = left.join(right, lambda one, other: f"{one}+{other}", window=JoinWindows(20, grace=10_000))
    table = builder.table("rows", value_serde=serdes.String)
    pairs.left_join(table, lambda pair, row: f"{pair}/{row}").to("out", value_serde=serdes.String)
    return builder.build()


def two_levels() -> Topology:
    """Count words, then add up the counts by first letter."""
    builder = StreamsBuilder()
    words = builder.stream("left", value_serde=serdes.String).flat_map_values(lambda text: text.split("-"))
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="words")
    by_first = counts.group_by(lambda word, count: (word[:1], count), value_serde=serdes.Long)
    sums = by_first.reduce(lambda total, count: total + count, lambda total, count: total - count, store="sums")
    counts.to_stream().to("words", value_serde=serdes.Long)
    sums.to_stream().to("out", value_serde=serdes.Long)
    return builder.build()


TOPOLOGIES: dict[str, Callable[[], Topology]] = {
    "windowed": windowed,
    "joined": joined,
    "two-levels": two_levels,
    "mapped": mapped,
}
INPUTS = {"windowed": ["left"], "joined": ["left", "right", "rows"], "two-levels": ["left"], "mapped": ["left"]}
OUTPUTS = {"windowed": ["out"], "joined": ["out"], "two-levels": ["out", "words"], "mapped": ["out"]}


@dataclass
class Round:
    """One application, from its first record to its last."""

    name: str
    folder: Path
    rng: random.Random
    records: int
    kafka: DevBroker | None = None

    @property
    def address(self) -> str:
        return f"local:{self.folder}/topics.db" if self.kafka is None else self.kafka.address

    def run(self, points: Sequence[str] = ()) -> tuple[Counter[str], list[str]]:
        """Return the kills by kind, and the errors in its output.

        With `points` it is killed at each of these in turn, otherwise at random ones.
        """
        made = self._prepare()
        kills: Counter[str] = Counter()
        for point in points:
            self._start_and_kill(kills, point, first=True)
        while not self._start_and_kill(kills, "" if points else self._choose(kills)):
            pass
        return kills, self._problems(made)

    def run_undisturbed(self, environment: dict[str, str]) -> list[str]:
        """Run it once, with this environment, and return the errors in its output."""
        made = self._prepare()
        process = self._popen(environment)
        try:
            status = process.wait(300)
        finally:
            end_with_rest(process)
        return self._problems(made) if status == 0 else [f"it ended with status {status}"]

    def _prepare(self) -> list[Made]:
        made = list(self._make())
        with connect(self.address) as broker:
            for topic in [*INPUTS[self.name], *OUTPUTS[self.name]]:
                broker.create_topic(topic, PARTITIONS)
            for topic in INPUTS[self.name]:
                broker.produce(topic, [(key, value, time) for where, key, value, time in made if where == topic])
        return made

    def _problems(self, made: list[Made]) -> list[str]:
        with connect(self.address) as broker:
            left_open = [] if self.kafka is None else open_transactions(broker)
            found = {topic: read(broker, topic) for topic in OUTPUTS[self.name]}
        return [*left_open, *differences(expected(self.name, made), found)]

    def _popen(self, environment: dict[str, str], *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tools.chaos", "--child", self.name, str(self.folder), self.address, *options]
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def _make(self) -> Iterator[Made]:
        for number in range(self.records):
            topic = self.rng.choice(INPUTS[self.name])
            text = "-".join(self.rng.choice(("ab", "ac", "bc", "c")) for _ in range(self.rng.randrange(1, 4)))
            value = f"{number}-{text}" if self.name != "two-levels" else text
            yield topic, b"k%d" % self.rng.randrange(20), value.encode(), 1000 + number * 3

    def _choose(self, kills: Counter[str]) -> str:
        """Return the point at which to kill it next; none after eight kills, because it must finish."""
        on_kafka = ["broker", "broker", "frozen broker", "zombie", *POINTS_WHERE_TASKS_WRITE]
        chosen = [*POINTS, "any moment", *(on_kafka if self.kafka is not None else [])]
        return "" if sum(kills.values()) >= 8 else self.rng.choice(chosen)

    def _start_and_kill(self, kills: Counter[str], point: str, *, first: bool = False) -> bool:
        """Run the application until it finishes or dies; tell whether it finished.

        With `first` it dies as a whole when it gets to the point for the first time, otherwise at some later time.
        """
        alone = not first and point in (*IN_WORKERS, *POINTS_WHERE_TASKS_WRITE) and self.rng.random() < 0.5
        counter = self.folder / f"passed-{sum(kills.values())}"
        environment = dict(os.environ)
        # A worker that dies alone does not end the application: it can be killed several times.
        times = sorted(self.rng.sample(range(1, 30), 4)) if alone else [1 if first else self.rng.randrange(1, 9)]
        if point in (*POINTS, *POINTS_WHERE_TASKS_WRITE):
            environment["HEADRACE_CRASH"] = f"{point}@{','.join(map(str, times))}:{counter}"
        process = self._popen(environment, *([] if alone else ["--take-along"]))
        if point == "zombie":
            kills[point] += 1
            return self._zombie(process, first)
        if point in ("broker", "frozen broker"):
            return self._without_broker(process, point, kills, first)
        try:
            if point == "any moment":
                try:
                    process.wait(self.rng.uniform(4, 16))
                except subprocess.TimeoutExpired:
                    process.kill()
            status = process.wait(300)
        finally:
            end_with_rest(process)
        if alone and "HEADRACE_CRASH" in environment and counter.exists():
            kills[f"{point}, worker only"] += sum(number <= counter.stat().st_size for number in times)
        if status == -signal.SIGKILL:
            kills[point] += 1
            return False
        return self._ended(status)

    def _wait_a_while(self, process: subprocess.Popen[bytes], first: bool) -> None:
        """Let the application run until its first batch is done, or for some seconds."""
        done = self.folder / "state" / "chaos" / "checkpoint" / "commits"
        before = set(done.glob("[0-9]*"))
        until = time.monotonic() + (300 if first else self.rng.uniform(6, 14))
        while process.poll() is None and time.monotonic() < until:
            if first and set(done.glob("[0-9]*")) - before:
                return
            time.sleep(0.02)

    def _without_broker(self, process: subprocess.Popen[bytes], point: str, kills: Counter[str], first: bool) -> bool:
        """Take the broker away for a while, several times; the application must continue by itself."""
        assert self.kafka is not None
        try:
            for _ in range(self.rng.randrange(1, 4)):
                self._wait_a_while(process, first)
                if process.poll() is not None:
                    break
                kills[point] += 1
                away = self.rng.uniform(0.5, 12)
                pid = self.kafka.pid
                if point == "broker" or pid is None:
                    self.kafka.kill()
                    logged = self.kafka.log_file.stat().st_size
                    time.sleep(away)
                    self.kafka.start()
                    if _FORGOTTEN in self.kafka.log_file.read_bytes()[logged:]:
                        raise BrokerForgotError
                else:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(away)
                    os.kill(pid, signal.SIGCONT)
            status = process.wait(300)
            # An application that was just starting reports that there is no broker, and must be started again.
            return False if status == NO_BROKER else self._ended(status)
        finally:
            end_with_rest(process)

    def _zombie(self, process: subprocess.Popen[bytes], first: bool) -> bool:
        """Freeze the application, start another one, and wake the first while the other runs or after its end."""
        other: subprocess.Popen[bytes] | None = None
        try:
            self._wait_a_while(process, first)
            if process.poll() is not None:
                return self._ended(process.returncode)
            os.killpg(process.pid, signal.SIGSTOP)
            time.sleep(TRANSACTION_MS / 1000 + 1)
            # As on another machine, which has neither the lock of the first one nor its images.
            (self.folder / "state" / "chaos" / "lock").unlink(missing_ok=True)
            other = self._popen({**os.environ, "HEADRACE_BOOT_ID": "another-machine"})
            with suppress(subprocess.TimeoutExpired):
                other.wait(self.rng.uniform(0, 20))
            os.killpg(process.pid, signal.SIGCONT)
            status = other.wait(300)
            woken = process.wait(300)
            if woken not in (0, SUPERSEDED, NO_BROKER):  # while it was starting, the broker did not answer in time
                raise SystemExit(f"the application that was woken ended with status {woken}: see above")
            return self._ended(status) if status != SUPERSEDED else False
        finally:
            for started in (process, other):
                if started is not None:
                    end_with_rest(started)

    def _ended(self, status: int) -> bool:
        if status != 0:
            raise SystemExit(f"the application ended with status {status}: see above")
        return True


def run_on_kafka(
    name: str, folder: Path, seed: str, records: int, points: Sequence[str] = ()
) -> tuple[Counter[str], list[str]]:
    """Run a round with its own broker; repeat it with another one if the broker has forgotten a transaction."""
    for attempt in ("first", "second"):
        place = folder / attempt
        place.mkdir()
        try:
            with DevBroker(place / "kafka", free_port(), settings=QUICK_BROKER) as kafka:
                return Round(name, place, random.Random(seed), records, kafka).run(points)
        except BrokerForgotError:
            print(f"the broker has forgotten a transaction, trying again; its files are in {place}", flush=True)
    raise SystemExit("the broker has forgotten a transaction twice, so the round says nothing about the application")


class BrokerForgotError(Exception):
    """The broker will never write the end of a transaction, so nothing can continue.

    It happens to a single broker that is killed during a commit: when it starts, it finds no leader to send the end to,
    not even itself, and thinks that the partitions are deleted.
    """


def open_transactions(broker: Broker) -> list[str]:
    """Wait until no transaction is open; return the topics that still have an open one."""
    topics = broker.topics()
    deadline = time.monotonic() + 30
    while True:
        ends = {topic: broker.end_offsets(topic) for topic in topics}
        settled = cast(EngineBroker, broker).plan_batch(
            {topic: dict.fromkeys(at, 0) for topic, at in ends.items()}, None
        )
        if settled == ends:
            return []
        if time.monotonic() > deadline:
            return [f"topic '{topic}' has an open transaction" for topic in topics if settled[topic] != ends[topic]]
        time.sleep(0.1)


def end_with_rest(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, if it still runs, and the rest of its group: the JVM and the workers."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()  # otherwise it would stay as a zombie
    while True:
        try:
            os.killpg(process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.01)


def expected(name: str, made: list[Made]) -> dict[str, Results]:
    """Return the output of the test driver, by partition, because every partition has its own stream time."""
    found: dict[str, Results] = {topic: {} for topic in OUTPUTS[name]}
    # After a repartition one driver must have the records of all partitions.
    partitions = range(PARTITIONS) if name != "two-levels" else [None]
    for partition in partitions:
        config = {"statestore_cache_max_bytes": 0, "default_value_serde": serdes.String}
        with TopologyTestDriver(TOPOLOGIES[name](), config) as driver:
            for topic, key, value, timestamp in made:
                if partition is None or partition_of(key, PARTITIONS) == partition:
                    driver.pipe(topic, key, value, timestamp, [])
            for topic in OUTPUTS[name]:
                for out_key, out_value, timestamp, _ in driver.queue(topic):
                    found[topic].setdefault(out_key, []).append((out_value, timestamp))
    return found


def read(broker: Broker, topic: str) -> Results:
    found: Results = {}
    for record in broker.records(topic):
        found.setdefault(record.key, []).append((record.value, record.timestamp))
    return found


def differences(wanted: dict[str, Results], found: dict[str, Results]) -> Iterator[str]:
    """Describe, for every key, the records that were lost, doubled or out of order."""
    for topic, by_key in wanted.items():
        for key in sorted({*by_key, *found[topic]}, key=repr):
            one, other = by_key.get(key, []), found[topic].get(key, [])
            if one == other:
                continue
            lost, more = Counter(one) - Counter(other), Counter(other) - Counter(one)
            what = f"lost {dict(lost)}, doubled {dict(more)}" if lost or more else "reordered"
            yield f"topic '{topic}', key {key!r}: {what}"


def child(name: str, folder: str, address: str, take_along: bool) -> None:
    """Be the application: continue when a worker is killed, until everything is processed."""
    if take_along:
        os.environ["HEADRACE_CRASH_PID"] = str(os.getpid())
    config = StreamsConfig(
        application_id="chaos",
        bootstrap_servers=address,
        kafka={"transaction.timeout.ms": TRANSACTION_MS, "socket.timeout.ms": 10_000},
        state_dir=f"{folder}/state",
        default_value_serde=serdes.String,
        statestore_cache_max_bytes=0,
        max_records_per_batch=100,
        num_partitions=PARTITIONS,
        commit_interval_ms=10,
    )
    app = Streams(TOPOLOGIES[name](), config)
    app.set_uncaught_exception_handler(after_a_worker)
    try:
        app.run(until_caught_up=True)
    except (UnavailableError, SupersededError) as error:
        print(f"the application ended: {error}", file=sys.stderr)
        sys.exit(NO_BROKER if isinstance(error, UnavailableError) else SUPERSEDED)


def after_a_worker(error: BaseException) -> StreamThreadExceptionResponse:
    """Start again if a worker was killed; the application must handle anything else by itself."""
    died = "a Python worker died" in str(error)
    return StreamThreadExceptionResponse.REPLACE_THREAD if died else StreamThreadExceptionResponse.SHUTDOWN_CLIENT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--records", type=int, default=1_000)
    parser.add_argument("--broker", choices=["local", "kafka"], default="local")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--take-along", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        name, place, address = given.child
        child(name, place, address, given.take_along)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the application and the broker end too
    total: Counter[str] = Counter()
    wrong = 0
    for number in range(given.rounds):
        name = list(TOPOLOGIES)[number % len(TOPOLOGIES)]
        folder = Path(tempfile.mkdtemp(prefix="headrace-chaos-"))
        if given.broker == "kafka":
            kills, problems = run_on_kafka(name, folder, f"{given.seed}/{number}", given.records)
        else:
            kills, problems = Round(name, folder, random.Random(f"{given.seed}/{number}"), given.records).run()
        total += kills
        wrong += len(problems)
        listed = ", ".join(f"{point} {count}" for point, count in sorted(kills.items())) or "none"
        print(
            f"round {number + 1} ({name}): killed {sum(kills.values())} times ({listed}), {len(problems)} wrong",
            flush=True,
        )
        for problem in problems[:10]:
            print(f"  {problem}", flush=True)
        if problems:
            print(f"  its files are in {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{sum(total.values())} kills: {dict(sorted(total.items()))}; {wrong} keys wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
