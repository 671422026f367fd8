"""The topics of a test: pipe records in, read results out."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from headrace import Record, SerializationError, StreamsBuilder, TaskError, TopicError, TopologyError, serdes
from headrace.testing import TestInputTopic, TestOutputTopic, TopologyTestDriver

START = 1_559_383_200_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    """Pass "input1" through to "output1"; swap key (Long) and value (String) of "input2" into "output2"."""
    builder = StreamsBuilder()
    builder.stream("input1").to("output1")
    swapped = builder.stream("input2", key_serde=serdes.Long, value_serde=serdes.String).map(lambda k, v: (v, k))
    swapped.to("output2", key_serde=serdes.String, value_serde=serdes.Long)
    with TopologyTestDriver(
        builder.build(), {"default_key_serde": serdes.Bytes, "default_value_serde": serdes.Bytes}, 1000
    ) as driver:
        yield driver


def texts(driver: TopologyTestDriver, **options: Any) -> tuple[TestInputTopic, TestOutputTopic]:
    """Return both ends of the stream that passes through, for strings."""
    strings: dict[str, Any] = {"key_serde": serdes.String, "value_serde": serdes.String}
    return driver.create_input_topic("input1", **strings, **options), driver.create_output_topic("output1", **strings)


# -- piping and reading -----------------------------------------------------------------------------------------------


def test_a_value(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)

    source.pipe_input(None, "Hello")

    assert sink.read_value() == "Hello"
    assert sink.is_empty()


def test_several_values(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)

    source.pipe_values(["This", "is", "an", "example"])

    assert sink.queue_size() == 4
    assert sink.read_values() == ["This", "is", "an", "example"]
    assert sink.read_values() == []


def test_a_key_and_a_value(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)

    source.pipe_input("1", "Hello")

    assert sink.read_key_value() == ("1", "Hello")
    assert sink.is_empty()


def test_several_keys_and_values(driver: TopologyTestDriver) -> None:
    source, sink = driver.create_input_topic("input2"), driver.create_output_topic("output2")

    source.pipe_key_values([(0, "This"), (1, "is"), (2, "an"), (3, "example")])

    assert sink.read_key_values() == [("This", 0), ("is", 1), ("an", 2), ("example", 3)]


def test_the_last_value_of_every_key(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    source.pipe_key_values([("a", "1"), ("b", "2"), ("a", "3"), ("b", None)])

    assert sink.read_key_values_to_dict() == {"a": "3", "b": None}
    assert sink.is_empty()


def test_a_dict_needs_keys(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    source.pipe_input(None, "value")

    with pytest.raises(TopicError, match=r"^topic 'output1' has a record without a key: Record\(key=None, "):
        sink.read_key_values_to_dict()


def test_a_record_with_all_it_has(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    record = Record("k", "v", 77, [("foo", b"value"), ("bar", b""), ('"Aêñ"', b"x")])

    source.pipe_input(record)

    assert sink.read_record() == record


def test_several_records(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    records = [Record(str(number), "x", START + 15_000 * number) for number in range(4)]

    source.pipe_records(records)

    assert sink.read_records() == records


def test_a_null_key_and_a_null_value_are_none(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)

    source.pipe_input(None)

    assert sink.read_record() == Record(None, None, 1000)


def test_topics_are_read_apart(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    other_sink = driver.create_output_topic("output2")

    source.pipe_input("1", "Hello")
    assert sink.read_key_value() == ("1", "Hello")
    assert other_sink.is_empty()

    driver.create_input_topic("input2").pipe_input(1, "Hello")
    assert other_sink.read_key_value() == ("Hello", 1)
    assert sink.is_empty()


def test_two_handles_of_a_topic_share_its_queue(driver: TopologyTestDriver) -> None:
    source, one = texts(driver)
    _, other = texts(driver)
    source.pipe_values(["a", "b"])

    assert [one.read_value(), other.read_value()] == ["a", "b"]
    assert one.is_empty()


def test_a_topic_may_be_read_with_other_serdes_than_it_was_written_with(driver: TopologyTestDriver) -> None:
    source, _ = texts(driver)
    source.pipe_input("k", "7")

    assert driver.create_output_topic("output1").read_key_value() == (b"k", b"7")


# -- timestamps -------------------------------------------------------------------------------------------------------


def test_a_timestamp_may_be_given(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)

    source.pipe_input(None, "Hello", 3)
    source.pipe_input("k", "Kafka", timestamp=START)

    assert [record.timestamp for record in sink.read_records()] == [3, START]


def test_without_a_timestamp_it_is_the_wall_clock(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)

    source.pipe_input("k", "v")

    assert sink.read_record().timestamp == 1000


def test_a_topic_may_begin_at_a_time_and_stand_there(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver, start_timestamp=START)

    source.pipe_values(["Hello", "World"])
    source.advance_time(timedelta(seconds=2))
    source.pipe_values(["Kafka"])
    source.advance_time(5)
    source.pipe_values(["!"])

    assert [record.timestamp - START for record in sink.read_records()] == [0, 0, 2000, 2005]


@pytest.mark.parametrize("advance", [2000, timedelta(seconds=2)])
def test_a_topic_may_move_on_with_every_record(driver: TopologyTestDriver, advance: int | timedelta) -> None:
    source, sink = texts(driver, start_timestamp=START, auto_advance=advance)

    source.pipe_input(None, "Hello")
    source.pipe_input("k", "given", timestamp=7)
    source.pipe_key_values([("k", "Kafka"), ("k", "!")])

    assert [record.timestamp for record in sink.read_records()] == [START, 7, START + 2000, START + 4000]


def test_a_record_that_is_refused_does_not_move_the_time(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver, start_timestamp=0, auto_advance=10)

    with pytest.raises(TopicError):
        source.pipe_input("k", "v", headers=5)  # type: ignore[arg-type]
    source.pipe_input("k", "v")

    assert sink.read_record().timestamp == 0


@pytest.mark.parametrize("timestamp", ["now", 1.5])
def test_a_timestamp_is_whole_milliseconds(driver: TopologyTestDriver, timestamp: Any) -> None:
    source, _ = texts(driver)

    with pytest.raises(TopologyError, match=r"^topic 'input1', timestamp: expected a timedelta or whole milliseconds"):
        source.pipe_input("k", "v", timestamp)


def test_times_do_not_go_back(driver: TopologyTestDriver) -> None:
    source, _ = texts(driver)

    with pytest.raises(TopologyError, match=r"^advance_time: expected at least 0 ms, got -1 ms"):
        source.advance_time(-1)
    with pytest.raises(TopologyError, match=r"^auto_advance: expected at least 0 ms, got -86400000 ms"):
        texts(driver, auto_advance=timedelta(days=-1))
    with pytest.raises(TopologyError, match=r"^start_timestamp: expected at least 0 ms, got -5 ms"):
        texts(driver, start_timestamp=-5)


# -- headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        [("a", b"1"), ("b", b"2")],
        {"a": b"1", "b": b"2"},
        {"a": "1", "b": "2"},
        (("a", b"1"), ("b", "2")),
    ],
    ids=["pairs", "dict", "text", "tuple"],
)
def test_headers_may_be_pairs_or_a_dict(driver: TopologyTestDriver, headers: Any) -> None:
    source, sink = texts(driver)

    source.pipe_input("k", "v", headers=headers)

    assert sink.read_record().headers == [("a", b"1"), ("b", b"2")]


def test_a_name_may_come_more_than_once_in_headers(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)

    source.pipe_input("k", "v", headers=[("a", b"1"), ("a", b"2")])

    assert sink.read_record().headers == [("a", b"1"), ("a", b"2")]


def test_headers_changed_after_piping_or_reading_change_nothing(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    headers = [("a", b"1")]
    source.pipe_input("k", "v", headers=headers)
    source.pipe_input("k", "v", headers=headers)

    headers.append(("b", b"2"))
    sink.read_record().headers.append(("c", b"3"))

    assert sink.read_record().headers == [("a", b"1")]


@pytest.mark.parametrize("headers", [5, ["a"], [("a", 1)], {"a": None}, [(b"a", b"1")]], ids=repr)
def test_headers_of_another_shape_are_refused(driver: TopologyTestDriver, headers: Any) -> None:
    source, sink = texts(driver)

    with pytest.raises(TopicError, match=r"^topic 'input1': headers must be a dict, or pairs of a name and bytes"):
        source.pipe_input("k", "v", headers=headers)
    assert sink.is_empty()


# -- serdes -----------------------------------------------------------------------------------------------------------


def test_serdes_are_those_of_the_source_and_the_sink_where_none_are_given(driver: TopologyTestDriver) -> None:
    source, sink = driver.create_input_topic("input2"), driver.create_output_topic("output2")

    source.pipe_input(7, "text")

    assert sink.read_key_value() == ("text", 7)


def test_the_configured_serdes_are_used_where_source_and_sink_have_none(driver: TopologyTestDriver) -> None:
    source, sink = driver.create_input_topic("input1"), driver.create_output_topic("output1")

    source.pipe_input(b"k", b"v")

    assert sink.read_key_value() == (b"k", b"v")


def test_a_key_or_value_of_the_wrong_type_is_refused(driver: TopologyTestDriver) -> None:
    source = driver.create_input_topic("input2")

    with pytest.raises(SerializationError, match=r"^serdes.Long on topic 'input2': expected int, got str \('one'\)"):
        source.pipe_input("one", "Hello")
    with pytest.raises(SerializationError, match=r"^serdes.String on topic 'input2': expected str, got int \(2\)"):
        source.pipe_input(1, 2)


def test_bytes_that_the_source_cannot_read_fail_there(driver: TopologyTestDriver) -> None:
    source = driver.create_input_topic("input2", key_serde=serdes.String)

    with pytest.raises(TaskError, match=r"topic 'input2', partition 0, offset 0, .* expected 8 bytes, got 2"):
        source.pipe_input("1L", "Hello")


def test_a_failed_read_for_the_wrong_serde_leaves_the_record(driver: TopologyTestDriver) -> None:
    driver.create_input_topic("input2").pipe_input(1, "Hello")
    wrong = driver.create_output_topic("output2", key_serde=serdes.Long)

    with pytest.raises(SerializationError, match=r"^serdes.Long on topic 'output2': expected 8 bytes, got 5"):
        wrong.read_key_value()

    assert driver.create_output_topic("output2").read_key_value() == ("Hello", 1)


def test_what_is_not_a_serde_is_refused(driver: TopologyTestDriver) -> None:
    with pytest.raises(SerializationError, match=r"^value_serde: expected a serde such as serdes.String, got"):
        driver.create_input_topic("input1", value_serde=str)  # type: ignore[arg-type]
    with pytest.raises(SerializationError, match=r"^key_serde: expected a serde such as serdes.String, got"):
        driver.create_output_topic("output1", key_serde=str)  # type: ignore[arg-type]


# -- reading what is not there ----------------------------------------------------------------------------------------


def test_a_read_of_an_empty_topic_says_what_was_expected(driver: TopologyTestDriver) -> None:
    _, sink = texts(driver)

    with pytest.raises(TopicError) as caught:
        sink.read_record()
    assert str(caught.value) == ("topic 'output1' has no record to read (records waiting: none in any topic)")


def test_a_read_of_an_empty_topic_says_what_waits_elsewhere(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    source.pipe_values(["a", "b"])
    driver.create_input_topic("input2").pipe_input(1, "x")

    with pytest.raises(TopicError) as caught:
        driver.create_output_topic("outptu1").read_value()
    assert str(caught.value) == (
        "topic 'outptu1' has no record to read (records waiting: 'output1' (2), 'output2' (1))"
    )
    assert sink.queue_size() == 2


@pytest.mark.parametrize("read", ["read_record", "read_value", "read_key_value"])
def test_each_single_read_needs_a_record(driver: TopologyTestDriver, read: str) -> None:
    _, sink = texts(driver)

    with pytest.raises(TopicError, match=r"^topic 'output1' has no record to read"):
        getattr(sink, read)()


def test_reading_all_of_an_empty_topic_gives_nothing(driver: TopologyTestDriver) -> None:
    _, sink = texts(driver)

    assert (sink.read_records(), sink.read_values(), sink.read_key_values()) == ([], [], [])
    assert sink.read_key_values_to_dict() == {}
    assert (sink.is_empty(), sink.queue_size()) == (True, 0)


def test_a_topic_that_nobody_writes_is_empty(driver: TopologyTestDriver) -> None:
    assert driver.create_output_topic("nowhere").is_empty()


def test_a_topic_that_nobody_reads_cannot_be_piped_into(driver: TopologyTestDriver) -> None:
    with pytest.raises(TopicError, match=r"^the topology does not read topic 'nowhere' \(it reads: input1, input2\)"):
        driver.create_input_topic("nowhere")
    with pytest.raises(TopicError, match=r"^the topology does not read topic 'nowhere'"):
        driver.pipe("nowhere", b"k", b"v", 0, [])


def test_topics_show_themselves(driver: TopologyTestDriver) -> None:
    source, sink = texts(driver)
    source.pipe_input("k", "v")

    assert repr(source) == "TestInputTopic('input1', serdes.String, serdes.String)"
    assert repr(sink) == "TestOutputTopic('output1', serdes.String, serdes.String, 1 waiting)"
