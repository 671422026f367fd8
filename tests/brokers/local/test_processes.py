"""`file`, `forking` and `writing`: several processes use one file at once, and die in the middle of a call."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import IO

import pytest

from headrace.brokers import LocalBroker
from headrace.errors import TopicError
from tests.brokers.local import writers

# A forked process would share the connections of this one.
processes = multiprocessing.get_context("spawn")

WRITERS, BATCHES, SIZE = 4, 25, 20


def started_writer(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.brokers.local.writers", *arguments],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )


def batches_read(broker: LocalBroker) -> Counter[tuple[int, int]]:
    """Read the topic once. Count the records of every batch."""
    values = [(record.value or b"").split() for record in broker.records("lines")]
    return Counter((int(writer), int(batch)) for writer, batch, _ in values)


def test_writers_share_a_file_and_readers_see_whole_batches(path: Path) -> None:
    barrier = processes.Barrier(WRITERS)
    running = [
        processes.Process(target=writers.write_batches, args=(str(path), barrier, number, BATCHES, SIZE))
        for number in range(WRITERS)
    ]
    with LocalBroker(path) as broker:
        broker.create_topic("lines", 3)
        for process in running:
            process.start()

        while any(process.is_alive() for process in running):
            assert set(batches_read(broker).values()) <= {SIZE}

        for process in running:
            process.join()
        assert [process.exitcode for process in running] == [0] * WRITERS
        assert batches_read(broker) == {(w, b): SIZE for w in range(WRITERS) for b in range(BATCHES)}
        check_order(broker)


def check_order(broker: LocalBroker) -> None:
    """Check that offsets have no gaps, and that a writer's records of a key are in the order of its writes."""
    offsets = defaultdict(list)
    batches = defaultdict(list)
    for record in broker.records("lines"):
        offsets[record.partition].append(record.offset)
        writer, batch, _ = (record.value or b"").split()
        batches[record.partition, record.key, writer].append(int(batch))
    assert dict(offsets) == {partition: list(range(end)) for partition, end in broker.end_offsets("lines").items()}
    assert len(batches) == WRITERS * SIZE
    assert set(map(tuple, batches.values())) == {tuple(range(BATCHES))}


def test_processes_may_make_the_file_together(path: Path) -> None:
    barrier = processes.Barrier(4)
    running = [processes.Process(target=writers.create_topic, args=(str(path), barrier, n)) for n in range(4)]
    for process in running:
        process.start()
    for process in running:
        process.join()

    assert [process.exitcode for process in running] == [0] * 4
    with LocalBroker(path) as broker:
        assert list(broker.topics()) == ["topic-0", "topic-1", "topic-2", "topic-3"]


def check_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_writer_killed_at_any_time_leaves_whole_batches(path: Path) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines", 3)
        for _ in range(4):
            writer = started_writer("write_forever", str(path))
            said = last_line_after(3, writer.stdout)
            writer.kill()
            rest = writer.communicate()[0].split()
            assert writer.returncode == -signal.SIGKILL

            counts = Counter(int(record.value or b"") for record in broker.records("lines"))

            assert set(counts.values()) == {2_000}
            # The batches that it reported are there. The next batch may be there, too.
            assert len(counts) - max(int(batch) for batch in [said, *rest]) in (1, 2)
            assert list(counts) == list(range(len(counts)))
    check_file(path)


def last_line_after(count: int, stream: IO[str] | None) -> str:
    assert stream is not None
    return [stream.readline() for _ in range(count)][-1].strip()


@pytest.mark.parametrize("statement", ["INSERT INTO records", "UPDATE partitions", "COMMIT"])
def test_a_writer_killed_inside_its_transaction_leaves_nothing(path: Path, statement: str) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines")
        broker.produce("lines", [(None, b"before")])
        writer = started_writer("die_before", str(path), statement)
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL

        assert [record.value for record in broker.records("lines")] == [b"before"]
        assert broker.end_offsets("lines") == {0: 1}
        broker.produce("lines", [(None, b"after")])

    with LocalBroker(path) as broker:
        assert [(record.offset, record.value) for record in broker.records("lines")] == [(0, b"before"), (1, b"after")]
    check_file(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_is_told_to_connect_again(broker: LocalBroker) -> None:
    broker.create_topic("lines")

    child = os.fork()
    if child == 0:
        status = 1
        try:
            broker.produce("lines", [(None, b"from the child")])
        except TopicError as error:
            status = 0 if "Call connect() again in this process." in str(error) else 2
        finally:
            broker.close()
            os._exit(status)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    broker.produce("lines", [(None, b"from the parent")])
    assert [record.value for record in broker.records("lines")] == [b"from the parent"]
