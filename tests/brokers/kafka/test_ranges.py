"""`ranges`: reading ranges of topic partitions."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from confluent_kafka import Producer, TopicPartition

from headrace.brokers import TopicInfo
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.broker import KafkaBroker
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.ranges import RangeReader
from headrace.brokers.kafka.topics import create_topic
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import TopicError
from headrace.raw_records import RawRecord
from tests.kafka.naming import unique
from tests.kafka.transactions import settled, transactional, wait_until, write

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

MANY = 60_000


@pytest.fixture
def reader(kafka: DevBroker) -> Iterator[RangeReader]:
    reader = RangeReader(Connection(kafka.address))
    yield reader
    reader.close()


@pytest.fixture
def transactions(kafka: DevBroker) -> Producer:
    return transactional(kafka.address, unique("test"))


@pytest.fixture
def lines(broker: KafkaBroker) -> str:
    return broker.create_topic(unique("lines"), 2).name


def rows(reader: RangeReader, topic: str, start: int, end: int, partition: int = 0) -> list[RawRecord]:
    return [row for page in reader.pages(topic, partition, start, end) for row in page]


def offsets(reader: RangeReader, topic: str, start: int, end: int, partition: int = 0) -> list[int]:
    return [row[0] for row in rows(reader, topic, start, end, partition)]


def delete_before(kafka: DevBroker, topic: str, offset: int) -> None:
    admin = Connection(kafka.address).admin()
    for done in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        done.result()


# -- what a row is -----------------------------------------------------------------------------------------------------


def test_a_row_has_all_its_parts(broker: KafkaBroker, lines: str) -> None:
    headers = [("trace", b"\x00\xff"), ("trace", b"again"), ("", b"")]
    broker.produce(lines, [(b"k", b"v", 7), (None, None, 8, headers), (b"", b"", 9)], 1)

    assert [row for page in broker.read_range(lines, 1, 0, 3) for row in page] == [
        (0, 7, b"k", b"v", None, 0),
        (1, 8, None, None, headers, 1),
        (2, 9, b"", b"", None, 2),
    ]


def test_a_header_without_a_value_is_read_as_empty(
    broker: KafkaBroker, reader: RangeReader, transactions: Producer, lines: str
) -> None:
    transactions.begin_transaction()
    transactions.produce(lines, b"v", partition=0, headers=[("null", None), ("some", b"x"), ("null", None)])
    transactions.commit_transaction(30)
    settled(broker, lines)

    assert rows(reader, lines, 0, 2)[0][4] == [("null", b""), ("some", b"x"), ("null", b"")]


def test_many_records_come_in_pages_and_in_order(broker: KafkaBroker, reader: RangeReader, lines: str) -> None:
    broker.produce(lines, [(None, b"%d" % number + bytes(500)) for number in range(MANY)], 0)

    pages = list(reader.pages(lines, 0, 0, MANY))

    assert len(pages) > 1
    assert [row[0] for page in pages for row in page] == list(range(MANY))
    assert all(row[3] == b"%d" % row[0] + bytes(500) for page in pages for row in page)


# -- ranges ------------------------------------------------------------------------------------------------------------


def test_a_range_is_that_of_the_offsets(broker: KafkaBroker, reader: RangeReader, lines: str) -> None:
    for partition in (0, 1):
        broker.produce(lines, [(None, b"%d %d" % (partition, n)) for n in range(10)], partition)

    assert [row[3] for row in rows(reader, lines, 3, 5, partition=1)] == [b"1 3", b"1 4"]
    assert offsets(reader, lines, 9, 10) == [9]
    assert offsets(reader, lines, 5, 5) == offsets(reader, lines, 7, 3) == []


def test_a_range_may_be_read_twice(broker: KafkaBroker, reader: RangeReader, lines: str) -> None:
    broker.produce(lines, [(None, b"")] * 100, 0)

    assert offsets(reader, lines, 10, 90) == offsets(reader, lines, 10, 90) == list(range(10, 90))


def test_ranges_one_after_the_other_have_all_records(broker: KafkaBroker, reader: RangeReader, lines: str) -> None:
    for partition in (0, 1):
        broker.produce(lines, [(None, b"%d %d" % (partition, n)) for n in range(1_000)], partition)

    cuts = [0, 1, 2, 400, 400, 999, 1_000]
    found = [
        row[3]
        for start, end in pairwise(cuts)
        for partition in (0, 1)
        for row in rows(reader, lines, start, end, partition)
    ]

    expected = [b"%d %d" % (p, n) for start, end in pairwise(cuts) for p in (0, 1) for n in range(start, end)]
    assert found == expected


def test_a_range_that_is_left_in_the_middle_does_not_disturb_the_next(
    broker: KafkaBroker, reader: RangeReader, lines: str
) -> None:
    broker.produce(lines, [(None, bytes(100))] * MANY, 0)
    left = reader.pages(lines, 0, 0, MANY)
    next(left)

    following = reader.pages(lines, 0, 20_000, MANY)
    begun = next(following)
    del left

    assert [row[0] for row in begun] + [row[0] for page in following for row in page] == list(range(20_000, MANY))


def test_ranges_may_be_read_side_by_side(broker: KafkaBroker, reader: RangeReader, lines: str) -> None:
    for partition in (0, 1):
        broker.produce(lines, [(None, bytes(100))] * MANY, partition)

    found: list[list[int]] = [[], []]
    for pages in zip(reader.pages(lines, 0, 0, MANY), reader.pages(lines, 1, 0, MANY)):
        for place, page in enumerate(pages):
            found[place] += [row[0] for row in page]

    shortest = min(map(len, found))
    assert found[0][:shortest] == found[1][:shortest] == list(range(shortest))
    assert shortest > 0


def test_a_broker_that_was_killed_is_waited_for(
    kafka: DevBroker, broker: KafkaBroker, reader: RangeReader, lines: str
) -> None:
    broker.produce(lines, [(None, b"")] * 10, 0)
    assert offsets(reader, lines, 0, 5) == list(range(5))

    kafka.kill()
    kafka.start()

    assert offsets(reader, lines, 5, 10) == list(range(5, 10))


# -- gaps --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def gaps(broker: KafkaBroker, transactions: Producer, lines: str) -> str:
    """Fill a partition: 0, 1 and 7 are committed records, 2 and 8 commit markers, 3 to 6 and 9 to 12 were aborted."""
    write(transactions, lines, b"0", b"1", commit=True)
    write(transactions, lines, *[b"gone"] * 3, commit=False)
    write(transactions, lines, b"7", commit=True)
    write(transactions, lines, *[b"gone"] * 3, commit=False)
    assert settled(broker, lines)[0] == 13
    return lines


def test_aborted_records_are_not_read(reader: RangeReader, gaps: str) -> None:
    assert [(row[0], row[3]) for row in rows(reader, gaps, 0, 13)] == [(0, b"0"), (1, b"1"), (7, b"7")]


def test_a_range_may_begin_and_end_anywhere(reader: RangeReader, gaps: str) -> None:
    for start in range(14):
        for end in range(start, 14):
            assert offsets(reader, gaps, start, end) == [n for n in (0, 1, 7) if start <= n < end], (start, end)


def test_a_range_ends_where_an_open_transaction_begins(
    broker: KafkaBroker, reader: RangeReader, transactions: Producer, gaps: str
) -> None:
    write(transactions, gaps, b"open", commit=None)
    end = broker.plan_batch({gaps: {0: 0}}, None)[gaps][0]

    assert end == 13
    assert offsets(reader, gaps, 7, end) == [7]
    assert offsets(reader, gaps, 9, end) == []
    transactions.commit_transaction(30)
    settled(broker, gaps)
    assert offsets(reader, gaps, 9, 15) == [13]


def test_compaction_leaves_gaps(kafka: DevBroker, broker: KafkaBroker, reader: RangeReader) -> None:
    topic = unique("table")
    settings = {"min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
    create_topic(Admin(Connection(kafka.address)), TopicInfo(topic, 1, compact=True), settings=settings)
    # A second later a new segment begins, and only earlier segments are cleaned.
    broker.produce(topic, [(b"%d" % (number % 2), b"%d" % number, 1000) for number in range(10)])
    broker.produce(topic, [(b"other", b"10"), (b"other", b"11")])

    wait_until(lambda: offsets(reader, topic, 0, 12) == [8, 9, 10, 11], "it was not compacted")

    assert [offsets(reader, topic, start, 12) for start in (3, 9, 11)] == [[8, 9, 10, 11], [9, 10, 11], [11]]
    assert [offsets(reader, topic, 0, end) for end in (5, 8, 9, 10)] == [[], [], [8], [8, 9]]


# -- what is gone ------------------------------------------------------------------------------------------------------


def test_a_start_that_was_deleted_is_an_error(
    kafka: DevBroker, broker: KafkaBroker, reader: RangeReader, lines: str
) -> None:
    broker.produce(lines, [(None, b"")] * 10, 0)
    delete_before(kafka, lines, 4)

    with pytest.raises(TopicError) as raised:
        rows(reader, lines, 2, 10)

    assert str(raised.value) == (
        f"topic '{lines}', partition 0: the records from offset 2 to 10 are gone from {kafka.address}. "
        "They were deleted, by retention or because the topic was deleted."
    )
    assert offsets(reader, lines, 4, 10) == list(range(4, 10))


def test_an_end_that_does_not_exist_is_an_error(kafka: DevBroker, broker: KafkaBroker, lines: str) -> None:
    broker.produce(lines, [(None, b"")] * 10, 0)
    hasty = RangeReader(Connection(kafka.address, {"socket.timeout.ms": 2_000}))

    with pytest.raises(TopicError, match=f"topic '{lines}', partition 0: the records from offset 5 to 20 are gone"):
        rows(hasty, lines, 5, 20)
    with pytest.raises(TopicError, match=f"topic '{lines}', partition 0: the records from offset 15 to 20 are gone"):
        rows(hasty, lines, 15, 20)
    hasty.close()


def test_a_topic_or_a_partition_that_is_not_there_is_an_error(reader: RangeReader, lines: str) -> None:
    for topic, partition in ((unique("nope"), 0), (lines, 7)):
        with pytest.raises(TopicError, match=f"topic '{topic}', partition {partition}: the records from offset 0 to 1"):
            rows(reader, topic, 0, 1, partition)
