"""`Task`: one sub-topology for one partition, record by record."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace import (
    Buffer,
    HoppingWindows,
    Materialized,
    Processor,
    PunctuationType,
    Record,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
    Suppressed,
    Topology,
    TumblingWindows,
    serdes,
)
from headrace.task.lanes import Lane
from headrace.task.task import Commit, Task
from tests.task.tasks import CONFIG, lane, outputs, processing, raw_lane, resumed, task_of, values


def two_sources() -> Topology:
    return Topology().add_source("one", "topic1").add_source("two", "topic2").add_sink("out", "out", "one", "two")


def counting(**options: Any) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(**options).to_stream().to("out", value_serde=serdes.Json)
    return builder.build()


# -- which record is next ---------------------------------------------------------------------------------------------


def test_the_record_with_the_lowest_timestamp_at_the_head_of_a_queue_is_next() -> None:
    task = task_of(two_sources())

    task.process_lanes(
        [lane("topic1", [(10, 101), (20, 102), (30, 103)]), lane("topic2", [(25, 201), (35, 202), (45, 203)])]
    )

    assert values(task) == ["101", "102", "201", "103", "202", "203"]


def test_records_of_a_partition_stay_in_their_order_however_late_they_are() -> None:
    task = task_of(two_sources())

    task.process_lanes(
        [lane("topic1", [(1, "1.1"), (5, "1.5"), (3, "1.3")]), lane("topic2", [(2, "2.2"), (4, "2.4"), (6, "2.6")])]
    )

    assert values(task) == ["1.1", "2.2", "2.4", "1.5", "1.3", "2.6"]


def test_a_tie_goes_to_the_partition_that_was_fed_first() -> None:
    task = task_of(two_sources())

    task.process_lanes([lane("topic2", [(5, 21), (5, 22)]), lane("topic1", [(5, 11), (5, 12)])])

    assert values(task) == ["21", "22", "11", "12"]


def test_partitions_of_one_topic_are_queues_of_their_own() -> None:
    task = task_of(Topology().add_source("source", "in").add_sink("out", "out", "source"))

    task.process_lanes(
        [lane("in", [(1, "0.1"), (4, "0.4")], partition=0), lane("in", [(2, "1.2"), (3, "1.3")], partition=1)]
    )

    assert values(task) == ["0.1", "1.2", "1.3", "0.4"]


def test_the_time_that_counts_is_the_extracted_one() -> None:
    def from_value(record: Record[Any, Any], partition_time: int) -> int:
        return int(record.value)

    topology = (
        Topology()
        .add_source("one", "topic1", timestamp_extractor=from_value)
        .add_source("two", "topic2", timestamp_extractor=from_value)
        .add_sink("out", "out", "one", "two")
    )
    task = task_of(topology)

    task.process_lanes([lane("topic1", [(0, 10), (0, 30)]), lane("topic2", [(99, 20), (99, 40)])])

    assert [(value, timestamp) for _, _, _, value, timestamp, _ in outputs(task)] == [
        (b"10", 10),
        (b"20", 20),
        (b"30", 30),
        (b"40", 40),
    ]


def test_nothing_happens_without_records() -> None:
    task = task_of(two_sources())

    causes = task.process_lanes([])

    assert outputs(task) == []
    assert len(causes) == 1


def test_a_topic_that_the_task_does_not_read_is_refused() -> None:
    with pytest.raises(StreamsError, match=r"^task 0_0 does not read topic 'other'"):
        task_of(two_sources()).process_lanes([lane("other", [(0, 1)])])


def test_internal_topics_have_the_applications_id_before_them() -> None:
    builder = StreamsBuilder()
    builder.stream("in").select_key(lambda key, value: value).group_by_key().count().to_stream().to("out")
    topology = builder.build()
    first, second = topology.sub_topologies()
    one, two = Task(topology, first, CONFIG), Task(topology, second, CONFIG, partition=3)
    one.process_lanes([lane("in", [(0, '"x"')])])
    [(topic, _, key, _, _, _)] = outputs(one)

    assert (topic, key) == ("app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition", b"x")
    assert two.reads(topic)
    assert not two.reads("in")
    assert two.id == "1_3"


# -- time -------------------------------------------------------------------------------------------------------------


def test_stream_time_is_the_latest_timestamp_of_all_partitions() -> None:
    seen: list[int] = []

    def note(context: Any, record: Record[Any, Any]) -> None:
        seen.append(context.current_stream_time())

    topology = (
        Topology()
        .add_source("one", "topic1")
        .add_source("two", "topic2")
        .add_processor("note", processing(note), "one", "two")
    )
    task = task_of(topology)
    assert task.stream_time == [-1]

    task.process_lanes([lane("topic1", [(1, 1), (30, 2), (20, 3)]), lane("topic2", [(25, 4)])])

    assert seen == [1, 25, 30, 30]
    assert task.stream_time == [30]


def test_stream_time_does_not_go_back_with_the_next_batch() -> None:
    task = task_of(two_sources())
    task.process_lanes([lane("topic1", [(100, 1)])])
    task.process_lanes([lane("topic2", [(50, 1)])])

    assert task.stream_time == [100]


def test_late_records_are_dropped_and_counted() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).count().to_stream()
    counts.map(lambda key, count: (key.key, count)).to("out")
    task = task_of(builder.build())

    task.process_lanes([lane("in", [(5, 1), (25, 1), (6, 1), (26, 1)])])
    task.commit()

    assert task.dropped_records == 1
    assert [timestamp for _, _, _, _, timestamp, _ in outputs(task)] == [5, 26]


# -- dropped records --------------------------------------------------------------------------------------------------


def test_records_dropped_by_the_rules_are_counted() -> None:
    task = task_of(counting())

    task.process_lanes(
        [raw_lane("in", 0, [(0, 1, None, b"1", None), (1, 2, b"k", None, None), (2, 3, b"k", b"1", None)])]
    )

    assert task.dropped_records == 2


def test_records_that_a_filter_takes_out_are_not_dropped() -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(lambda key, value: False).to("out")
    task = task_of(builder.build())

    task.process_lanes([lane("in", [(0, 1)])])

    assert task.dropped_records == 0


# -- commits ----------------------------------------------------------------------------------------------------------


def test_a_commit_has_what_changed_in_every_store_and_the_tasks_own_state() -> None:
    task = task_of(counting(store="counts"))
    task.process_lanes([lane("in", [(7, 1), (3, 1)])])

    [commit] = task.commit()

    assert commit.stores == {"counts": {b"k": (7).to_bytes(8) + (2).to_bytes(8)}}
    assert commit.state["task/stream_time"] == 7
    assert task.commit()[0].stores == {}


def test_updates_wait_for_the_commit() -> None:
    task = task_of(counting())

    task.process_lanes([lane("in", [(0, 1), (1, 1), (2, 1)])])
    assert values(task) == []

    task.commit()
    assert values(task) == ["3"]


def test_without_a_cache_every_update_goes_on_at_once() -> None:
    task = task_of(counting(), StreamsConfig(application_id="app", statestore_cache_max_bytes=0))

    task.process_lanes([lane("in", [(0, 1), (1, 1), (2, 1)])])

    assert values(task) == ["1", "2", "3"]


def test_a_processor_that_asks_for_a_commit_changes_nothing() -> None:
    def ask(context: Any, record: Record[Any, Any]) -> None:
        context.commit()
        context.forward(record)

    topology = Topology().add_source("source", "in").add_processor("ask", processing(ask), "source")
    task = task_of(topology.add_sink("sink", "out", "ask"))

    task.process_lanes([lane("in", [(0, 1), (1, 2)])])

    assert values(task) == ["1", "2"]


def test_a_commit_serializes_to_the_same_bytes_every_time() -> None:
    def committed() -> Commit:
        task = task_of(counting(store="counts"))
        task.process_lanes([raw_lane("in", 0, [(n, n, f"key{n % 7}".encode(), b"1", None) for n in range(100)])])
        [commit] = task.commit()
        return commit

    one, other = committed(), committed()

    assert one == other
    assert [list(changes) for changes in one.stores.values()] == [list(changes) for changes in other.stores.values()]


# -- going on from a commit -------------------------------------------------------------------------------------------


class Every(Processor[Any, Any]):
    """Counts records in a store and reports the count every ten milliseconds of stream time."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.counts = context.state_store("counts")
        self.schedule = context.schedule(10, PunctuationType.STREAM_TIME, self.report)

    def process(self, record: Record[Any, Any]) -> None:
        self.counts.put(record.key, (self.counts.get(record.key) or 0) + 1)

    def report(self, timestamp: int) -> None:
        for key, count in self.counts.all():
            self.context.forward(Record(key, count, timestamp))


