"""`producing` and `consuming`: readers get what was produced, from the right partition, and only what is committed."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from headrace.brokers import Broker, TopicInfo, TopicRecord, connect
from headrace.brokers.broker import Produced
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.topics import create_topic
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import StreamsError, TopicError
from tests.kafka.naming import unique

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

JAVA = Path(__file__).parents[1] / "java_murmur2.tsv"


@pytest.fixture
def lines(broker: Broker) -> str:
    """Create a topic with one partition."""
    return broker.create_topic(unique("lines")).name


def values(broker: Broker, topic: str, **options: Any) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, **options)]


@contextmanager
def meanwhile(step: Callable[[], object]) -> Iterator[None]:
    """Make a call in a thread."""
    thread = threading.Thread(target=step)
    thread.start()
    try:
        yield
    finally:
        thread.join()


# -- what a record is --------------------------------------------------------------------------------------------------


def test_a_record_has_all_its_parts(broker: Broker, lines: str) -> None:
    headers = [("trace", b"\x00\xff"), ("trace", b"again"), ("", b"")]

    assert broker.produce(lines, [(b"k", b"v", 1234, headers)]) == 1

    assert list(broker.records(lines)) == [TopicRecord(lines, 0, 0, 1234, b"k", b"v", headers)]


def test_null_is_not_empty(broker: Broker, lines: str) -> None:
    broker.produce(lines, [(None, None), (b"", b"")])

    assert [(record.key, record.value) for record in broker.records(lines)] == [(None, None), (b"", b"")]


def test_headers_may_be_empty_or_missing(broker: Broker, lines: str) -> None:
    broker.produce(lines, [(b"k", b"v"), (b"k", b"v", 1), (b"k", b"v", 1, [])])

    assert [record.headers for record in broker.records(lines)] == [[], [], []]


def test_a_header_without_a_value_is_read_as_empty(broker: Broker, kafka: DevBroker, lines: str) -> None:
    producer = Connection(kafka.address).producer()
    producer.produce(lines, b"v", headers=[("null", None)])
    producer.flush()

    assert next(broker.records(lines)).headers == [("null", b"")]


def test_without_a_timestamp_it_is_now(broker: Broker, lines: str) -> None:
    before = int(time.time() * 1000)
    broker.produce(lines, [(b"k", b"v"), (b"k", b"v", None)])
    after = int(time.time() * 1000)

    first, second = (record.timestamp for record in broker.records(lines))
    assert before <= first == second <= after


def test_timestamps_are_kept_as_they_are(broker: Broker, lines: str) -> None:
    broker.produce(lines, [(b"k", b"v", 300), (b"k", b"v", 1), (b"k", b"v", 200)])

    assert [record.timestamp for record in broker.records(lines)] == [300, 1, 200]


def test_the_timestamp_zero_is_refused_rather_than_changed(broker: Broker, lines: str) -> None:
    with pytest.raises(TopicError, match=f"topic '{lines}': records with the timestamp 0 cannot be written"):
        broker.produce(lines, [(b"k", b"v", 1), (b"k", b"v", 0)])
    assert values(broker, lines) == []


WRONG: list[tuple[Any, str]] = [
    (b"value", r"expected \(key, value\), \(key, value, timestamp\) or .* got b'value'"),
    (("k", b"v"), r"expected the key as bytes or None, got str \('k'\). Serialize it first"),
    ((b"k", 7), r"expected the value as bytes or None, got int \(7\)"),
    ((b"k", b"v", -1), "expected the timestamp in whole milliseconds since 1970, got -1"),
    ((b"k", b"v", 1, {"a": b"b"}), r"expected the headers as a list of \(str, bytes\), got {'a'"),
    ((b"k", bytes(1_000_000)), "expected a record of 1000000 bytes at most, got one of 1000001 bytes"),
]


@pytest.mark.parametrize(("record", "message"), WRONG)
def test_one_wrong_record_in_the_middle_leaves_nothing(broker: Broker, lines: str, record: Any, message: str) -> None:
    with pytest.raises(TopicError, match=f"^topic '{lines}': .*{message}"):
        broker.produce(lines, [(b"a", b"1"), record, (b"b", b"2")])

    assert broker.end_offsets(lines) == {0: 0}


def test_a_failing_source_of_records_leaves_nothing(broker: Broker, lines: str) -> None:
    def failing() -> Iterator[Produced]:
        yield (None, b"good")
        raise RuntimeError("the source of records failed")

    with pytest.raises(RuntimeError, match="the source of records failed"):
        broker.produce(lines, failing())
    assert broker.end_offsets(lines) == {0: 0}


# -- what the broker refuses -------------------------------------------------------------------------------------------


def test_a_record_that_the_broker_refuses_is_told_with_what_was_written(broker: Broker) -> None:
    table = broker.create_topic(unique("table"), 2, compact=True).name

    with pytest.raises(TopicError) as raised:
        broker.produce(table, [(None, b"no key"), (None, b"no key")])

    assert f"cannot write to topic '{table}' at localhost:" in str(raised.value)
    assert "Every record of a compacted topic needs a key" in str(raised.value)
    assert str(raised.value).endswith("(0 of 2 records are known to be written)")
    assert broker.produce(table, [(b"k", b"v")]) == 1  # and the broker can still be used


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt. A process in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_while_a_record_is_confirmed_stays_one(
    broker: Broker, lines: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        reported = "headrace.brokers.kafka.producing._Reports.__call__"
        patch.setattr(reported, lambda *_: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            broker.produce(lines, [(b"k", b"one")])

    broker.produce(lines, [(b"k", b"two")])
    assert [record.value for record in broker.records(lines)] == [b"one", b"two"]


def test_a_timestamp_of_the_far_future_is_refused_by_the_broker(broker: Broker, lines: str) -> None:
    with pytest.raises(TopicError, match=r"Invalid timestamp\. The topic's settings message\.timestamp"):
        broker.produce(lines, [(b"k", b"v", 2**53)])


def test_a_broker_that_is_gone_is_told(tmp_path: Path) -> None:
    with connect("localhost:1", **{"socket.timeout.ms": 500}) as broker:
        for call in (broker.topics, lambda: broker.create_topic("lines"), lambda: broker.records("lines")):
            with pytest.raises(StreamsError, match=r"cannot .*: no answer from localhost:1 \(.*Connection refused\)"):
                call()


# -- partitions --------------------------------------------------------------------------------------------------------


def test_records_go_to_the_partition_that_java_chooses(broker: Broker) -> None:
    rows = [line.split("\t") for line in JAVA.read_text("utf-8").splitlines()]
    seven = broker.create_topic(unique("seven"), 7).name

    broker.produce(seven, [(bytes.fromhex(row[0]), None) for row in rows])

    found = {record.key: record.partition for record in broker.records(seven)}
    assert found == {bytes.fromhex(row[0]): int(row[4]) for row in rows}


def test_the_client_library_chooses_the_same_partitions(broker: Broker, kafka: DevBroker) -> None:
    keys = [b"%d-" % number + b"x" * (number % 9) for number in range(700)]
    ours, theirs = (broker.create_topic(unique(name), 5).name for name in ("ours", "theirs"))

    broker.produce(ours, [(key, None) for key in keys])
    producer = Producer({"bootstrap.servers": kafka.address, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs, key=key)
    producer.flush()

    chosen = [{record.key: record.partition for record in broker.records(topic)} for topic in (ours, theirs)]
    assert chosen[0] == chosen[1]


def test_records_without_a_key_go_to_the_partitions_in_turn(kafka: DevBroker) -> None:
    topic = unique("three")
    with connect(kafka.address) as broker:
        broker.create_topic(topic, 3)
        broker.produce(topic, [(None, b"0"), (b"k", b""), (None, b"1"), (None, b"2"), (None, b"3")], None)
        broker.produce(topic, [(None, b"4"), (None, b"5")])
        ends = broker.end_offsets(topic)
    with connect(kafka.address) as another:
        placed = {record.value: record.partition for record in another.records(topic)}
        assert [placed[b"%d" % number] for number in range(6)] == [0, 1, 2, 0, 1, 2]

        another.produce(topic, [(None, b"next")])

        changed = another.end_offsets(topic)
        assert [place for place in ends if ends[place] != changed[place]] == [sum(ends.values()) % 3]


def test_a_given_partition_wins_over_the_key(broker: Broker) -> None:
    two = broker.create_topic(unique("two"), 2).name

    broker.produce(two, [(b"a", b"1"), (b"b", b"2"), (None, b"3")], partition=1)

    assert broker.end_offsets(two) == {0: 0, 1: 3}


@pytest.mark.parametrize("partition", [2, -1, "0", True])
def test_a_partition_that_is_not_there_is_an_error(broker: Broker, partition: Any) -> None:
    two = broker.create_topic(unique("two"), 2).name
    expected = f"topic '{two}': expected a partition from 0 to 1, got {partition!r}"

    with pytest.raises(TopicError) as produced:
        broker.produce(two, [(None, b"v")], partition)
    with pytest.raises(TopicError) as started:
        broker.records(two, start={partition: 0})

    assert {str(produced.value), str(started.value)} == {expected}


# -- reading -----------------------------------------------------------------------------------------------------------


def test_an_empty_topic_has_no_records(broker: Broker, lines: str) -> None:
    assert list(broker.records(lines)) == []


def test_many_records_come_in_the_order_of_their_partition(broker: Broker) -> None:
    topic = broker.create_topic(unique("many"), 3).name
    broker.produce(topic, [(b"%d" % number, b"%d" % number) for number in range(120_000)])

    found: dict[int, list[TopicRecord]] = {0: [], 1: [], 2: []}
    for record in broker.records(topic):
        found[record.partition].append(record)

    assert sum(map(len, found.values())) == 120_000
    for records in found.values():
        numbers = [int(record.value or b"") for record in records]
        assert numbers == sorted(numbers)
        assert [record.offset for record in records] == list(range(len(records)))


def test_reading_begins_at_the_given_offsets(broker: Broker) -> None:
    two = broker.create_topic(unique("two"), 2).name
    for partition in (0, 1):
        broker.produce(two, [(None, b"%d-%d" % (partition, n)) for n in range(3)], partition)

    assert sorted(values(broker, two, start={0: 2, 1: 1})) == [b"0-2", b"1-1", b"1-2"]  # type: ignore[type-var]
    assert values(broker, two, start={0: 3}) == [b"1-0", b"1-1", b"1-2"]
    assert values(broker, two, start={0: 99, 1: 99}) == []


def test_reading_stops_at_the_end_at_the_time_of_the_call(broker: Broker, lines: str) -> None:
    broker.produce(lines, [(None, b"before")])
    reader = broker.records(lines)

    broker.produce(lines, [(None, b"after")])

    assert [record.value for record in reader] == [b"before"]


def test_a_reader_gets_what_is_there_and_what_comes(broker: Broker, lines: str) -> None:
    broker.produce(lines, [(None, b"there")])
    reader = broker.records(lines, until_end=False)
    assert next(reader).value == b"there"

    with meanwhile(lambda: broker.produce(lines, [(None, b"one"), (None, b"two")])):
        assert [record.value for record in islice(reader, 2)] == [b"one", b"two"]


def test_a_reader_can_begin_at_the_end_or_after_it(broker: Broker, lines: str) -> None:
    broker.produce(lines, [(None, b"old")])
    at_end = broker.records(lines, start=broker.end_offsets(lines), until_end=False)
    after = broker.records(lines, start={0: 3}, until_end=False)

    broker.produce(lines, [(None, b"%d" % number) for number in (1, 2, 3)])

    assert next(at_end).value == b"1"
    assert next(after).value == b"3"


def test_a_waiting_reader_is_told_when_the_topic_is_deleted(broker: Broker, lines: str) -> None:
    reader = broker.records(lines, until_end=False)

    with (
        meanwhile(lambda: broker.delete_topic(lines)),
        pytest.raises(TopicError, match="was deleted while it was being read"),
    ):
        next(reader)


def test_a_waiting_reader_is_told_when_the_broker_is_closed(kafka: DevBroker, lines: str) -> None:
    broker = connect(kafka.address)
    reader = broker.records(lines, until_end=False)

    with meanwhile(broker.close), pytest.raises(TopicError, match=f"was closed while topic '{lines}' was being read"):
        next(reader)


def test_a_waiting_reader_outlives_a_crash_of_the_broker(kafka: DevBroker, broker: Broker, lines: str) -> None:
    broker.produce(lines, [(None, b"before")])
    reader = broker.records(lines, until_end=False)
    assert next(reader).value == b"before"

    kafka.kill()
    kafka.start()
    broker.produce(lines, [(None, b"after")])

    assert next(reader).value == b"after"


def test_threads_share_a_broker(broker: Broker) -> None:
    topic = broker.create_topic(unique("shared"), 4).name

    def produce(thread: int) -> None:
        for n in range(20):
            broker.produce(topic, [(None, b"%d %d" % (thread, n)) for _ in range(5)])

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = values(broker, topic)
    assert len(found) == 4 * 20 * 5
    assert {found.count(value) for value in found} == {5}


# -- transactions and gaps ---------------------------------------------------------------------------------------------


@pytest.fixture
def transactions(kafka: DevBroker) -> Producer:
    """Return a producer of transactions."""
    producer = Connection(kafka.address).producer(**{"transactional.id": unique("test")})
    producer.init_transactions(30)
    return producer


def write(producer: Producer, topic: str, *values: bytes, commit: bool | None) -> None:
    """Write records in a transaction, and commit, abort, or leave it open."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush()
    if commit is not None:
        (producer.commit_transaction if commit else producer.abort_transaction)(30)


