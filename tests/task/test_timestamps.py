"""Timestamp extractors in the queues of a task (`headrace.task.queues`): which time a record has."""

import logging
import time
from typing import Any

import pytest

from headrace import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    Processor,
    Record,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
    TaskError,
    Topology,
    TumblingWindows,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
    serdes,
)
from headrace.task.task import Task
from headrace.testing import TopologyTestDriver
from headrace.topology.timestamps import TimestampExtractor
from tests.task.tasks import lane, outputs, processing, raw_lane, task_of

READY_MADE = [
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
]


def through(extractor: TimestampExtractor | None, **settings: Any) -> Task:
    """Make a task that passes records on with the timestamps that an extractor gives."""
    topology = Topology().add_source("source", "in", timestamp_extractor=extractor).add_sink("sink", "out", "source")
    return task_of(topology, StreamsConfig(application_id="app", **settings))


def timestamps(task: Task, *records: tuple[int, Any]) -> list[int]:
    """Feed (timestamp, value) pairs to partition 0; return the timestamps that come out."""
    task.process_lanes([lane("in", records)])
    return [timestamp for _, _, _, _, timestamp, _ in outputs(task)]


# -- ready-made -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extractor", READY_MADE)
def test_a_valid_timestamp_is_taken_as_it_is(extractor: TimestampExtractor) -> None:
    assert extractor(Record("k", 1, 42), 100) == 42
    assert timestamps(through(extractor), (42, 1), (0, 2), (7, 3)) == [42, 0, 7]


def test_fail_on_invalid_timestamp_fails_and_says_what_else_there_is() -> None:
    with pytest.raises(StreamsError, match=r"the record's timestamp is negative \(-1\)\. .*UsePartitionTimeOnInvalid"):
        FailOnInvalidTimestamp(Record("k", 1, -1), 100)


def test_a_negative_timestamp_fails_by_default() -> None:
    with pytest.raises(
        TaskError,
        match=r"^step 'source', topic 'in', partition 0, offset 1, key 'k': "
        r"the timestamp cannot be extracted: the record's timestamp is negative \(-5\)",
    ):
        timestamps(through(None), (1, 1), (-5, 2))


def test_log_and_skip_drops_the_record_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    task = through(LogAndSkipOnInvalidTimestamp)

    with caplog.at_level(logging.WARNING):
        assert timestamps(task, (1, 1), (-5, 2), (3, 3)) == [1, 3]

    assert task.dropped_records == 1
    assert "skipped a record with key 'k': its timestamp is negative (-5)" in caplog.text


def test_use_partition_time_takes_the_largest_timestamp_so_far() -> None:
    task = through(UsePartitionTimeOnInvalidTimestamp)

    assert timestamps(task, (10, 1), (4, 2), (-1, 3), (12, 4), (-1, 5)) == [10, 4, 10, 12, 12]


def test_use_partition_time_fails_when_there_is_none_yet() -> None:
    with pytest.raises(TaskError, match=r"offset 0, .* timestamp is negative \(-1\) and its partition has no time yet"):
        timestamps(through(UsePartitionTimeOnInvalidTimestamp), (-1, 1))


def test_partition_time_is_kept_for_each_partition() -> None:
    task = through(UsePartitionTimeOnInvalidTimestamp)

    task.process_lanes([lane("in", [(10, 1), (-1, 2)], partition=0), lane("in", [(50, 3), (-1, 4)], partition=1)])

    assert sorted(timestamp for _, _, _, _, timestamp, _ in outputs(task)) == [10, 10, 50, 50]


def test_the_wall_clock_extractor_takes_the_time_of_now() -> None:
    before = int(time.time() * 1000)
    [taken] = timestamps(through(WallclockTimestampExtractor), (-7, 1))
    after = int(time.time() * 1000)

    assert before <= taken <= after


# -- of your own ------------------------------------------------------------------------------------------------------


def test_a_timestamp_may_come_from_the_value() -> None:
    builder = StreamsBuilder()
    builder.stream("in", timestamp_extractor=lambda record, partition_time: record.value["at"]).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", {"at": 123}, timestamp=9)

        assert driver.create_output_topic("out").read_record().timestamp == 123


def test_an_extractor_sees_the_whole_record() -> None:
    seen: list[Record[Any, Any]] = []

    def look(record: Record[Any, Any], partition_time: int) -> int:
        seen.append(record)
        return 0

    task = through(look)
    task.process_lanes([raw_lane("in", 0, [(0, 5, b"key", b'{"v":1}', [("h", b"x")]), (1, 6, None, None, None)])])

    assert seen == [Record("key", {"v": 1}, 5, [("h", b"x")]), Record(None, None, 6)]


def test_an_extractor_that_changes_headers_does_not_change_the_record() -> None:
    def spoil(record: Record[Any, Any], partition_time: int) -> int:
        record.headers.append(("spoiled", b""))
        return record.timestamp

    task = through(spoil)
    task.process_lanes([raw_lane("in", 0, [(0, 5, b"k", b"1", [("h", b"x")]), (1, 5, b"k", b"1", None)])])

    assert [headers for *_, headers in outputs(task)] == [[("h", b"x")], []]


def test_partition_time_is_that_of_the_records_before() -> None:
    seen: list[int] = []

    def from_value(record: Record[Any, Any], partition_time: int) -> int:
        seen.append(partition_time)
        return int(record.value)

    assert timestamps(through(from_value), (0, 2), (0, 1), (0, 3), (0, 4)) == [2, 1, 3, 4]
    assert seen == [-1, 2, 2, 3]