def punctuated() -> Topology:
    topology = Topology().add_source("source", "in").add_processor("count", Every, "source")
    return topology.add_state_store(Stores.key_value("counts"), "count").add_sink("out", "out", "count")


def windowed_and_suppressed() -> Topology:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(HoppingWindows(20, 10, grace=5)).count()
    closed = counts.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream()
    closed.map(lambda key, count: (key.key, f"{key.window.start}:{count}")).to("out")
    return builder.build()


@pytest.mark.parametrize("make", [punctuated, windowed_and_suppressed, counting])
def test_a_task_made_from_commits_goes_on_where_the_one_before_stopped(make: Any) -> None:
    times = [1, 5, 12, 9, 21, 33, 30, 47, 48, 70, 95]
    whole = task_of(make())
    expected = []
    for time in times:
        whole.process_lanes([lane("in", [(time, 1)])])
        whole.commit()
        expected += outputs(whole)

    seen, commits = [], []
    task = task_of(make())
    for offset, time in enumerate(times):
        task.process_lanes([lane("in", [(time, 1)], first_offset=offset)])
        commits.append(task.commit())
        seen += outputs(task)
        task = resumed(make(), *commits)

    assert seen == expected
    assert seen


def test_what_was_not_committed_is_done_again() -> None:
    task = task_of(counting(store="counts"))
    task.process_lanes([lane("in", [(0, 1)])])
    commit = task.commit()
    outputs(task)
    task.process_lanes([lane("in", [(1, 1)], first_offset=1)])

    again = resumed(counting(store="counts"), commit)
    again.process_lanes([lane("in", [(1, 1)], first_offset=1)])
    again.commit()

    assert values(again) == ["2"]


