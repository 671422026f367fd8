"""count, reduce and aggregate over tumbling, hopping and unlimited windows."""

from typing import Any

import pytest

from headrace import (
    HandlerResponse,
    HoppingWindows,
    LogAndContinue,
    Materialized,
    StreamsBuilder,
    TaskError,
    TimeWindowedStream,
    TopologyError,
    TumblingWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    serdes,
)
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, dropped, log_of


def windowed(windows: Any) -> tuple[StreamsBuilder, TimeWindowedStream[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.stream("in").group_by_key().windowed_by(windows)


def concat(key: Any, value: str, aggregate: str) -> str:
    return f"{aggregate}+{value}"


def counted(windows: Any, store: Any = None) -> StreamsBuilder:
    builder, stream = windowed(windows)
    stream.count(store=store).to_stream().to("out")
    return builder


# -- tumbling ---------------------------------------------------------------------------------------------------------


def test_tumbling_windows_begin_at_the_epoch_and_do_not_overlap() -> None:
    check(
        counted(TumblingWindows(5000)),
        """
        a=x@0    -> a@0-5000=1@0
        a=x@4999 -> a@0-5000=2@4999
        a=x@5000 -> a@5000-10000=1@5000
        b=x@9999 -> b@5000-10000=1@9999
        a=x@9999 -> a@5000-10000=2@9999
        """,
    )


def test_keys_have_windows_of_their_own() -> None:
    check(
        counted(TumblingWindows(10)),
        """
        a=x@1  -> a@0-10=1@1
        ab=x@2 -> ab@0-10=1@2
        a=x@3  -> a@0-10=2@3
        """,
    )


# -- hopping ----------------------------------------------------------------------------------------------------------


def test_hopping_windows_overlap() -> None:
    builder, stream = windowed(HoppingWindows(10, advance=5, grace=100))
    stream.aggregate(lambda: "0", concat, store="aggregated").to_stream().to("out")

    check(
        builder,
        """
        A=1@0  -> A@0-10=0+1@0
        B=2@1  -> B@0-10=0+2@1
        A=1@4  -> A@0-10=0+1+1@4
        A=1@5  -> A@0-10=0+1+1+1@5 A@5-15=0+1@5
        B=2@6  -> B@0-10=0+2+2@6 B@5-15=0+2@6
        B=2@8  -> B@0-10=0+2+2+2@8 B@5-15=0+2+2@8
        A=1@10 -> A@5-15=0+1+1@10 A@10-20=0+1@10
        B=2@11 -> B@5-15=0+2+2+2@11 B@10-20=0+2@11
        B=1@3  -> B@0-10=0+2+2+2+1@8
        B=3@9  -> B@0-10=0+2+2+2+1+3@9 B@5-15=0+2+2+2+3@11
        """,
        stores={
            "aggregated": {
                "A@0-10": "0+1+1+1",
                "A@5-15": "0+1+1",
                "A@10-20": "0+1",
                "B@0-10": "0+2+2+2+1+3",
                "B@5-15": "0+2+2+2+3",
                "B@10-20": "0+2",
            }
        },
    )


def test_windows_that_jump_without_overlap_are_tumbling_windows() -> None:
    check(
        counted(HoppingWindows(10, advance=10)),
        """
        a=x@9  -> a@0-10=1@9
        a=x@10 -> a@10-20=1@10
        """,
    )


def test_hopping_windows_in_a_timeline_of_wall_clock_size() -> None:
    check(
        counted(HoppingWindows(60_000, advance=30_000)),
        """
        a=x@1700000000000 -> a@1699999950000-1700000010000=1@1700000000000 a@1699999980000-1700000040000=1@1700000000000
        """,
    )


# -- unlimited --------------------------------------------------------------------------------------------------------


def test_unlimited_window_takes_everything_from_its_start() -> None:
    builder, stream = windowed(UnlimitedWindows(start=10))
    stream.count(store="counts").map_values(str).to_stream(lambda key, count: key.key).to("out")

    check(
        builder,
        """
        a=x@9    ->
        a=x@10   -> a=1@10
        a=x@9999 -> a=2@9999
        a=x@11   -> a=3@9999
        """,
    )


def test_unlimited_window_ends_at_the_largest_timestamp() -> None:
    builder, stream = windowed(UnlimitedWindows(start=10))
    stream.count().to_stream().to("out")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 12)

        assert driver.create_output_topic("out").read_key_values() == [(Windowed("a", Window(10, 2**63 - 1)), 1)]


# -- late records -----------------------------------------------------------------------------------------------------


def test_window_takes_records_until_its_end_and_grace_have_passed() -> None:
    check(
        counted(TumblingWindows(10, grace=5)),
        """
        a=x@0  -> a@0-10=1@0
        b=x@14 -> b@10-20=1@14
        a=x@1  -> a@0-10=2@1
        b=x@15 -> b@10-20=2@15
        a=x@2  ->
        """,
    )


def test_late_record_is_dropped_after_grace() -> None:
    builder, stream = windowed(TumblingWindows(10, grace=90))
    stream.aggregate(lambda: "", concat).to_stream().to("out")

    check(
        builder,
        """
        k=100@200 -> k@200-210=+100@200
        k=0@100   ->
        k=5@109   ->
        k=6@110   -> k@110-120=+6@110
        k=7@6     ->
        """,
    )


def test_record_is_dropped_only_for_those_of_its_windows_that_have_closed() -> None:
    builder, stream = windowed(HoppingWindows(10, advance=5, grace=90))
    stream.aggregate(lambda: "", concat, store=Materialized(retention=100)).to_stream().to("out")

    check(
        builder,
        """
        k=100@100 -> k@95-105=+100@100 k@100-110=+100@100
        k=0@0     ->
        k=4@4     ->
        k=5@5     -> k@5-15=+5@5
        k=6@6     -> k@5-15=+5+6@6
        k=105@105 -> k@100-110=+100+105@105 k@105-115=+105@105
        """,
    )


def test_each_window_that_is_closed_counts_as_a_dropped_record() -> None:
    builder = counted(HoppingWindows(10, advance=5, grace=90))

    assert dropped(builder, "k=100@100 k=0@0 k=1@1 k=2@2 k=3@3 k=4@4 k=5@5 k=6@6 k=105@105 k=106@106") == 7


def test_without_grace_a_window_closes_at_its_end() -> None:
    check(
        counted(TumblingWindows(10)),
        """
        a=x@9  -> a@0-10=1@9
        b=x@9  -> b@0-10=1@9
        b=x@10 -> b@10-20=1@10
        a=x@9  ->
        """,
    )


def test_late_record_of_one_key_is_measured_by_the_time_of_all() -> None:
    check(
        counted(TumblingWindows(10)),
        """
        a=x@5  -> a@0-10=1@5
        b=x@50 -> b@50-60=1@50
        a=x@6  ->
        """,
    )


def test_out_of_order_record_within_grace_is_aggregated() -> None:
    builder, stream = windowed(TumblingWindows(10, grace=10))
    stream.aggregate(lambda: "0", concat).to_stream().to("out")

    check(
        builder,
        """
        a=1@8  -> a@0-10=0+1@8
        a=2@12 -> a@10-20=0+2@12
        a=3@3  -> a@0-10=0+1+3@8
        """,
    )


def test_time_does_not_go_on_with_records_that_an_earlier_filter_drops() -> None:
    builder = StreamsBuilder()
    kept = builder.stream("in").filter(lambda key, value: value != "out")
    kept.group_by_key().windowed_by(TumblingWindows(10)).count().to_stream().to("out")

    check(
        builder,
        """
        a=x@5     -> a@0-10=1@5
        a=out@100 ->
        a=x@6     -> a@0-10=2@6
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_null_key_is_dropped_and_time_stands_still() -> None:
    builder = counted(TumblingWindows(10))

    check(
        builder,
        """
        a=x@5      -> a@0-10=1@5
        None=x@100 ->
        a=x@6      -> a@0-10=2@6
        """,
    )
    assert dropped(builder, "None=x@100") == 1


def test_null_value_is_counted_and_time_goes_on() -> None:
    check(
        counted(TumblingWindows(10)),
        """
        a=None@5  -> a@0-10=1@5
        b=None@50 -> b@50-60=1@50
        a=x@6     ->
        """,
    )


def test_null_as_first_value_of_a_reduce_leaves_no_window() -> None:
    builder, stream = windowed(TumblingWindows(10))
    stream.reduce(lambda total, value: total if value is None else total + value, store="reduced").to_stream().to("out")

    check(
        builder,
        """
        a=None@100 -> a@100-110=None@100
        a=x@101    -> a@100-110=x@101
        a=None@102 -> a@100-110=x@102
        """,
        cached=False,
        stores={"reduced": {"a@100-110": "x"}},
    )


def test_aggregator_that_gives_none_deletes_the_window() -> None:
    builder, stream = windowed(TumblingWindows(10))
    stream.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value, store="texts")
    stream.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value).to_stream().to("out")

    check(
        builder,
        """
        a=x@3 -> a@0-10=x@3
        a=-@4 -> a@0-10=None@4
        a=y@1 -> a@0-10=y@1
        """,
        stores={"texts": {"a@0-10": "y"}},
    )


@pytest.mark.parametrize(("cached", "timestamp"), [(False, 9), (True, 2)])
def test_timestamp_of_a_late_delete(cached: bool, timestamp: int) -> None:
    builder, stream = windowed(TumblingWindows(10))
    stream.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value).to_stream().to("out")

    check(
        builder,
        f"""
        a=x@9 -> a@0-10=x@9
        a=-@2 -> a@0-10=None@{timestamp}
        """,
        cached=cached,
    )


# -- stores and retention ---------------------------------------------------------------------------------------------


def test_window_is_kept_for_size_and_grace() -> None:
    check(
        counted(TumblingWindows(10, grace=5), store="counts"),
        """
        a=x@0  -> a@0-10=1@0
        a=x@10 -> a@10-20=1@10
        b=x@14 -> b@10-20=1@14
        a=x@20 -> a@20-30=1@20
        """,
        stores={"counts": {"a@10-20": 1, "a@20-30": 1, "b@10-20": 1}},
    )


def test_window_can_be_kept_longer() -> None:
    check(
        counted(TumblingWindows(10, grace=5), store=Materialized("counts", retention=1000)),
        """
        a=x@0  -> a@0-10=1@0
        a=x@10 -> a@10-20=1@10
        a=x@20 -> a@20-30=1@20
        """,
        stores={"counts": {"a@0-10": 1, "a@10-20": 1, "a@20-30": 1}},
    )


def test_window_that_is_kept_longer_still_closes() -> None:
    check(
        counted(TumblingWindows(10), store=Materialized("counts", retention=1000)),
        """
        a=x@0  -> a@0-10=1@0
        a=x@10 -> a@10-20=1@10
        a=x@1  ->
        """,
    )


def test_retention_must_cover_size_and_grace() -> None:
    _, stream = windowed(TumblingWindows(10, grace=5))

    with pytest.raises(TopologyError, match=r"store 'counts': the retention must be at least .* \(15 ms\), got 14 ms"):
        stream.count(store=Materialized("counts", retention=14))


def test_store_gives_windows_by_key_and_time() -> None:
    builder = counted(HoppingWindows(10, advance=5, grace=100), store="counts")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        for key, timestamp in [("a", 7), ("b", 8), ("a", 12)]:
            lines.pipe_input(key, "x", timestamp)
        counts = driver.state_store("counts")

        assert counts.fetch("a", 5) == 2
        assert counts.fetch("a", 6) is None
        assert [(key.window.start, count) for key, count in counts.fetch("a", 0, 10)] == [(0, 1), (5, 2), (10, 1)]
        assert [key for key, _ in counts.fetch_all(5, 5)] == [
            Windowed("a", Window(5, 15)),
            Windowed("b", Window(5, 15)),
        ]


# -- keys on the output topic -----------------------------------------------------------------------------------------


def test_window_is_written_with_the_key() -> None:
    with TopologyTestDriver(counted(TumblingWindows(10)).build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 12)

        out = driver.create_output_topic("out", key_serde=serdes.Bytes)
        assert out.read_key_value() == (b"a" + (10).to_bytes(8, "big"), 1)


def test_key_can_be_read_with_the_serde_of_the_windows_size() -> None:
    with TopologyTestDriver(counted(TumblingWindows(10)).build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 12)

        out = driver.create_output_topic("out", key_serde=serdes.Windowed(serdes.String, 10))
        assert out.read_key_value() == (Windowed("a", Window(10, 20)), 1)


def test_inner_serde_is_that_of_the_grouping() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", value_serde=serdes.String)
    grouped = stream.group_by(lambda key, value: int(value), key_serde=serdes.Integer)
    grouped.windowed_by(TumblingWindows(10)).count().to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "7", 12)

        out = driver.create_output_topic("out", key_serde=serdes.Windowed(serdes.Integer, 10))
        assert out.read_key_value() == (Windowed(7, Window(10, 20)), 1)


def test_key_may_be_made_plain_again() -> None:
    builder, stream = windowed(TumblingWindows(10))
    stream.count().to_stream(lambda key, count: f"{key.key}/{key.window.start}").to("out")

    check(builder, "a=x@12 -> a/10=1@12")


# -- old values -------------------------------------------------------------------------------------------------------


def test_regrouping_without_a_cache_subtracts_the_initial_value_of_a_new_window() -> None:
    builder, stream = windowed(TumblingWindows(10))
    log_of(stream.count())

    check(
        builder,
        """
        a=x@0  -> all=+1@0
        a=x@1  -> all=+1-1+2@1
        a=x@10 -> all=+1-1+2-0+1@10
        """,
        cached=False,
    )


def test_regrouping_out_of_a_cache_has_the_old_values_right() -> None:
    builder, stream = windowed(TumblingWindows(10))
    log_of(stream.count())

    check(
        builder,
        """
        a=x@0  -> all=+1@0
        a=x@1  -> all=+1-1+2@1
        a=x@10 -> all=+1-1+2+1@10
        """,
        cached=True,
    )


def test_filter_takes_a_window_back_that_no_longer_passes() -> None:
    builder, stream = windowed(TumblingWindows(10))
    stream.count().filter(lambda key, count: count < 2).to_stream().to("out")

    check(
        builder,
        """
        a=x@0 -> a@0-10=1@0
        a=x@1 -> a@0-10=None@1
        a=x@2 ->
        """,
    )


def test_windowed_tables_can_be_joined() -> None:
    builder = StreamsBuilder()
    windows = HoppingWindows(10, advance=5, grace=100)
    one = builder.stream("in").group_by_key().windowed_by(windows).aggregate(lambda: "0", concat)
    two = builder.stream("in2").group_by_key().windowed_by(windows).aggregate(lambda: "0", concat)
    one.join(two, lambda left, right: f"{left}%{right}").to_stream().to("out")

    check(
        builder,
        """
        A=1@0      ->
        A=1@9      ->
        A=1@5      ->
        in2 A=a@0  -> A@0-10=0+1+1+1%0+a@9
        in2 D=d@20 ->
        in2 A=a@5  -> A@0-10=0+1+1+1%0+a+a@9 A@5-15=0+1+1%0+a@9
        """,
    )


# -- functions that change what they are given ------------------------------------------------------------------------


def test_aggregator_that_changes_its_aggregate_in_place() -> None:
    builder, stream = windowed(HoppingWindows(10, advance=5))
    stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json)).to_stream().to("out")

    check(
        builder,
        """
        a=1@4 -> a@0-10=["1"]@4
        a=2@5 -> a@0-10=["1","2"]@5 a@5-15=["2"]@5
        a=3@6 -> a@0-10=["1","2","3"]@6 a@5-15=["2","3"]@6
        """,
        stores={"lists": {"a@0-10": ["1", "2", "3"], "a@5-15": ["2", "3"]}},
    )


def test_old_value_is_not_changed_by_an_aggregator_that_works_in_place() -> None:
    builder, stream = windowed(TumblingWindows(10))
    lists = stream.aggregate(list, append, store=Materialized(value_serde=serdes.Json))
    log_of(lists.map_values("".join))

    check(
        builder,
        """
        a=x@1 -> all=+x@1
        a=y@2 -> all=+x-x+xy@2
        """,
        cached=True,
    )


def test_changing_a_result_does_not_change_the_store() -> None:
    builder, stream = windowed(TumblingWindows(10))
    lists = stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json))
    lists.to_stream().peek(lambda key, value: value.clear()).to("out")

    check(
        builder,
        """
        a=1@0 -> a@0-10=[]@0
        a=2@1 -> a@0-10=[]@1
        """,
        stores={"lists": {"a@0-10": ["1", "2"]}},
    )


# -- headers and errors -----------------------------------------------------------------------------------------------


def test_result_has_the_headers_of_the_record() -> None:
    with TopologyTestDriver(counted(TumblingWindows(10)).build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 3, {"n": b"1"})

        expected = Record(Windowed("a", Window(0, 10)), 1, 3, [("n", b"1")])
        assert driver.create_output_topic("out").read_records() == [expected]


def fail_on_x(key: Any, value: str, text: str) -> str:
    if value == "x":
        raise ValueError("not x")
    return text + value


def test_failing_aggregator_names_its_step() -> None:
    builder, stream = windowed(TumblingWindows(10))
    stream.aggregate(lambda: "", fail_on_x, name="texts")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        with pytest.raises(TaskError, match=r"step 'texts'.*ValueError: not x"):
            lines.pipe_input("a", "x", 0)


def test_record_whose_aggregator_fails_is_left_out_as_a_whole() -> None:
    builder, stream = windowed(HoppingWindows(10, advance=5))
    stream.aggregate(lambda: "", fail_on_x).to_stream().to("out")

    check(
        builder,
        """
        a=1@5 -> a@0-10=1@5 a@5-15=1@5
        a=x@6 ->
        a=2@6 -> a@0-10=12@6 a@5-15=12@6
        """,
        processing_exception_handler=LogAndContinue,
    )


def test_exception_handler_is_asked_once_for_all_windows_of_a_record() -> None:
    asked = []

    def handler(where: Any, error: Exception) -> HandlerResponse:
        asked.append(where.value)
        return HandlerResponse.CONTINUE

    builder, stream = windowed(HoppingWindows(10, advance=2))
    stream.aggregate(lambda: "", fail_on_x).to_stream().to("out")

    check(builder, "a=x@20 ->", cached=True, processing_exception_handler=handler)
    assert asked == ["x"]


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.reduce(None),
        lambda stream: stream.aggregate(None, concat),
        lambda stream: stream.aggregate(lambda: "", None),
        lambda stream: stream.count(store="no spaces please"),
        lambda stream: stream.count(store=Materialized("counts", history_retention=1000)),
    ],
)
def test_wrong_arguments_are_refused(call: Any) -> None:
    _, stream = windowed(TumblingWindows(10))

    with pytest.raises(TopologyError):
        call(stream)
