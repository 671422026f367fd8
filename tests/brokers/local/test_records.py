"""`broker`, `reading` and `writing`: readers get what was produced."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.brokers import LocalBroker, TopicRecord
from headrace.brokers.broker import Produced
from headrace.errors import TopicError


@pytest.fixture
def lines(broker: LocalBroker) -> LocalBroker:
    broker.create_topic("lines")
    return broker


def values(broker: LocalBroker, topic: str = "lines", **options: Any) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, **options)]


def test_a_record_has_all_its_parts(lines: LocalBroker) -> None:
    headers = [("trace", b"\x00\xff"), ("trace", b"again"), ("", b"")]

    assert lines.produce("lines", [(b"k", b"v", 1234, headers)]) == 1

    assert list(lines.records("lines")) == [TopicRecord("lines", 0, 0, 1234, b"k", b"v", headers)]


def test_null_is_not_empty(lines: LocalBroker) -> None:
    lines.produce("lines", [(None, None, 0), (b"", b"", 0)])

    assert [(record.key, record.value) for record in lines.records("lines")] == [(None, None), (b"", b"")]


def test_headers_may_be_empty_or_missing(lines: LocalBroker) -> None:
    lines.produce("lines", [(b"k", b"v"), (b"k", b"v", 0), (b"k", b"v", 0, []), (b"k", b"v", 0, None)])  # type: ignore[list-item]

    assert [record.headers for record in lines.records("lines")] == [[], [], [], []]


def test_without_a_timestamp_it_is_now(lines: LocalBroker) -> None:
    before = int(time.time() * 1000)
    lines.produce("lines", [(b"k", b"v"), (b"k", b"v", None)])
    after = int(time.time() * 1000)

    first, second = (record.timestamp for record in lines.records("lines"))
    assert before <= first == second <= after


@pytest.mark.parametrize("timestamp", [0, 1, 2**63 - 1])
def test_timestamps_are_kept_as_they_are(lines: LocalBroker, timestamp: int) -> None:
    lines.produce("lines", [(b"k", b"v", timestamp)])

    assert next(lines.records("lines")).timestamp == timestamp


def test_records_have_the_order_of_producing_not_of_time(lines: LocalBroker) -> None:
    lines.produce("lines", [(b"k", b"1", 300), (b"k", b"2", 100)])
    lines.produce("lines", [(b"k", b"3", 200)])

    assert [(record.offset, record.timestamp) for record in lines.records("lines")] == [(0, 300), (1, 100), (2, 200)]


def test_offsets_are_counted_for_each_partition(broker: LocalBroker) -> None:
    broker.create_topic("two", 2)
    broker.produce("two", [(None, b"a"), (None, b"b")], partition=0)
    broker.produce("two", [(None, b"c")], partition=1)
    broker.produce("two", [(None, b"d")], partition=0)

    assert [(r.partition, r.offset, r.value) for r in broker.records("two")] == [
        (0, 0, b"a"),
        (0, 1, b"b"),
        (0, 2, b"d"),
        (1, 0, b"c"),
    ]
    assert broker.end_offsets("two") == {0: 3, 1: 1}


def test_records_of_one_topic_are_not_in_another(lines: LocalBroker) -> None:
    lines.create_topic("other")
    lines.produce("other", [(None, b"x")])

    assert values(lines) == []


def test_producing_nothing_writes_nothing(lines: LocalBroker) -> None:
    assert lines.produce("lines", []) == 0
    assert lines.end_offsets("lines") == {0: 0}


def test_records_may_come_from_a_generator_and_as_lists(lines: LocalBroker) -> None:
    assert lines.produce("lines", ([None, str(n).encode()] for n in range(3))) == 3  # type: ignore[misc]

    assert values(lines) == [b"0", b"1", b"2"]


def test_reading_begins_at_the_given_offsets(broker: LocalBroker) -> None:
    broker.create_topic("two", 2)
    for partition in (0, 1):
        broker.produce("two", [(None, b"%d-%d" % (partition, n)) for n in range(3)], partition)

    assert values(broker, "two", start={0: 2, 1: 1}) == [b"0-2", b"1-1", b"1-2"]
    assert values(broker, "two", start={0: 3}) == [b"1-0", b"1-1", b"1-2"]
    assert values(broker, "two", start={0: 99, 1: 99}) == []


def test_reading_stops_at_the_end_at_the_time_of_the_call(lines: LocalBroker) -> None:
    lines.produce("lines", [(None, b"before")])
    reader = lines.records("lines")

    lines.produce("lines", [(None, b"after")])

    assert [record.value for record in reader] == [b"before"]


def test_many_records_come_in_order(lines: LocalBroker) -> None:
    lines.produce("lines", [(None, str(n).encode(), n) for n in range(3_500)])

    assert [(record.offset, record.value) for record in lines.records("lines")] == [
        (n, str(n).encode()) for n in range(3_500)
    ]


def test_a_range_goes_from_one_offset_to_before_another(lines: LocalBroker) -> None:
    lines.produce("lines", [(None, str(n).encode()) for n in range(10)])

    assert [record.offset for record in lines.range("lines", 0, 3, 6)] == [3, 4, 5]
    assert list(lines.range("lines", 0, 6, 6)) == []
    assert [record.offset for record in lines.range("lines", 0, 8, 100)] == [8, 9]


def test_large_values_are_kept(lines: LocalBroker) -> None:
    large = bytes(range(256)) * 40_000

    lines.produce("lines", [(b"k", large)])

    assert values(lines) == [large]


def failing() -> Iterator[Produced]:
    yield (None, b"good")
    raise RuntimeError("the source of records failed")


def test_a_failing_source_of_records_leaves_nothing(lines: LocalBroker) -> None:
    with pytest.raises(RuntimeError, match="the source of records failed"):
        lines.produce("lines", failing())

    assert values(lines) == []
    assert lines.end_offsets("lines") == {0: 0}


WRONG: list[tuple[str, Any, str]] = [
    ("no tuple", b"value", r"expected \(key, value\), \(key, value, timestamp\) or .* got b'value'"),
    ("too short", (b"k",), r"expected \(key, value\), .* got \(b'k',\)"),
    ("too long", (b"k", b"v", 0, [], 1), r"expected \(key, value\), .* got \(b'k', b'v', 0, \[\], 1\)"),
    ("key of text", ("k", b"v"), r"expected the key as bytes or None, got str \('k'\). Serialize it first"),
    ("value of text", (b"k", "v"), r"expected the value as bytes or None, got str \('v'\). Serialize it first"),
    ("number", (b"k", 7), r"expected the value as bytes or None, got int \(7\)"),
    ("bytearray", (b"k", bytearray(b"v")), r"expected the value as bytes or None, got bytearray"),
    ("float timestamp", (b"k", b"v", 1.5), "expected the timestamp in whole milliseconds since 1970, got 1.5"),
    ("bool timestamp", (b"k", b"v", True), "expected the timestamp in whole milliseconds since 1970, got True"),
    ("negative timestamp", (b"k", b"v", -1), "expected the timestamp in whole milliseconds since 1970, got -1"),
    ("timestamp of the far future", (b"k", b"v", 2**63), "expected the timestamp in whole .* got 9223372036854775808"),
    ("headers as a dict", (b"k", b"v", 0, {"a": b"b"}), r"expected the headers as a list of \(str, bytes\), got {'a'"),
    ("header of text", (b"k", b"v", 0, [("a", "b")]), r"the headers as a list of \(str, bytes\), got \[\('a', 'b'\)\]"),
    ("header without a value", (b"k", b"v", 0, ["ab"]), r"the headers as a list of \(str, bytes\), got \['ab'\]"),
    ("header of three", (b"k", b"v", 0, [("a", b"b", 1)]), r"the headers as a list of \(str, bytes\)"),
    ("header name of bytes", (b"k", b"v", 0, [(b"a", b"b")]), r"the headers as a list of \(str, bytes\)"),
    ("header name that is no text", (b"k", b"v", 0, [("\ud800", b"b")]), r"the headers as a list of \(str, bytes\)"),
    ("headers as a number", (b"k", b"v", 0, 7), r"the headers as a list of \(str, bytes\), got 7"),
]


@pytest.mark.parametrize(("record", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_one_wrong_record_in_the_middle_leaves_nothing(lines: LocalBroker, record: Any, message: str) -> None:
    with pytest.raises(TopicError, match=f"^topic 'lines': .*{message}"):
        lines.produce("lines", [(b"a", b"1"), record, (b"b", b"2")])

    assert values(lines) == []
    assert lines.end_offsets("lines") == {0: 0}


@pytest.mark.parametrize("partition", [2, -1, "0", 0.0, True])
def test_a_partition_that_is_not_there_is_an_error(broker: LocalBroker, partition: Any) -> None:
    broker.create_topic("two", 2)
    expected = f"topic 'two': expected a partition from 0 to 1, got {partition!r}"

    with pytest.raises(TopicError) as produced:
        broker.produce("two", [(None, b"v")], partition)
    with pytest.raises(TopicError) as read:
        broker.range("two", partition, 0, 1)
    with pytest.raises(TopicError) as started:
        broker.records("two", start={partition: 0})

    assert {str(produced.value), str(read.value), str(started.value)} == {expected}
    assert broker.end_offsets("two") == {0: 0, 1: 0}


@pytest.mark.parametrize("offset", [-1, "0", None, 1.0])
def test_an_offset_to_start_with_is_a_number(lines: LocalBroker, offset: Any) -> None:
    with pytest.raises(TopicError) as raised:
        lines.records("lines", start={0: offset})
    assert str(raised.value) == f"topic 'lines', partition 0: expected an offset of at least 0, got {offset!r}"
