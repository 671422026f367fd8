"""`TopologyTestDriver`: all tasks of a topology in one process, one record at a time."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    ConfigError,
    InvalidStateStoreError,
    Materialized,
    Processor,
    PunctuationType,
    Record,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
    TaskError,
    TopicError,
    Topology,
    TopologyError,
    TumblingWindows,
    ValueAndTimestamp,
    Window,
    Windowed,
    serdes,
)
from headrace.testing import Snapshot, TopologyTestDriver


class MaxAggregator(Processor[str, int]):
    """Keeps the largest value of every key; forwards all of them on both clocks."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.largest = context.state_store("largest")
        context.schedule(timedelta(minutes=1), PunctuationType.WALL_CLOCK_TIME, self.flush)
        context.schedule(timedelta(seconds=10), PunctuationType.STREAM_TIME, self.flush)

    def process(self, record: Record[str, int]) -> None:
        known = self.largest.get(record.key)
        if known is None or record.value > known:
            self.largest.put(record.key, record.value)

    def flush(self, timestamp: int) -> None:
        for key, value in self.largest.all():
            self.context.forward(Record(key, value, timestamp))


def aggregating() -> Topology:
    topology = Topology().add_source("source", "in").add_processor("largest", MaxAggregator, "source")
    topology.add_state_store(Stores.key_value("largest", serdes.String, serdes.Long), "largest")
    return topology.add_sink("sink", "out", "largest")


def passing() -> Topology:
    return Topology().add_source("source", "in").add_sink("sink", "out", "source")


def counting(**options: Any) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(store=Materialized("counts", **options)).to_stream().to("out")
    return builder.build()


# -- making one -------------------------------------------------------------------------------------------------------


def test_a_driver_needs_a_topology_only() -> None:
    with TopologyTestDriver(passing()) as driver:
        driver.create_input_topic("in").pipe_input("k", {"json": 1})

        assert driver.create_output_topic("out").read_key_value() == ("k", {"json": 1})
        assert driver.config.application_id == "test"


@pytest.mark.parametrize(
    "config",
    [
        {"application_id": "shop", "default_value_serde": serdes.Long},
        StreamsConfig(application_id="shop", default_value_serde=serdes.Long),
    ],
    ids=["dict", "config"],
)
def test_settings_are_a_dict_or_a_config(config: Any) -> None:
    with TopologyTestDriver(passing(), config) as driver:
        driver.create_input_topic("in").pipe_input("k", 5)

        assert driver.config.application_id == "shop"
        assert driver.create_output_topic("out", value_serde=serdes.Bytes).read_value() == (5).to_bytes(8)


def test_a_dict_of_settings_is_checked() -> None:
    with pytest.raises(ConfigError, match=r"^setting 'default_value_sered': there is no such setting\. Did you mean"):
        TopologyTestDriver(passing(), {"default_value_sered": serdes.Long})


@pytest.mark.parametrize("config", ["shop", 5, [("application_id", "shop")]])
def test_other_settings_are_refused(config: Any) -> None:
    with pytest.raises(ConfigError, match=r"^TopologyTestDriver: expected a StreamsConfig, a dict of settings or None"):
        TopologyTestDriver(passing(), config)


@pytest.mark.parametrize("given", [StreamsBuilder(), None, "topology"], ids=["builder", "none", "text"])
def test_what_is_not_a_topology_is_refused(given: Any) -> None:
    with pytest.raises(TopologyError, match=r"expected a Topology, got .*\. Call build\(\) on a StreamsBuilder"):
        TopologyTestDriver(given)


def test_a_topology_without_a_source_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"^the topology has no source"):
        TopologyTestDriver(Topology())


def test_a_topology_may_be_driven_more_than_once() -> None:
    topology = counting()
    for _ in range(2):
        with TopologyTestDriver(topology) as driver:
            driver.create_input_topic("in").pipe_input("k", 1)

            assert driver.create_output_topic("out").read_value() == 1


# -- processing -------------------------------------------------------------------------------------------------------


def test_a_record_is_processed_before_the_call_returns() -> None:
    with TopologyTestDriver(counting()) as driver:
        source, sink = driver.create_input_topic("in"), driver.create_output_topic("out")
        for count in (1, 2, 3):
            source.pipe_input("k", "x")
            assert sink.read_key_values() == [("k", count)]


