"""`connecting`: the broker that a process shares, and forked processes. Also `ensure_topics` of the embedded log."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.brokers import LocalBroker, TopicInfo, connecting
from headrace.brokers.connecting import shared_broker
from headrace.brokers.engine import EngineBroker
from headrace.errors import ConfigError, TopicError

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@pytest.fixture
def address(path: Path) -> Iterator[str]:
    yield f"local:{path}"
    for place in [place for place in connecting._shared if place[1] == f"local:{path}"]:
        connecting._shared.pop(place).close()


def forked(work: Any) -> int:
    """Fork, and call a function in the child, which ends with 0 unless the function raises. Return its process id."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def values(broker: EngineBroker) -> list[bytes | None]:
    return [record.value for record in broker.records("lines")]


def test_the_embedded_log_is_a_broker_for_engines(broker: LocalBroker) -> None:
    usable: EngineBroker = broker

    assert not usable.closed


def test_missing_topics_are_made(broker: LocalBroker) -> None:
    broker.create_topic("there", 3, compact=True)

    broker.ensure_topics({"there": 5, "new": 2})
    broker.ensure_topics({"there": 1, "new": 9, "newer": 1})
    broker.ensure_topics({})

    assert broker.topics() == {
        "there": TopicInfo("there", 3, True),
        "new": TopicInfo("new", 2),
        "newer": TopicInfo("newer", 1),
    }


def test_wrong_topics_are_refused_before_any_is_made(broker: LocalBroker) -> None:
    with pytest.raises(TopicError, match="topic 'wrong': expected at least 1 partition, got 0"):
        broker.ensure_topics({"right": 1, "wrong": 0})
    assert broker.topics() == {}


def test_a_process_has_one_broker_for_an_address(address: str, tmp_path: Path) -> None:
    broker = shared_broker(address)

    assert shared_broker(address) is broker
    with pytest.raises(ConfigError, match="expected 'local:PATH'"):
        shared_broker("nowhere")
    other = shared_broker(f"local:{tmp_path}/other.db")
    assert other is not broker
    other.close()


def test_threads_that_come_first_together_get_the_same_broker(address: str) -> None:
    barrier = threading.Barrier(8)
    got = []

    def get() -> None:
        barrier.wait()
        got.append(shared_broker(address))

    threads = [threading.Thread(target=get) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(got) == 8
    assert {id(broker) for broker in got} == {id(shared_broker(address))}
    assert not got[0].closed


def test_a_closed_broker_is_opened_anew(address: str) -> None:
    shared_broker(address).close()

    broker = shared_broker(address)

    assert not broker.closed
    assert broker.topics() == {}


@forks
def test_a_forked_process_has_its_own_broker(address: str) -> None:
    broker = shared_broker(address)
    broker.create_topic("lines")
    broker.produce("lines", [(None, b"before")])

    def work() -> None:
        assert shared_broker(address) is not broker
        assert shared_broker(address) is shared_broker(address)
        shared_broker(address).produce("lines", [(None, b"from the child")])

    assert ended(forked(work)) == 0
    assert shared_broker(address) is broker
    broker.produce("lines", [(None, b"after")])
    assert values(broker) == [b"before", b"from the child", b"after"]


@forks
def test_what_a_forked_process_writes_outlives_the_closing_of_its_parent(path: Path, address: str) -> None:
    # The child inherits what SQLite knows about locks. If it relied on that, it would lose its writes.
    broker = shared_broker(address)
    broker.create_topic("lines")
    (child_reads, parent_writes), (parent_reads, child_writes) = os.pipe(), os.pipe()

    def work() -> None:
        own = shared_broker(address)
        own.produce("lines", [(None, b"before")])
        os.write(child_writes, b"!")
        os.read(child_reads, 1)
        own.produce("lines", [(None, b"after")])
        own.close()

    child = forked(work)
    os.read(parent_reads, 1)
    assert values(broker) == [b"before"]
    broker.close()
    os.write(parent_writes, b"!")

    assert ended(child) == 0
    with LocalBroker(path) as again:
        assert values(again) == [b"before", b"after"]
    for end in (child_reads, parent_writes, parent_reads, child_writes):
        os.close(end)


@forks
def test_a_fork_in_the_middle_of_a_transaction_leaves_it_as_it_is(broker: LocalBroker) -> None:
    broker.create_topic("lines")

    def write(connection: Any) -> int:
        connection.execute("UPDATE topics SET retention_ms = 5")
        return ended(forked(lambda: None))

    assert broker._file.write(write) == 0
    assert broker.topics()["lines"].retention_ms == 5


@forks
def test_a_log_that_is_not_used_between_two_forks_is_there_after_them(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    for _ in range(2):
        assert ended(forked(lambda: None)) == 0

    assert broker.produce("lines", [(None, b"1")]) == 1


@forks
def test_a_fork_closes_no_broker_for_good_and_opens_none_that_was_closed(broker: LocalBroker, path: Path) -> None:
    broker.create_topic("lines")
    closed = LocalBroker(path)
    closed.close()

    for _ in range(3):
        assert ended(forked(lambda: None)) == 0
        broker.produce("lines", [(None, b"")])

    assert broker.end_offsets("lines") == {0: 3}
    with pytest.raises(TopicError, match=r"cannot read the embedded log '.*': Cannot operate on a closed database"):
        closed.topics()
