"""The time of one worker per record on Kafka: reading, processing and writing in one process, without Spark.

    python -m benchmarks.worker [--records N] [--rounds N] [--pages N N ...] [W1 W2 ...]

It runs the tasks of one partition, as a worker of Spark does, in batches over the same records. It tries the given
sizes of pages in turn; the ratio shows the effect of the size. Times are the CPU time of the working thread in
microseconds per record, the least of all rounds, because other programs on the machine only add to them. Use this
program with a profiler, too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from benchmarks.workloads import WORKLOADS, Workload, make_records
from headrace import StreamsConfig
from headrace.brokers import connect
from headrace.brokers.connecting import shared_broker
from headrace.brokers.kafka import ranges
from headrace.dev.kafka_broker import DevBroker, free_port
from headrace.engine.application import Application
from headrace.engine.changelogs import changelogs
from headrace.engine.delivery import delivery_of
from headrace.engine.identity import Identity
from headrace.engine.in_process import MemoryEpochStore
from headrace.engine.messages import Failure, Message, TopicRange
from headrace.engine.plan import make_plan
from headrace.engine.stateful import StatefulTask
from headrace.engine.stateless import StatelessStage
from headrace.engine.worker import Worker
from headrace.task.garbage_collection import collect_when_asked, collection_paused

SINK = "out"


class Partition:
    """The tasks of the first partition of a work, on a broker."""

    def __init__(self, work: Workload, address: str, source: str, folder: Path) -> None:
        topology = work.build(source, SINK)
        config = StreamsConfig(application_id=source, bootstrap_servers=address, state_dir=str(folder))
        self._broker = shared_broker(address)
        plan = make_plan(topology, config, self._broker.partition_counts())
        numbers = Identity.new(3).take_up(plan, topology, config)
        logged = changelogs(topology, config, plan)
        permit = self._broker.permit(self._broker.begin_run(source, "benchmark", changelogs=logged.values()))
        self._delivery = delivery_of(permit)
        self._worker = Worker(Application(topology, config, plan, numbers, {}, folder, logged), lambda: self._broker)
        self._unit = plan.units[plan.readers[source]]
        self._task = numbers[self._unit.number][0]
        self._tables = [topic for topic, units in plan.global_readers.items() if self._unit.number in units]
        self._source = source
        self._epochs = MemoryEpochStore()
        self._batch = 0

    def run(self) -> float:
        """Run a batch of all records. Return how many microseconds of this thread each record took."""
        begin, end = (ask(self._source)[0] for ask in (self._broker.first_offsets, self._broker.end_offsets))
        wanted = [TopicRange(self._source, 0, begin, end, 0)]
        if not self._batch:
            wanted += [TopicRange(topic, 0, 0, self._broker.end_offsets(topic)[0], 0) for topic in self._tables]
        started = time.thread_time()
        said = self._stateful(wanted) if self._unit.stateful else self._stateless(wanted)
        took = time.thread_time() - started
        self._batch += 1
        for message in said:
            if isinstance(message, Failure):
                raise message.error()
        return took / (end - begin) * 1e6

    def _stateful(self, wanted: list[TopicRange]) -> list[Message]:
        with collection_paused():
            task = StatefulTask(self._worker, self._delivery, self._task, self._epochs, self._batch)
            return [message for _, message in (*task.run(wanted), *task.finish())]

    def _stateless(self, wanted: list[TopicRange]) -> list[Message]:
        with StatelessStage(self._worker, self._delivery, self._batch) as stage:
            sent = [routed for several in stage.run(self._task, wanted) for routed in several]
            return [message for _, message in (*sent, *stage.end())]


def measure(work: Workload, address: str, records: int, rounds: int, pages: Sequence[int]) -> dict[int, float]:
    """Return the time per record for each size of pages."""
    source = f"{work.name.lower()}-in"
    with connect(address) as broker:
        for topic in (source, SINK):
            if topic not in broker.topics():
                broker.create_topic(topic, 2)
        work.prepare(broker)
        broker.produce(source, make_records(records, work.keys), partition=0)
    best: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        partition = Partition(work, address, source, Path(folder))
        partition.run()
        for _ in range(rounds):
            for size in pages:
                with patch.object(ranges, "_PAGE", size):
                    best[size] = min(partition.run(), best.get(size, 1e9))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--pages", type=int, nargs="+", default=[ranges._PAGE, 10_000])
    parser.add_argument("work", nargs="*", metavar="W1")
    given = parser.parse_args()
    collect_when_asked()
    with tempfile.TemporaryDirectory() as folder, DevBroker(Path(folder) / "kafka", free_port()) as kafka:
        for name in given.work or list(WORKLOADS):
            took = measure(WORKLOADS[name], kafka.address, given.records, given.rounds, given.pages)
            first = took[given.pages[0]]
            told = ", ".join(f"pages of {size:,}: {one:.2f} µs ({one / first:.2f})" for size, one in took.items())
            print(f"{name} {told}", flush=True)


if __name__ == "__main__":
    main()