def test_it_is_the_same_when_several_partitions_are_read_together() -> None:
    seen: list[int] = []

    def from_value(record: Record[Any, Any], partition_time: int) -> int:
        if record.value < 100:
            seen.append(partition_time)
        return int(record.value)

    task = through(from_value)
    task.process_lanes([lane("in", [(0, 2), (0, 1), (0, 3), (0, 4)], partition=0), lane("in", [(0, 100)], partition=1)])

    assert seen == [-1, 2, 2, 3]


def test_records_that_are_skipped_leave_the_partition_time_as_it_was() -> None:
    seen: list[int] = []

    def from_value(record: Record[Any, Any], partition_time: int) -> int:
        seen.append(partition_time)
        return int(record.value)

    task = through(from_value)

    assert timestamps(task, (0, 5), (0, -1), (0, 6)) == [5, 6]
    assert seen == [-1, 5, 5]
    assert task.dropped_records == 1


def test_an_extracted_time_may_be_negative_to_skip_a_record_of_a_source_only() -> None:
    topology = Topology().add_source("some", "some", timestamp_extractor=lambda record, partition_time: -1)
    topology.add_source("all", "all").add_sink("sink", "out", "some", "all")
    task = task_of(topology)

    task.process_lanes([lane("some", [(1, 1)]), lane("all", [(2, 2)])])

    assert [value for _, _, _, value, _, _ in outputs(task)] == [b"2"]


# -- mistakes ---------------------------------------------------------------------------------------------------------


def test_an_extractor_that_fails_names_the_record() -> None:
    with pytest.raises(
        TaskError,
        match=r"^step 'source', topic 'in', partition 0, offset 0, key 'k': the timestamp cannot be extracted: .*'at'",
    ) as caught:
        timestamps(through(lambda record, partition_time: record.value["at"]), (0, '{"other": 1}'))
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("extracted", [None, "now", 1.5])
def test_an_extractor_must_give_a_whole_number(extracted: Any) -> None:
    kind = type(extracted).__name__

    with pytest.raises(
        TaskError,
        match=rf"^step 'source', topic 'in', partition 0, offset 0, .* extractor must return an int, got {kind}",
    ):
        timestamps(through(lambda record, partition_time: extracted), (0, 1))


@pytest.mark.parametrize("handler", ["processing_exception_handler", "deserialization_exception_handler"])
def test_no_handler_is_asked_about_a_failing_extractor(handler: str) -> None:
    with pytest.raises(TaskError, match=r"the timestamp cannot be extracted"):
        timestamps(through(FailOnInvalidTimestamp, **{handler: "LogAndContinue"}), (-1, 1))


def test_a_failing_extractor_is_named_by_its_own_record_among_several_partitions() -> None:
    def even_only(record: Record[Any, Any], partition_time: int) -> int:
        if record.value % 2:
            raise ValueError("odd")
        return int(record.value)

    task = through(even_only)

    with pytest.raises(TaskError, match=r"topic 'in', partition 1, offset 31, key 'k': .*odd"):
        task.process_lanes(
            [lane("in", [(0, 0), (0, 2)], partition=0), lane("in", [(0, 4), (0, 7)], partition=1, first_offset=30)]
        )


# -- which extractor --------------------------------------------------------------------------------------------------


def test_the_configured_extractor_is_used_where_a_source_has_none() -> None:
    topology = (
        Topology()
        .add_source("default", "default")
        .add_source("own", "own", timestamp_extractor=lambda record, partition_time: 1000)
        .add_sink("sink", "out", "default", "own")
    )
    config = {"default_timestamp_extractor": lambda record, partition_time: record.timestamp + 1}

    with TopologyTestDriver(topology, config) as driver:
        driver.create_input_topic("default").pipe_input("k", 1, 5)
        driver.create_input_topic("own").pipe_input("k", 1, 5)

        assert [record.timestamp for record in driver.create_output_topic("out").read_records()] == [6, 1000]


def test_tables_and_global_tables_have_extractors_too() -> None:
    builder = StreamsBuilder()
    builder.table("t", timestamp_extractor=lambda record, partition_time: 77, store="t")
    builder.global_table("g", timestamp_extractor=lambda record, partition_time: 88, store="g")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("t").pipe_input("k", 1)
        driver.create_input_topic("g").pipe_input("k", 1)

        assert driver.timestamped_store("t").get("k").timestamp == 77
        assert driver.timestamped_store("g").get("k").timestamp == 88


def test_records_of_an_internal_topic_keep_the_time_they_were_written_with() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by(lambda key, value: "all").windowed_by(TumblingWindows(10))
    grouped.count().to_stream(lambda key, count: key.key).to("out", key_serde=serdes.String)
    config = {"default_timestamp_extractor": lambda record, partition_time: record.value["at"]}

    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("in").pipe_input("k", {"at": 55}, timestamp=0)

        assert driver.create_output_topic("out").read_record().timestamp == 55


def test_a_processor_sees_the_extracted_time() -> None:
    seen: list[tuple[int, int]] = []

    def note(context: Any, record: Record[Any, Any]) -> None:
        seen.append((record.timestamp, context.current_stream_time()))

    supplier: type[Processor[Any, Any]] | Any = processing(note)
    topology = Topology().add_source("source", "in", timestamp_extractor=lambda record, _: int(record.value))
    topology.add_processor("note", supplier, "source")
    task = task_of(topology)

    task.process_lanes([lane("in", [(0, 30), (0, 20)])])

    assert seen == [(30, 30), (20, 30)]