def test_partition_time_is_kept_for_extractors() -> None:
    def latest_so_far(record: Record[Any, Any], partition_time: int) -> int:
        return max(record.timestamp, partition_time)

    topology = (
        Topology().add_source("source", "in", timestamp_extractor=latest_so_far).add_sink("sink", "out", "source")
    )
    task = task_of(topology)
    task.process_lanes([lane("in", [(9, 1)])])

    again = resumed(topology, task.commit())
    again.process_lanes([lane("in", [(3, 2)])])

    assert [timestamp for _, _, _, _, timestamp, _ in outputs(again)] == [9]


def test_a_cancelled_schedule_stays_cancelled() -> None:
    class Once(Every):
        def report(self, timestamp: int) -> None:
            super().report(timestamp)
            self.schedule.cancel()

    topology = Topology().add_source("source", "in").add_processor("count", Once, "source")
    topology.add_state_store(Stores.key_value("counts"), "count").add_sink("out", "out", "count")
    task = task_of(topology)
    task.process_lanes([lane("in", [(1, 1)])])
    assert values(task) == ["1"]

    again = resumed(topology, task.commit())
    again.process_lanes([lane("in", [(100, 1)])])

    assert values(again) == []


def test_a_wall_clock_schedule_goes_on_from_where_it_was() -> None:
    class Tick(Processor[Any, Any]):
        def init(self, context: Any) -> None:
            context.schedule(10, PunctuationType.WALL_CLOCK_TIME, lambda now: context.forward(Record("tick", now, now)))

        def process(self, record: Record[Any, Any]) -> None:
            pass

    topology = Topology().add_source("source", "in").add_processor("tick", Tick, "source")
    topology.add_sink("out", "out", "tick")
    task = task_of(topology, now=1000)
    task.advance_wall_clock(1012)
    assert values(task) == ["1012"]

    again = resumed(topology, task.commit(), now=1015)
    again.advance_wall_clock(1019)
    assert values(again) == []
    again.advance_wall_clock(1020)
    assert values(again) == ["1020"]


# -- one lane, page by page -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_lane_gives_the_same_by_pages_as_in_one_piece(size: int) -> None:
    records = [(n, 10 + (7 * n) % 23, b"k%d" % (n % 3), b'"x"', None, 100 + n) for n in range(20)]

    def pages() -> Iterator[Lane]:
        before = (-1, -1)
        for first in range(0, len(records), size):
            lane = Lane.of_source("in", 0, records[first : first + size], before)
            before = lane.causes.last()
            yield lane

    whole, paged = (task_of(counting(store=Materialized(caching=False))) for _ in range(2))
    causes = whole.process_lanes([Lane.of_source("in", 0, records)])
    causes_of_pages = paged.process_pages(pages())

    assert list(paged.take_outputs()) == list(whole.take_outputs()) != []
    assert causes_of_pages.times.tolist() == causes.times.tolist()
    assert causes_of_pages.sequences.tolist() == causes.sequences.tolist()
    assert len(causes) == len(records) + 1
