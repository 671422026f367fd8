"""`runs`: one application runs in several processes, and processes die in the middle of a batch."""

import signal
from collections import Counter
from pathlib import Path
from typing import IO

import pytest

from headrace.brokers import LocalBroker
from headrace.errors import StreamsError
from tests.brokers.local import writers
from tests.brokers.local.test_processes import check_file, processes, started_writer

BATCHES, SIZE = 300, 20


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().strip()


def written(broker: LocalBroker) -> Counter[int]:
    return Counter(int(record.value or b"") for record in broker.records("lines"))


def test_the_run_of_another_process_ends_that_of_this_one(path: Path) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines")
        older = broker.begin_run("app", "x")
        broker.write_batch(older, 0, [("lines", None, [(None, b"0", 0, None)])] * SIZE, {})
        writer = started_writer("write_runs", str(path), "3")
        assert writer.communicate()[0].split() == ["2", "done"]

        with pytest.raises(StreamsError) as raised:
            broker.write_batch(older, 3, [("lines", None, [(None, b"3", 0, None)])], {})

        assert str(raised.value) == (
            "application 'app' was started again elsewhere (run 2, this is run 1): this one stops"
        )
        assert written(broker) == {0: SIZE, 1: SIZE, 2: SIZE}
        assert broker.last_batch("app") == ("x", 2)


def test_over_several_runs_every_batch_is_written_once(path: Path) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines", 3)
        running = []
        for number in (1, 2, 3):  # the next run begins in the middle of the one before
            running.append(started_writer("write_runs", str(path), str(BATCHES)))
            assert line(running[-1].stdout) == str(number)
        said = [writer.communicate()[0].strip() for writer in running]

        assert [writer.returncode for writer in running] == [0, 0, 0]
        assert said[-1] == "done"
        for number, ending in enumerate(said[:-1], 1):
            assert ending == "done" or f"this is run {number}): this one stops" in ending
        assert written(broker) == dict.fromkeys(range(BATCHES), SIZE)
        assert broker.positions("app") == {"in": {0: BATCHES - 1}}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE applications",
        "INSERT INTO records",
        "UPDATE partitions",
        "UPDATE counters",
        "INSERT INTO positions",
        "COMMIT",
    ],
)
def test_a_process_killed_inside_a_batch_leaves_nothing(path: Path, statement: str) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines", 2)
        broker.write_batch(broker.begin_run("app", "x"), 0, [("lines", 0, [(None, b"0", 0, None)])], {"in": {0: 1}})
        writer = started_writer("die_in_batch", str(path), statement)
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL

        assert written(broker) == {0: 1}
        assert broker.end_offsets("lines") == {0: 1, 1: 0}
        assert broker.last_batch("app") == ("x", 0)
        assert broker.positions("app") == {"in": {0: 1}}
        assert broker.run_number("app") == 2
        again = broker.begin_run("app", "x")
        assert broker.write_batch(again, 1, [("lines", 0, [(None, b"1", 0, None)])], {"in": {0: 2}}) is True
        assert [[row[5] for row in page] for page in broker.read_range("lines", 0, 0, 2)] == [[0, 1]]
    check_file(path)


def test_processes_may_make_the_same_topics_together(path: Path) -> None:
    barrier = processes.Barrier(3)
    running = [processes.Process(target=writers.ensure_topics, args=(str(path), barrier, 10)) for _ in range(3)]
    for process in running:
        process.start()
    for process in running:
        process.join()

    assert [process.exitcode for process in running] == [0] * 3
    with LocalBroker(path) as broker:
        assert {name: info.partitions for name, info in broker.topics().items()} == {f"topic-{n}": 2 for n in range(10)}
