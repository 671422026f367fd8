"""Windows that output one final result, when they close."""

from typing import Any

import pytest

from headrace import (
    EmitStrategy,
    HoppingWindows,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TopologyError,
    TumblingWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    serdes,
)
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, check_batches


def on_close(windows: Any) -> tuple[StreamsBuilder, Any]:
    builder = StreamsBuilder()
    stream = builder.stream("in").group_by_key().windowed_by(windows)
    return builder, stream.emit_strategy(EmitStrategy.on_window_close())


def counted(windows: Any, retention: int | None = 1000) -> StreamsBuilder:
    builder, stream = on_close(windows)
    stream.count(store=Materialized("counts", retention=retention)).to_stream().to("out")
    return builder


def joined(windows: Any) -> StreamsBuilder:
    builder, stream = on_close(windows)
    texts = Materialized("texts", retention=1000)
    stream.aggregate(lambda: "0", lambda key, value, text: f"{text}+{value}", store=texts).to_stream().to("out")
    return builder


# -- tumbling and hopping ---------------------------------------------------------------------------------------------


def test_nothing_comes_out_while_windows_are_open() -> None:
    check(
        joined(HoppingWindows(10, advance=5, grace=100)),
        """
        A=1@0  ->
        A=1@4  ->
        B=2@11 ->
        B=3@9  ->
        """,
    )


def test_window_is_put_out_when_its_end_and_grace_have_passed() -> None:
    check(
        counted(TumblingWindows(10, grace=5)),
        """
        a=x@0  ->
        a=x@9  ->
        a=x@14 ->
        a=x@8  ->
        a=x@15 -> a@0-10=3@9
        a=x@7  ->
        a=x@25 -> a@10-20=2@15
        """,
    )


def test_hopping_windows_are_put_out_one_after_the_other() -> None:
    check(
        joined(HoppingWindows(10, advance=5, grace=5)),
        """
        A=1@0  ->
        A=1@5  ->
        B=2@10 ->
        C=3@15 -> A@0-10=0+1+1@5
        D=4@20 -> A@5-15=0+1@5 B@5-15=0+2@10
        """,
    )


def test_windows_that_close_together_come_by_start_then_key() -> None:
    check(
        counted(HoppingWindows(10, advance=5)),
        """
        b=x@7  ->
        a=x@8  ->
        b=x@3  ->
        a=x@12 -> a@0-10=1@8 b@0-10=2@7
        a=x@21 -> a@5-15=2@12 b@5-15=1@7 a@10-20=1@12
        """,
    )


def test_nothing_comes_out_when_time_does_not_go_on() -> None:
    check(
        joined(HoppingWindows(10, advance=5, grace=5)),
        """
        A=1@0  ->
        B=2@5  ->
        C=3@15 -> A@0-10=0+1@0 B@0-10=0+2@5
        D=4@15 ->
        E=5@19 ->
        F=6@20 -> B@5-15=0+2@5
        """,
    )


def test_late_record_is_dropped_after_its_window_was_put_out() -> None:
    check(
        counted(TumblingWindows(10)),
        """
        a=x@5  ->
        a=x@10 -> a@0-10=1@5
        a=x@6  ->
        a=x@20 -> a@10-20=1@10
        """,
    )


def test_null_key_closes_nothing() -> None:
    check(
        counted(TumblingWindows(10)),
        """
        a=x@5     ->
        None=x@50 ->
        a=x@6     ->
        b=x@10    -> a@0-10=2@6
        """,
    )


def test_late_record_itself_closes_nothing() -> None:
    check(
        counted(TumblingWindows(10, grace=5)),
        """
        a=x@5  ->
        b=x@14 ->
        a=x@6  ->
        b=x@15 -> a@0-10=2@6
        """,
    )


def test_jump_in_time_loses_windows_without_a_cache() -> None:
    check(
        counted(TumblingWindows(10), retention=None),
        """
        a=x@5   ->
        a=x@25  ->
        a=x@100 ->
        a=x@110 -> a@100-110=1@100
        """,
        cached=False,
    )