@pytest.mark.parametrize("caching", [True, False])
def test_caches_are_flushed_after_every_record(caching: bool) -> None:
    with TopologyTestDriver(counting(caching=caching)) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", 1), ("b", 1)])

        assert driver.create_output_topic("out").read_key_values() == [("a", 1), ("a", 2), ("b", 1)]


def test_records_go_on_from_sub_topology_to_sub_topology() -> None:
    topology = Topology().add_source("one", "in").add_sink("to-between", "between", "one")
    topology.add_source("two", "between").add_sink("to-out", "out", "two")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1, 5, headers={"h": b"x"})

        assert driver.create_output_topic("between").read_record() == Record("k", 1, 5, [("h", b"x")])
        assert driver.create_output_topic("out").read_record() == Record("k", 1, 5, [("h", b"x")])


def test_a_record_goes_to_the_source_of_its_topic() -> None:
    seen: list[tuple[str, Any]] = []

    def noting(name: str) -> Callable[[], Processor[Any, Any]]:
        class Note(Processor[Any, Any]):
            def process(self, record: Record[Any, Any]) -> None:
                assert self.context.record_metadata is not None
                seen.append((name, self.context.record_metadata))

        return Note

    topology = Topology().add_source("one", "in1").add_source("two", "in2")
    topology.add_processor("p1", noting("p1"), "one").add_processor("p2", noting("p2"), "two")
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in1").pipe_values([1, 2])
        driver.create_input_topic("in2").pipe_values([3])

    assert seen == [("p1", ("in1", 0, 0)), ("p1", ("in1", 0, 1)), ("p2", ("in2", 0, 0))]


def test_a_pattern_reads_the_topics_that_match_it() -> None:
    topology = Topology().add_source("digits", re.compile(r"topic-\d"))
    topology.add_source("letters", re.compile(r"topic-[A-Z]"))
    topology.add_sink("to-digits", "digits", "digits").add_sink("to-letters", "letters", "letters")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("topic-1").pipe_input("k", 1)
        driver.create_input_topic("topic-Z").pipe_input("k", 2)

        assert driver.create_output_topic("digits").read_values() == [1]
        assert driver.create_output_topic("letters").read_values() == [2]
        with pytest.raises(TopicError, match=r"^the topology does not read topic 'topic-ZZ'"):
            driver.create_input_topic("topic-ZZ")


def test_a_sink_may_choose_its_topic() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to(lambda key, value, context: f"{context.topic}-{value}-at-{context.timestamp}")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", "x", 7)

        assert driver.produced_topic_names() == {"in-x-at-7"}
        assert driver.create_output_topic("in-x-at-7").read_value() == "x"


def test_an_exception_is_raised_where_the_record_is_piped() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(int).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in")
        with pytest.raises(TaskError, match=r"topic 'in', partition 0, offset 0, key 'k': ValueError: invalid literal"):
            source.pipe_input("k", "not a number")


# -- topics that were written -----------------------------------------------------------------------------------------


def test_there_are_no_produced_topics_before_something_is_produced() -> None:
    with TopologyTestDriver(passing()) as driver:
        assert driver.produced_topic_names() == set()

        driver.create_input_topic("in").pipe_input("k", 1)

        assert driver.produced_topic_names() == {"out"}


def test_reading_a_topic_does_not_take_it_from_the_produced_ones() -> None:
    with TopologyTestDriver(passing()) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)
        driver.create_output_topic("out").read_value()
        driver.create_output_topic("other").is_empty()

        assert driver.produced_topic_names() == {"out"}


def test_internal_topics_are_among_the_produced_ones_under_their_full_name() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda key, value: value, name="by-value").count()

    with TopologyTestDriver(builder.build(), {"application_id": "shop"}) as driver:
        driver.create_input_topic("in").pipe_input("k", "x")

        assert driver.produced_topic_names() == {"shop-by-value-repartition"}
        assert driver.waiting() == {}


def test_the_topic_of_a_global_table_may_be_written_by_the_topology() -> None:
    builder = StreamsBuilder()
    builder.global_table("names", store="names")
    builder.stream("in").to("names")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("k", "x")

        assert driver.produced_topic_names() == {"names"}
        assert driver.state_store("names").get("k") == "x"


def test_what_waits_is_counted_by_topic() -> None:
    with TopologyTestDriver(passing()) as driver:
        driver.create_input_topic("in").pipe_values([1, 2])
        assert driver.waiting() == {"out": 2}

        driver.create_output_topic("out").read_values()
        assert driver.waiting() == {}


# -- the wall clock ---------------------------------------------------------------------------------------------------