def test_aborted_transactions_are_not_seen(broker: Broker, lines: str, transactions: Producer) -> None:
    write(transactions, lines, b"one", b"two", commit=True)
    write(transactions, lines, b"gone", b"gone", commit=False)
    write(transactions, lines, b"three", commit=True)
    write(transactions, lines, b"gone", commit=False)

    assert [(r.offset, r.value) for r in broker.records(lines)] == [(0, b"one"), (1, b"two"), (6, b"three")]
    assert values(broker, lines, read_committed=False) == [b"one", b"two", b"gone", b"gone", b"three", b"gone"]
    assert broker.end_offsets(lines) == {0: 10}


def test_reading_begins_anywhere_in_a_gap(broker: Broker, lines: str, transactions: Producer) -> None:
    write(transactions, lines, b"one", commit=True)
    write(transactions, lines, b"gone", commit=False)

    assert [values(broker, lines, start={0: offset}) for offset in range(5)] == [[b"one"], [], [], [], []]


def test_an_open_transaction_is_not_waited_for(broker: Broker, lines: str, transactions: Producer) -> None:
    broker.produce(lines, [(None, b"before")])
    write(transactions, lines, b"open", commit=None)
    broker.produce(lines, [(None, b"after")])

    assert values(broker, lines) == [b"before"]
    assert values(broker, lines, read_committed=False) == [b"before", b"open", b"after"]
    transactions.commit_transaction(30)
    following = broker.records(lines, until_end=False)  # a commit shows a moment later
    assert [record.value for record in islice(following, 3)] == [b"before", b"open", b"after"]


