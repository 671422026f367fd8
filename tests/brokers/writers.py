"""What the writing processes of the tests do; a module of its own, for they import it by name."""

import os
import signal
import sys
from multiprocessing.synchronize import Barrier

from headrace.brokers import LocalBroker


def write_batches(path: str, barrier: Barrier, writer: int, batches: int, size: int) -> None:
    """Open the file together with the other writers, then produce batches that name themselves."""
    barrier.wait()
    with LocalBroker(path) as broker:
        for batch in range(batches):
            records = [(b"%d" % n, b"%d %d %d" % (writer, batch, n)) for n in range(size)]
            broker.produce("lines", records)


def create_topic(path: str, barrier: Barrier, number: int) -> None:
    """Open a file that is not there yet together with others."""
    barrier.wait()
    with LocalBroker(path) as broker:
        broker.create_topic(f"topic-{number}")


def write_forever(path: str) -> None:
    """Produce batch after batch and say so, until killed."""
    with LocalBroker(path) as broker:
        batch = sum(broker.end_offsets("lines").values()) // 2_000
        while True:
            broker.produce("lines", [(b"%d" % n, b"%d" % batch) for n in range(2_000)])
            print(batch, flush=True)
            batch += 1


def die_before(path: str, statement: str) -> None:
    """Produce more than SQLite keeps in memory, and die where a statement of the transaction would run."""

    def die(sql: str) -> None:
        if sql.startswith(statement):
            os.kill(os.getpid(), signal.SIGKILL)

    with LocalBroker(path) as broker:
        broker._file._connection.set_trace_callback(die)
        broker.produce("lines", [(None, bytes(1_000)) for _ in range(20_000)])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