def test_jump_in_time_loses_nothing_with_a_cache() -> None:
    check(
        counted(TumblingWindows(10), retention=None),
        """
        a=x@5   ->
        a=x@25  -> a@0-10=1@5
        a=x@100 -> a@20-30=1@25
        a=x@110 -> a@100-110=1@100
        """,
        cached=True,
    )


def test_jump_in_time_loses_no_hopping_windows_with_a_cache() -> None:
    check(
        counted(HoppingWindows(10, advance=5), retention=None),
        """
        b=x@7  ->
        a=x@8  ->
        a=x@12 -> a@0-10=1@8 b@0-10=1@7
        a=x@21 -> a@5-15=2@12 b@5-15=1@7 a@10-20=1@12
        """,
        cached=True,
    )


def test_jumps_within_a_batch_lose_nothing_with_a_cache() -> None:
    check_batches(
        counted(TumblingWindows(10), retention=None),
        """
        a=x@5 a=x@25 a=x@100 a=x@101 -> a@0-10=1@5 a@20-30=1@25
        a=x@110 a=x@200              -> a@100-110=2@101 a@110-120=1@110
        """,
    )


def test_jump_in_time_loses_nothing_when_windows_are_kept_longer() -> None:
    check(
        counted(TumblingWindows(10), retention=1000),
        """
        a=x@5   ->
        a=x@25  -> a@0-10=1@5
        a=x@100 -> a@20-30=1@25
        """,
    )


def test_window_is_put_out_once_although_it_is_kept_longer() -> None:
    check(
        counted(TumblingWindows(10), retention=1000),
        """
        a=x@5  ->
        a=x@10 -> a@0-10=1@5
        a=x@11 ->
        a=x@20 -> a@10-20=2@11
        """,
    )


def test_windows_without_a_value_are_not_put_out() -> None:
    builder, stream = on_close(TumblingWindows(10))
    texts = stream.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value)
    texts.to_stream().to("out")

    check(
        builder,
        """
        a=x@5  ->
        b=x@6  ->
        a=-@7  ->
        b=x@10 -> b@0-10=x@6
        """,
    )


def test_windows_of_time_before_a_restart_are_not_put_out_again() -> None:
    topology = joined(HoppingWindows(10, advance=5, grace=5)).build()
    config = {"default_value_serde": serdes.String}

    with TopologyTestDriver(topology, config) as driver:
        lines = driver.create_input_topic("in")
        for key, timestamp in [("A", 0), ("B", 5), ("C", 15)]:
            lines.pipe_input(key, "x", timestamp)
        first = [record.key for record in driver.create_output_topic("out").read_records()]
        snapshot = driver.snapshot()
    with TopologyTestDriver(topology, config, restore_from=snapshot) as driver:
        driver.create_input_topic("in").pipe_input("D", "x", 25)
        second = [record.key for record in driver.create_output_topic("out").read_records()]

    assert first == [Windowed("A", Window(0, 10)), Windowed("B", Window(0, 10))]
    assert second == [Windowed("B", Window(5, 15)), Windowed("C", Window(10, 20))]


# -- sliding ----------------------------------------------------------------------------------------------------------


def test_sliding_window_is_put_out_when_its_end_and_grace_are_behind() -> None:
    check(
        counted(SlidingWindows(10)),
        """
        b=x@100 ->
        a=x@100 ->
        b=x@103 -> a@90-100=1@100 b@90-100=1@100
        b=x@110 -> b@93-103=2@103
        a=x@130 -> b@100-110=3@110 b@101-111=2@110 b@104-114=1@110
        """,
    )