def test_the_wall_clock_stands_still_unless_it_is_moved() -> None:
    with TopologyTestDriver(aggregating(), initial_wall_clock=5) as driver:
        sink = driver.create_output_topic("out")
        driver.state_store("largest").put("a", 21)
        driver.advance_wall_clock_time(59_999)
        assert sink.is_empty()

        driver.advance_wall_clock_time(timedelta(milliseconds=1))

        assert sink.read_records() == [Record("a", 21, 60_005)]


def test_what_a_punctuation_forwards_is_processed_to_the_end() -> None:
    topology = aggregating()
    topology.add_source("again", "out").add_sink("last", "last", "again")
    with TopologyTestDriver(topology) as driver:
        driver.state_store("largest").put("a", 21)
        driver.advance_wall_clock_time(60_000)

        assert driver.create_output_topic("last").read_values() == [21]


def test_the_wall_clock_does_not_go_back() -> None:
    driver = TopologyTestDriver(passing())

    with pytest.raises(TopologyError, match=r"^advance_wall_clock_time: expected at least 0 ms, got -1 ms"):
        driver.advance_wall_clock_time(-1)
    with pytest.raises(TopologyError, match=r"^initial_wall_clock: expected at least 0 ms, got -1 ms"):
        TopologyTestDriver(passing(), initial_wall_clock=-1)


def test_topics_made_later_begin_at_the_clock_of_then() -> None:
    with TopologyTestDriver(passing(), initial_wall_clock=100) as driver:
        driver.advance_wall_clock_time(50)
        driver.create_input_topic("in").pipe_input("k", 1)

        assert driver.create_output_topic("out").read_record().timestamp == 150


# -- stores -----------------------------------------------------------------------------------------------------------


def test_a_store_may_be_filled_from_outside_before_anything_is_piped() -> None:
    with TopologyTestDriver(aggregating()) as driver:
        source, sink = driver.create_input_topic("in"), driver.create_output_topic("out")
        store = driver.state_store("largest")
        store.put("a", 21)

        source.pipe_input("a", 1, 9999)
        assert sink.read_key_values() == [("a", 21)]
        source.pipe_input("a", 1, 9999)
        assert sink.is_empty()
        source.pipe_input("b", 42, 10_000)
        assert sink.read_key_values() == [("a", 21), ("b", 42)]
        assert (store.get("a"), store.get("b")) == (21, 42)


def test_what_is_put_into_a_table_from_outside_is_counted_on() -> None:
    with TopologyTestDriver(counting()) as driver:
        driver.state_store("counts").put("k", 41)
        driver.create_input_topic("in").pipe_input("k", "x", 7)

        assert driver.create_output_topic("out").read_value() == 42
        assert driver.timestamped_store("counts").get("k") == ValueAndTimestamp(42, 7)


def test_tables_show_plain_values_and_with_timestamps_if_asked() -> None:
    with TopologyTestDriver(counting()) as driver:
        driver.create_input_topic("in").pipe_input("k", "x", 7)

        assert driver.state_store("counts").get("k") == 1
        assert list(driver.state_store("counts").all()) == [("k", 1)]
        assert driver.timestamped_store("counts").get("k") == ValueAndTimestamp(1, 7)


def test_windowed_and_session_tables_can_be_read() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(TumblingWindows(10)).count(store="windows")
    grouped.windowed_by(SessionWindows(10)).count(store=Materialized("sessions", retention=1000))

    with TopologyTestDriver(builder.build()) as driver:
        for time in (1, 2, 15):
            driver.create_input_topic("in").pipe_input("k", "x", time)

        assert driver.state_store("windows").fetch("k", 10) == 1
        assert driver.timestamped_store("windows").fetch("k", 10) == ValueAndTimestamp(1, 15)
        assert list(driver.state_store("sessions").fetch("k")) == [
            (Windowed("k", Window(1, 2)), 2),
            (Windowed("k", Window(15, 15)), 1),
        ]


def test_a_versioned_table_can_be_read() -> None:
    builder = StreamsBuilder()
    builder.table("in", store=Materialized("prices", history_retention=1000))

    with TopologyTestDriver(builder.build()) as driver:
        for value, time in (("old", 5), ("new", 9)):
            driver.create_input_topic("in").pipe_input("k", value, time)

        assert driver.state_store("prices").get("k", 6).value == "old"


