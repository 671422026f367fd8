"""Records per second through a `Task` that processes one batch and commits it, as in the engine.

    python -m benchmarks.task [--records N]       rates, compared with their aims and with a bare loop
    python -m benchmarks.task --growth            how the rate changes if a batch has four times as many records
    python -m benchmarks.task --profile NAME      where the time goes

A bare loop in the same process deserializes and serializes the same records. The ratio to its rate shows the cost of
everything else. Time is the CPU time of this process, so that other programs on the machine matter less.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import time

from benchmarks.topologies import MORE_WORK, WORK, Build, topics_of, topology
from headrace import StreamsConfig
from headrace.raw_records import RawRecord
from headrace.task.garbage_collection import collection_paused, keep_memory, sample
from headrace.task.lanes import Lane
from headrace.task.task import Task

AIMS = {"filter+map_values": 700_000, "count": 500_000, "tumbling count": 300_000, "stream-stream join": 100_000}
"""The records/s that each should reach on one core, with string serdes."""


def records_for(name: str, number: int, keys: int) -> dict[str, list[RawRecord]]:
    """Make the input: random keys, a millisecond between two records, values of ten characters."""
    rng = random.Random(7)
    topics = topics_of(name)
    made: dict[str, list[RawRecord]] = {topic: [] for topic in topics}
    for index in range(number):
        batch = made[topics[index % len(topics)]]
        batch.append(
            (len(batch), index, b"key-%d" % rng.randrange(keys), b"value-%04d" % (index % 10_000), None, index)
        )
    return made


def bare_loop(records: dict[str, list[RawRecord]]) -> float:
    """Return the records/s of a loop that only deserializes and serializes."""
    total, started = 0, time.process_time()
    for topic in records.values():
        out = []
        for _, timestamp, key, value, headers, _ in topic:
            assert key is not None
            assert value is not None
            out.append(("out", None, key.decode().encode(), value.decode().encode(), timestamp, headers))
        total += len(out)
    return total / (time.process_time() - started)


def run(build: Build, records: dict[str, list[RawRecord]], cache_bytes: int = 0) -> float:
    """Return the records/s of one batch, its commit included.

    As in the engine, a few outputs of the batch before are kept, so that this batch can use its memory.
    """
    config = StreamsConfig(application_id="bench", statestore_cache_max_bytes=cache_bytes)
    made = topology(build)
    task = Task(made, made.sub_topologies()[0], config)
    with collection_paused():
        started = time.process_time()
        task.process_lanes([Lane.of_source(topic, 0, batch) for topic, batch in records.items()])
        task.commit()
        rate = sum(map(len, records.values())) / (time.process_time() - started)
    keep_memory("outputs", [sample(columns.values) for _, columns in task.take_outputs()])
    return rate


def print_rates(number: int) -> None:
    print(f"{'work':28}{'keys':>9}{'records/s':>12}{'aim':>10}{'of aim':>8}{'of bare loop':>14}{'caches on':>12}")
    for name, build in WORK.items():
        for keys in (5, 5_000, 100_000):
            records = records_for(name, number, keys)
            bare = max(bare_loop(records) for _ in range(3))
            rate = max(run(build, records) for _ in range(3))
            cached = max(run(build, records, 10 << 20) for _ in range(3))
            aim = AIMS.get(name)
            against = f"{aim:10,}{rate / aim:8.2f}" if aim else f"{'':18}"
            print(f"{name:28}{keys:9,}{rate:12,.0f}{against}{rate / bare:14.2f}{cached:12,.0f}", flush=True)


def print_growth(number: int) -> None:
    print(f"{'work':28}{'keys':>9}{'records/s':>12}{'in a batch of 4x':>18}{'ratio':>8}")
    for name, build in (WORK | MORE_WORK).items():
        for keys in (5, 5_000):
            small = run(build, records_for(name, number // 4, keys))
            large = run(build, records_for(name, number, keys))
            print(f"{name:28}{keys:9,}{small:12,.0f}{large:18,.0f}{large / small:8.2f}", flush=True)


def print_profile(name: str, number: int) -> None:
    records = records_for(name, number, 5_000)
    profile = cProfile.Profile()
    profile.enable()
    run((WORK | MORE_WORK)[name], records)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--profile", choices=sorted(WORK | MORE_WORK))
    args = parser.parse_args()
    if args.profile:
        print_profile(args.profile, args.records)
    elif args.growth:
        print_growth(args.records)
    else:
        print_rates(args.records)


if __name__ == "__main__":
    main()
