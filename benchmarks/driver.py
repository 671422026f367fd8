"""Records per second through the test driver, which commits after every record.

    python -m benchmarks.driver [--records N]

The last column is the rate of the last tenth of the records divided by that of the second tenth. It shows whether a
record costs as much at the end as at the beginning. If Java and Maven are installed, Kafka Streams' own
TopologyTestDriver then processes tumbling count + suppress.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import time
from pathlib import Path

from benchmarks.topologies import WORK, Build, topics_of, topology
from headrace import StreamsConfig
from headrace.testing import TopologyTestDriver
from tools.oracle import CONFORMANCE, OracleError, build_oracle

JAVA_PROGRAM = Path(__file__).parent / "java" / "DriverBenchmark.java"


def run(build: Build, topics: list[str], number: int, keys: int) -> tuple[float, float]:
    """Return records/s, and the rate of the last tenth divided by that of the second."""
    rng = random.Random(7)
    config = StreamsConfig(application_id="bench", statestore_cache_max_bytes=0)
    marks = {number // 10: 0.0, number // 5: 0.0, number * 9 // 10: 0.0}
    with TopologyTestDriver(topology(build), config) as driver:
        inputs = [driver.create_input_topic(topic) for topic in topics]
        started = time.process_time()
        for index in range(number):
            if index in marks:
                marks[index] = time.process_time()
                driver.queue("out").clear()
            topic = inputs[index % len(inputs)]
            topic.pipe_input(f"key-{rng.randrange(keys)}", f"value-{index % 10_000:04d}", timestamp=index)
        ended = time.process_time()
    tenth, fifth, ninth = marks.values()
    return number / (ended - started), (fifth - tenth) / (ended - ninth)


def java_rate(number: int, keys: int) -> float | None:
    """Return the rate of Kafka Streams' own driver; None without Java or Maven."""
    try:
        build_oracle()
        done = subprocess.run(
            ["java", "-cp", f"{CONFORMANCE}/target/lib/*", str(JAVA_PROGRAM), str(number), str(keys)],
            check=True,
            capture_output=True,
            text=True,
        )
    except (OracleError, OSError, subprocess.CalledProcessError) as error:
        print(f"Kafka Streams' driver did not run: {error}")
        return None
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=50_000)
    args = parser.parse_args()
    print(f"{'work':28}{'keys':>9}{'records/s':>12}{'last/second tenth':>20}")
    rates = {}
    for name, build in WORK.items():
        for keys in (5, 100_000):
            rate, flatness = run(build, topics_of(name), args.records, keys)
            rates[name, keys] = rate
            print(f"{name:28}{keys:9,}{rate:12,.0f}{flatness:20.2f}")
    for keys in (5, 100_000):
        java = java_rate(args.records, keys)
        if java is not None:
            ratio = rates["tumbling count + suppress", keys] / java
            print(f"{'Java: tumbling + suppress':28}{keys:9,}{java:12,.0f}    Headrace is at {ratio:.2f} of it")


if __name__ == "__main__":
    main()