def test_all_stores_can_be_listed_global_ones_included() -> None:
    builder = StreamsBuilder()
    builder.global_table("names", store="names")
    builder.stream("in").group_by_key().count(store="counts")

    with TopologyTestDriver(builder.build()) as driver:
        stores = driver.state_stores()
        driver.create_input_topic("names").pipe_input("k", "v")

        assert set(stores) == {"names", "counts"}
        assert stores["names"].get("k") == "v"


def test_a_store_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    builder = StreamsBuilder()
    builder.table("t", store="table")
    builder.stream("in").group_by_key().count(store="counts")

    with TopologyTestDriver(builder.build()) as driver:
        for look_up in (driver.state_store, driver.timestamped_store):
            with pytest.raises(InvalidStateStoreError, match=r"^there is no store 'cuonts' \(stores: counts, table\)"):
                look_up("cuonts")


def test_a_new_driver_begins_with_empty_stores() -> None:
    topology = counting()
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", "x")
        assert driver.state_store("counts").get("k") == 1

    with TopologyTestDriver(topology) as driver:
        assert driver.state_store("counts").get("k") is None


# -- going on from a snapshot -----------------------------------------------------------------------------------------


def test_another_driver_goes_on_from_a_snapshot() -> None:
    with TopologyTestDriver(aggregating(), initial_wall_clock=1000) as driver:
        driver.create_input_topic("in").pipe_input("a", 5, 9999)
        driver.advance_wall_clock_time(500)
        snapshot = driver.snapshot()

    with TopologyTestDriver(aggregating(), restore_from=snapshot) as driver:
        source, sink = driver.create_input_topic("in"), driver.create_output_topic("out")
        assert driver.state_store("largest").get("a") == 5
        source.pipe_input("a", 1, 9999)
        assert sink.is_empty()
        driver.advance_wall_clock_time(59_499)
        assert sink.is_empty()
        driver.advance_wall_clock_time(1)
        assert sink.read_records() == [Record("a", 5, 61_000)]


def test_offsets_go_on_from_a_snapshot() -> None:
    seen: list[Any] = []

    class Note(Processor[Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            seen.append(self.context.record_metadata)

    topology = Topology().add_source("source", "in").add_processor("note", Note, "source")
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_values([1, 2])
        snapshot = driver.snapshot()
    with TopologyTestDriver(topology, restore_from=snapshot) as driver:
        driver.create_input_topic("in").pipe_values([3])

    assert [where.offset for where in seen] == [0, 1, 2]


def test_a_snapshot_does_not_change_with_its_driver() -> None:
    with TopologyTestDriver(counting()) as driver:
        source = driver.create_input_topic("in")
        source.pipe_input("k", "x")
        snapshot = driver.snapshot()
        source.pipe_input("k", "x")

    for _ in range(2):
        with TopologyTestDriver(counting(), restore_from=snapshot) as driver:
            driver.create_input_topic("in").pipe_input("k", "x")
            assert driver.create_output_topic("out").read_value() == 2


def test_deleted_rows_are_not_in_a_snapshot() -> None:
    builder = StreamsBuilder()
    builder.table("in", store="table")
    topology = builder.build()
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2), ("a", None)])
        snapshot = driver.snapshot()

    assert isinstance(snapshot, Snapshot)
    with TopologyTestDriver(topology, restore_from=snapshot) as driver:
        assert list(driver.state_store("table").all()) == [("b", 2)]


# -- closing ----------------------------------------------------------------------------------------------------------


def test_a_closed_driver_takes_nothing_more() -> None:
    driver = TopologyTestDriver(passing())
    source, sink = driver.create_input_topic("in"), driver.create_output_topic("out")
    source.pipe_input("k", 1)
    driver.close()
    driver.close()

    with pytest.raises(StreamsError, match=r"^the driver is closed"):
        source.pipe_input("k", 1)
    with pytest.raises(StreamsError, match=r"^the driver is closed"):
        driver.advance_wall_clock_time(1)
    assert sink.read_value() == 1


def test_leaving_the_block_closes_the_processors() -> None:
    closed: list[str] = []

    class Closing(Processor[Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            raise ValueError("no")

        def close(self) -> None:
            closed.append("closed")

    topology = Topology().add_source("source", "in").add_processor("step", Closing, "source")
    with pytest.raises(TaskError), TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)

    assert closed == ["closed"]


def test_a_record_with_the_largest_timestamp_is_processed() -> None:
    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("a").pipe_input("k", 1, timestamp=5)
        driver.create_input_topic("b").pipe_input("k", 2, timestamp=2**63 - 1)

        assert driver.create_output_topic("out").read_values() == [1, 2]