def test_sliding_windows_of_records_in_order() -> None:
    check(
        joined(SlidingWindows(10, grace=5)),
        """
        A=1@10 ->
        A=2@10 ->
        A=3@14 ->
        A=4@15 ->
        A=5@20 -> A@0-10=0+1+2@10 A@4-14=0+1+2+3@14
        A=6@22 -> A@5-15=0+1+2+3+4@15
        A=7@30 -> A@10-20=0+1+2+3+4+5@20 A@11-21=0+3+4+5@20 A@12-22=0+3+4+5+6@22
        """,
    )


def test_sliding_window_still_takes_a_record_at_the_moment_it_closes() -> None:
    check(
        counted(SlidingWindows(10)),
        """
        a=x@100 ->
        a=x@100 ->
        b=x@101 -> a@90-100=2@100
        """,
    )


def test_early_sliding_record_closes_nothing_by_itself() -> None:
    check(
        joined(SlidingWindows(5)),
        """
        A=1@0 ->
        A=2@2 ->
        A=3@4 ->
        A=4@0 ->
        A=8@7 -> A@0-5=0+1+2+3+4@4 A@1-6=0+2+3@4
        """,
    )


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_session_is_put_out_when_gap_and_grace_have_passed() -> None:
    check(
        counted(SessionWindows(10)),
        """
        b=x@0   ->
        a=x@0   ->
        c=x@3   ->
        b=x@5   ->
        a=x@15  -> a@0-0=1@0 c@3-3=1@3
        a=x@16  -> b@0-5=2@5
        a=x@100 -> a@15-16=2@16
        """,
    )


def test_sessions_that_close_together_come_by_end_then_start_then_key() -> None:
    check(
        counted(SessionWindows(10)),
        """
        b=x@4   ->
        c=x@5   ->
        d=x@0   ->
        d=x@5   ->
        a=x@5   ->
        z=x@100 -> b@4-4=1@4 d@0-5=2@5 a@5-5=1@5 c@5-5=1@5
        """,
    )


def test_merged_session_is_put_out_as_one() -> None:
    check(
        counted(SessionWindows(10, grace=10)),
        """
        a=x@0   ->
        a=x@15  ->
        a=x@8   ->
        a=x@100 -> a@0-15=3@15
        """,
    )


def test_jump_in_time_loses_no_sessions() -> None:
    check(
        counted(SessionWindows(10), retention=None),
        """
        a=x@0    ->
        a=x@500  -> a@0-0=1@0
        a=x@9999 -> a@500-500=1@500
        """,
    )


# -- what comes out ---------------------------------------------------------------------------------------------------


def test_result_has_the_headers_of_the_record_that_closes_the_window() -> None:
    with TopologyTestDriver(counted(TumblingWindows(10)).build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        lines.pipe_input("a", "x", 3, {"n": b"1"})
        lines.pipe_input("b", "x", 10, {"n": b"2"})

        expected = Record(Windowed("a", Window(0, 10)), 1, 3, [("n", b"2")])
        assert driver.create_output_topic("out").read_records() == [expected]


def test_aggregator_that_changes_its_aggregate_in_place() -> None:
    builder, stream = on_close(TumblingWindows(10))
    stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json)).to_stream().to("out")

    check(
        builder,
        """
        a=1@0  ->
        a=2@1  ->
        b=3@10 -> a@0-10=["1","2"]@1
        """,
    )


def test_strategy_of_updates_is_the_default() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10))
    stream.emit_strategy(EmitStrategy.on_window_update()).count().to_stream().to("out")

    check(builder, "a=x@0 -> a@0-10=1@0")


def test_results_can_be_reduced() -> None:
    builder, stream = on_close(TumblingWindows(10))
    stream.reduce(lambda left, right: f"{left}+{right}").to_stream().to("out")

    check(
        builder,
        """
        a=1@0  ->
        a=2@1  ->
        a=3@10 -> a@0-10=1+2@1
        """,
    )


def test_unlimited_windows_never_close() -> None:
    stream = StreamsBuilder().stream("in").group_by_key().windowed_by(UnlimitedWindows())

    with pytest.raises(TopologyError, match="unlimited windows never close"):
        stream.emit_strategy(EmitStrategy.on_window_close())