def test_compaction_and_transactions_leave_gaps_at_the_end(
    broker: Broker, kafka: DevBroker, transactions: Producer
) -> None:
    topic = unique("table")
    settings = {"min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
    create_topic(Admin(Connection(kafka.address)), TopicInfo(topic, 1, compact=True), settings=settings)
    # A second later a new segment begins, and only earlier segments are cleaned.
    broker.produce(topic, [(b"a", b"%d" % number, 1000) for number in range(4)])
    transactions.begin_transaction()
    transactions.produce(topic, b"gone", b"a", 0)
    transactions.flush()
    transactions.abort_transaction(30)
    while len(found := list(broker.records(topic))) > 1:
        pass

    assert [(record.offset, record.value) for record in found] == [(3, b"3")]
    assert [values(broker, topic, start={0: offset}) for offset in (1, 3, 4, 5)] == [[b"3"], [b"3"], [], []]
    assert broker.end_offsets(topic) == {0: 6}


def test_deleted_records_at_the_front_are_skipped(broker: Broker, kafka: DevBroker, lines: str) -> None:
    broker.produce(lines, [(None, b"%d" % number) for number in range(5)])
    admin = Connection(kafka.address).admin()
    for done in admin.delete_records([TopicPartition(lines, 0, 3)]).values():
        done.result()

    assert [(record.offset, record.value) for record in broker.records(lines)] == [(3, b"3"), (4, b"4")]
    assert values(broker, lines, start={0: 1}) == [b"3", b"4"]
    for done in admin.delete_records([TopicPartition(lines, 0, 5)]).values():
        done.result()
    assert values(broker, lines) == []


def test_a_reader_whose_next_record_was_deleted_goes_on_with_the_first(
    broker: Broker, kafka: DevBroker, lines: str
) -> None:
    reader = broker.records(lines, until_end=False)
    broker.produce(lines, [(None, b"%d" % number) for number in range(5)])
    admin = Connection(kafka.address).admin()
    for done in admin.delete_records([TopicPartition(lines, 0, 3)]).values():
        done.result()

    assert [record.value for record in islice(reader, 2)] == [b"3", b"4"]
