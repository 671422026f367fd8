"""Headrace and its peers: the same work on the same broker with the same records, one after the other.

    python -m benchmarks.peers [--records N] [--peer NAME ...] [--work W1 ...] [--latency] [--folder DIR]

Each peer runs in its own processes and its own virtual environment, which the first run makes. It is warm when the
records arrive, all at one moment, because they are written in a transaction. The time runs from the commit of this
transaction until a reader of committed records can read the last result. Every result is compared with the correct
one. DIR/results.json has all results so far, even after a failure; `--resume` measures the missing ones. `--latency`
measures how long a record takes through W2 at 200 records/s. Without `--work` it measures nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from confluent_kafka import KafkaException

from benchmarks.side_by_side.catalogue import (
    PARTITIONS,
    PEERS,
    USERS,
    USERS_BY_PARTITION,
    WORK,
    Peer,
    Work,
)
from benchmarks.side_by_side.measuring import Bench, Outcome
from benchmarks.side_by_side.processes import PeerError
from benchmarks.side_by_side.reporting import line, tables
from benchmarks.side_by_side.topics import Topics
from benchmarks.workloads import WORKLOADS, Produced, make_records, make_users
from headrace.brokers import connect
from headrace.brokers.engine import EngineBroker
from headrace.dev.kafka_broker import DevBroker, free_port

LATENCY = "latency"
# A peer with two processes should be one group from the start. Kafka's own default waits for three seconds.
BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "1000"}


def to_measure(peers: Sequence[str], works: Sequence[str], latency: bool) -> Iterator[tuple[str, Peer]]:
    """Walk the peers and their work, work by work, so that peers that are compared run soon after each other."""
    for work in works:
        yield from ((work, PEERS[name]) for name in peers if PEERS[name].does(WORK[work]))
    if latency:
        yield from ((LATENCY, PEERS[name]) for name in peers if PEERS[name].only is None)


def measure(bench: Bench, peer: Peer, work: Work, records: Sequence[Produced], latency: bool) -> Outcome:
    """Return an outcome, which may say why there is no result."""
    name = LATENCY if latency else work.name
    if work.base in peer.lacks:
        return Outcome(peer.name, name, failed=peer.lacks[work.base])
    try:
        if latency:
            return bench.measure_latency(peer, work, records)
        return bench.measure_rate(peer, work, records[: peer.most])
    except (PeerError, KafkaException) as error:
        return Outcome(peer.name, name, failed=str(error))


def load(file: Path) -> dict[tuple[str, str], Outcome]:
    """Return the outcomes of earlier runs."""
    if not file.exists():
        return {}
    known = [Outcome(**one) for one in json.loads(file.read_text(encoding="utf-8"))]
    return {(one.peer, one.work): one for one in known if one.failed is None}


def save(file: Path, outcomes: dict[tuple[str, str], Outcome]) -> None:
    """Write the outcomes."""
    file.write_text(json.dumps([dataclasses.asdict(one) for one in outcomes.values()], indent=1), encoding="utf-8")


def run(given: argparse.Namespace, folder: Path) -> None:
    """Measure everything that is asked for, and print the tables."""
    file = folder / "results.json"
    outcomes = load(file) if given.resume else {}
    made: tuple[int, list[Produced]] = (0, [])
    shutil.rmtree(folder / "broker", ignore_errors=True)  # left by a run that was killed
    with DevBroker(folder / "broker", free_port(), settings=BROKER_SETTINGS) as kafka:
        with connect(kafka.address) as broker:
            make_users(broker, USERS)
            make_users(broker, USERS_BY_PARTITION, PARTITIONS)
            # The first group and the first transaction of a broker wait until it has made topics for them.
            cast(EngineBroker, broker).begin_run("first", "")
        bench = Bench(Topics(kafka.address), folder / "peers", given.limit)
        for name, peer in to_measure(given.peer, given.work, given.latency):
            if (peer.name, name) in outcomes:
                continue
            work = WORK["W2" if name == LATENCY else name]
            keys = WORKLOADS[work.base].keys
            if made[0] != keys:
                made = keys, make_records(given.records, keys)
            kafka.start()  # does nothing if the broker is still running
            outcome = measure(bench, peer, work, made[1], name == LATENCY)
            outcomes[peer.name, name] = outcome
            save(file, outcomes)
            print(line(outcome), flush=True)
    print(f"\n{tables(outcomes.values())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--peer", nargs="+", default=list(PEERS), choices=list(PEERS), metavar="NAME")
    parser.add_argument("--work", nargs="+", choices=list(WORK), metavar="W1")
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--folder", type=Path, help="where the results, the broker and the peers' logs are kept")
    parser.add_argument("--limit", type=float, default=1800, help="seconds that one run may take")
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    if given.work is None:
        given.work = [] if given.latency else list(WORK)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the peers and the broker end, too
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="headrace-peers-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run(given, folder)
    finally:
        shutil.rmtree(folder / "broker", ignore_errors=True)
        print(f"results and logs: {folder}", flush=True)


if __name__ == "__main__":
    main()
