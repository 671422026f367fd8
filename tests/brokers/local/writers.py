"""Processes that write. A module of its own, because the tests' child processes import it by name."""

import os
import signal
import sys
from multiprocessing.synchronize import Barrier

from headrace.brokers import LocalBroker
from headrace.errors import StreamsError
from headrace.raw_records import RecordToWrite


def write_batches(path: str, barrier: Barrier, writer: int, batches: int, size: int) -> None:
    """Open the file at the same time as the other writers. Produce batches whose records name writer and batch."""
    barrier.wait()
    with LocalBroker(path) as broker:
        for batch in range(batches):
            records = [(b"%d" % n, b"%d %d %d" % (writer, batch, n)) for n in range(size)]
            broker.produce("lines", records)


def create_topic(path: str, barrier: Barrier, number: int) -> None:
    """Open a file that does not exist yet, at the same time as others."""
    barrier.wait()
    with LocalBroker(path) as broker:
        broker.create_topic(f"topic-{number}")


def write_forever(path: str) -> None:
    """Produce batches and report each one, until killed."""
    with LocalBroker(path) as broker:
        batch = sum(broker.end_offsets("lines").values()) // 2_000
        while True:
            broker.produce("lines", [(b"%d" % n, b"%d" % batch) for n in range(2_000)])
            print(batch, flush=True)
            batch += 1


def die_before(path: str, statement: str) -> None:
    """Produce more than SQLite keeps in memory, and die at a statement of the transaction."""
    with LocalBroker(path) as broker:
        broker._file._connection.set_trace_callback(lambda sql: _die_at(sql, statement))
        broker.produce("lines", [(None, bytes(1_000)) for _ in range(20_000)])


def die_in_batch(path: str, statement: str) -> None:
    """Write a batch of more than SQLite keeps in memory, and die at a statement of the transaction."""
    with LocalBroker(path) as broker:
        run = broker.begin_run("app", "x")
        broker._file._connection.set_trace_callback(lambda sql: _die_at(sql, statement))
        records: list[RecordToWrite] = [(None, bytes(1_000), 0, None) for _ in range(20_000)]
        broker.write_batch(run, 1, [("lines", None, records)], {"in": {0: 20_000}})


def write_runs(path: str, batches: int) -> None:
    """Begin a run and write batches until another run begins. Report the begin and how the run ended."""
    with LocalBroker(path) as broker:
        run = broker.begin_run("app", "x")
        print(run.number, flush=True)
        try:
            for batch in range(int(batches)):
                records: list[RecordToWrite] = [(b"%d" % n, b"%d" % batch, 0, None) for n in range(20)]
                broker.write_batch(run, batch, [("lines", None, records)], {"in": {0: batch}})
            print("done", flush=True)
        except StreamsError as error:
            print(error, flush=True)


def ensure_topics(path: str, barrier: Barrier, count: int) -> None:
    """Create the same topics as others, at the same time."""
    with LocalBroker(path) as broker:
        barrier.wait()
        broker.ensure_topics({f"topic-{number}": 2 for number in range(count)})


def _die_at(sql: str, statement: str) -> None:
    if sql.startswith(statement):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
