"""`broker`: reading without an end. A reader waits for records and gets them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from headrace.brokers import LocalBroker
from headrace.errors import TopicError


@contextmanager
def meanwhile(*steps: Callable[[], object]) -> Iterator[None]:
    """Make calls in a thread, one after the other."""
    thread = threading.Thread(target=lambda: [step() for step in steps])
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_reader_gets_what_is_there_and_what_comes(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    broker.produce("lines", [(None, b"there")])
    reader = broker.records("lines", until_end=False)
    assert next(reader).value == b"there"

    with meanwhile(lambda: broker.produce("lines", [(None, b"one"), (None, b"two")])):
        assert [record.value for record in islice(reader, 2)] == [b"one", b"two"]


def test_a_reader_gets_what_another_broker_of_the_file_produces(path: Path) -> None:
    with LocalBroker(path) as reading, LocalBroker(path) as writing:
        writing.create_topic("lines", 3)
        reader = reading.records("lines", until_end=False)

        with meanwhile(*[partial(writing.produce, "lines", [(None, b"%d" % n)]) for n in range(30)]):
            got = list(islice(reader, 30))

        assert sorted(int(record.value or b"") for record in got) == list(range(30))
        for partition in range(3):
            offsets = [record.offset for record in got if record.partition == partition]
            assert offsets == list(range(10))


def test_a_reader_can_begin_at_the_end(broker: LocalBroker) -> None:
    broker.create_topic("lines", 2)
    broker.produce("lines", [(None, b"old"), (None, b"old")])
    reader = broker.records("lines", start=broker.end_offsets("lines"), until_end=False)

    with meanwhile(lambda: broker.produce("lines", [(None, b"new")])):
        assert next(reader).value == b"new"


def test_a_reader_can_begin_after_the_end(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    reader = broker.records("lines", start={0: 2}, until_end=False)

    with meanwhile(*[partial(broker.produce, "lines", [(None, b"%d" % n)]) for n in range(3)]):
        assert next(reader).value == b"2"


def test_a_waiting_reader_is_told_when_the_topic_is_deleted(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    reader = broker.records("lines", until_end=False)

    with (
        meanwhile(lambda: broker.delete_topic("lines")),
        pytest.raises(TopicError, match=r"topic 'lines' in .* was deleted while it was being read"),
    ):
        next(reader)


def test_a_waiting_reader_ends_when_the_broker_is_closed(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    reader = broker.records("lines", until_end=False)

    with (
        meanwhile(broker.close),
        pytest.raises(TopicError, match=r"cannot read the embedded log '.*': Cannot operate on a closed database"),
    ):
        next(reader)


def test_threads_share_a_broker(broker: LocalBroker) -> None:
    broker.create_topic("lines", 4)

    def produce(thread: int) -> None:
        for n in range(20):
            broker.produce("lines", [(None, b"%d %d" % (thread, n)) for _ in range(5)])

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(broker.end_offsets("lines").values()) == 4 * 20 * 5
    values = [record.value for record in broker.records("lines")]
    assert {values.count(value) for value in values} == {5}
