"""cogroup: several grouped streams folded into one table.

Tests `dsl/cogrouped.py`; the operators are those of `aggregate.py`, `windowed_aggregate.py` and `session_aggregate.py`.
"""

from typing import Any

import pytest

from headrace import (
    HoppingWindows,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TaskError,
    TopologyError,
    TumblingWindows,
    serdes,
)
from headrace.dsl.cogrouped import CogroupedStream
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, check_batches, dropped, log_of


def concat(key: Any, value: str, text: str) -> str:
    return text + value


def cogrouped(*topics: str) -> tuple[StreamsBuilder, CogroupedStream[Any, Any]]:
    builder = StreamsBuilder()
    first, *others = [builder.stream(topic).group_by_key() for topic in topics]
    streams = first.cogroup(concat)
    for other in others:
        streams = streams.cogroup(other, concat)
    return builder, streams


# -- without windows --------------------------------------------------------------------------------------------------


def test_one_stream_alone() -> None:
    builder, streams = cogrouped("in")
    streams.aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        k1=A@0 -> k1=A@0
        k2=B@0 -> k2=B@0
        k2=B@0 -> k2=BB@0
        k1=A@0 -> k1=AA@0
        """,
    )


def test_two_streams_with_keys_of_their_own() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        k1=A@0       -> k1=A@0
        k1=A@100     -> k1=AA@100
        in2 k2=B@200 -> k2=B@200
        in2 k2=B@1   -> k2=BB@200
        in2 k2=B@500 -> k2=BBB@500
        """,
    )


def test_two_streams_with_the_same_keys() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.aggregate(str, store="texts").to_stream().to("out")

    check(
        builder,
        """
        k1=A@0       -> k1=A@0
        k2=A@1       -> k2=A@1
        k1=A@10      -> k1=AA@10
        in2 k2=B@100 -> k2=AB@100
        in2 k1=B@1   -> k1=AAB@10
        in2 k3=B@500 -> k3=B@500
        k2=A@100     -> k2=ABA@100
        """,
        stores={"texts": {"k1": "AAB", "k2": "ABA", "k3": "B"}},
    )


def test_every_stream_has_its_aggregator() -> None:
    builder = StreamsBuilder()
    ups, downs = builder.stream("in").group_by_key(), builder.stream("downs").group_by_key()
    level = ups.cogroup(lambda key, value, level: level + int(value))
    level = level.cogroup(downs, lambda key, value, level: level - int(value))
    level.aggregate(lambda: 0, store=Materialized(value_serde=serdes.Integer)).to_stream().to("out")

    check(
        builder,
        """
        a=5@0       -> a=5@0
        downs a=2@1 -> a=3@1
        downs b=2@2 -> b=-2@2
        """,
    )


def test_streams_may_have_values_of_different_types() -> None:
    builder = StreamsBuilder()
    texts = builder.stream("texts", value_serde=serdes.String).group_by_key()
    numbers = builder.stream("numbers", value_serde=serdes.Integer).group_by_key()
    total = texts.cogroup(lambda key, value, total: total + int(value))
    total = total.cogroup(numbers, lambda key, value, total: total + value)
    total.aggregate(lambda: 0, store=Materialized(value_serde=serdes.Long)).to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("texts").pipe_input("a", "1")
        driver.create_input_topic("numbers").pipe_input("a", 2)

        assert driver.create_output_topic("out").read_key_values() == [("a", 1), ("a", 3)]


def test_three_streams() -> None:
    builder, streams = cogrouped("in", "in2", "in3")
    streams.aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        a=1@0     -> a=1@0
        in2 a=2@1 -> a=12@1
        in3 a=3@2 -> a=123@2
        a=4@3     -> a=1234@3
        """,
    )


def test_null_keys_and_values_are_dropped() -> None:
    builder, streams = cogrouped("in")
    streams.aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        k2=B@0    -> k2=B@0
        k2=None@0 ->
        None=C@0  ->
        k2=B@0    -> k2=BB@0
        """,
    )
    assert dropped(builder, "k2=None@0 None=C@0") == 2


def test_none_deletes_the_row() -> None:
    builder = StreamsBuilder()
    puts, deletes = builder.stream("in").group_by_key(), builder.stream("deletes").group_by_key()
    both = puts.cogroup(concat).cogroup(deletes, lambda key, value, text: None)
    both.aggregate(str, store="texts").to_stream().to("out")

    check(
        builder,
        """
        a=x@0         -> a=x@0
        deletes a=x@1 -> a=None@1
        a=y@2         -> a=y@2
        """,
        stores={"texts": {"a": "y"}},
    )


def test_streams_whose_key_was_changed_are_repartitioned() -> None:
    builder = StreamsBuilder()
    one = builder.stream("in").group_by(lambda key, value: value[0], name="one")
    two = builder.stream("in2").select_key(lambda key, value: value[0]).group_by_key(name="two")
    one.cogroup(concat).cogroup(two, concat).aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        a=x1@0     -> x=x1@0
        in2 b=x2@1 -> x=x1x2@1
        """,
    )


def test_group_that_is_added_again_gets_another_aggregator() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.cogroup(concat).cogroup(grouped, lambda key, value, text: f"{text}<{value}>").aggregate(str).to_stream().to(
        "out"
    )

    check(builder, "a=1@0 -> a=<1>@0")


def test_streams_may_be_cogrouped_more_than_once() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.aggregate(str).to_stream().to("out")
    streams.aggregate(lambda: "+").to_stream().to("out")

    check(
        builder,
        """
        a=1@0     -> a=1@0 a=+1@0
        in2 a=2@1 -> a=12@1 a=+12@1
        """,
    )


def test_cogrouped_table_can_be_joined() -> None:
    builder, streams = cogrouped("in", "in2")
    counts = builder.stream("in3").group_by_key().count()
    streams.aggregate(str).join(counts, lambda text, count: f"{text}:{count}").to_stream().to("out")

    check(
        builder,
        """
        a=1@0     ->
        in3 a=x@1 -> a=1:1@1
        in2 a=2@2 -> a=12:1@2
        in3 a=x@3 -> a=12:2@3
        """,
    )


# -- windows ----------------------------------------------------------------------------------------------------------


def test_tumbling_windows() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.windowed_by(TumblingWindows(500)).aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        k1=A@0       -> k1@0-500=A@0
        k1=A@499     -> k1@0-500=AA@499
        k1=A@500     -> k1@500-1000=A@500
        in2 k1=B@499 -> k1@0-500=AAB@499
        in2 k1=B@501 -> k1@500-1000=AB@501
        """,
        cached=True,
    )


def test_hopping_windows() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.windowed_by(HoppingWindows(10, advance=5, grace=100)).aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        a=1@7     -> a@0-10=1@7 a@5-15=1@7
        in2 a=2@3 -> a@0-10=12@7
        """,
    )


def test_sliding_windows() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.windowed_by(SlidingWindows(10, grace=100)).aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        a=1@100     -> a@90-100=1@100
        in2 a=2@105 -> a@101-111=2@105 a@95-105=12@105
        a=3@100     -> a@95-105=123@105 a@90-100=13@100
        """,
    )


def test_sessions_are_merged_across_streams() -> None:
    builder, streams = cogrouped("in", "in2")
    windowed = streams.windowed_by(SessionWindows(10, grace=100))
    table = windowed.aggregate(str, merger=lambda key, left, right: left + right)
    table.to_stream().to("out")

    check(
        builder,
        """
        a=1@0     -> a@0-0=1@0
        a=2@15    -> a@15-15=2@15
        in2 a=3@8 -> a@0-0=None@0 a@15-15=None@15 a@0-15=123@15
        """,
    )


def test_each_stream_has_its_own_time() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.windowed_by(TumblingWindows(10)).aggregate(str, store=Materialized("texts", retention=1000)).to_stream().to(
        "out"
    )

    check(
        builder,
        """
        a=1@5      -> a@0-10=1@5
        a=2@25     -> a@20-30=2@25
        in2 a=3@6  -> a@0-10=13@6
        a=4@7      ->
        in2 a=5@26 -> a@20-30=25@26
        in2 a=6@8  ->
        """,
        stores={"texts": {"a@0-10": "13", "a@20-30": "25"}},
    )


def test_window_that_the_other_stream_has_pushed_out_begins_anew_without_a_cache() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.windowed_by(TumblingWindows(10)).aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        a=1@5     -> a@0-10=1@5
        a=2@25    -> a@20-30=2@25
        in2 a=3@6 -> a@0-10=3@6
        """,
        cached=False,
    )


# -- updates ----------------------------------------------------------------------------------------------------------


def test_one_update_per_key_and_commit_whatever_stream_it_comes_from() -> None:
    builder, streams = cogrouped("in", "in2")
    streams.aggregate(str).to_stream().to("out")

    check_batches(
        builder,
        """
        a=1@0 b=1@1 a=2@2 -> b=1@1 a=12@2
        in2 a=3@3 a=4@4   -> a=1234@4
        """,
    )


def test_old_values_are_right_whatever_stream_they_come_from() -> None:
    builder, streams = cogrouped("in", "in2")
    log_of(streams.aggregate(str))

    check(
        builder,
        """
        a=1@0     -> all=+1@0
        in2 a=2@1 -> all=+1-1+12@1
        a=3@2     -> all=+1-1+12-12+123@2
        """,
        cached=True,
    )


def test_aggregators_that_change_the_aggregate_in_place() -> None:
    builder = StreamsBuilder()
    one, two = builder.stream("in").group_by_key(), builder.stream("in2").group_by_key()
    lists = one.cogroup(append).cogroup(two, append).aggregate(list, store=Materialized(value_serde=serdes.Json))
    log_of(lists.map_values("".join))

    check(
        builder,
        """
        a=1@0     -> all=+1@0
        in2 a=2@1 -> all=+1-1+12@1
        """,
        cached=True,
    )


# -- errors -----------------------------------------------------------------------------------------------------------


def test_failing_aggregator_names_its_step() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.cogroup(lambda key, value, total: total + int(value)).aggregate(lambda: 0, name="total")

    with TopologyTestDriver(builder.build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        with pytest.raises(TaskError, match=r"step 'total-cogroup-agg-0'.*ValueError"):
            lines.pipe_input("a", "x")


@pytest.mark.parametrize(
    "call",
    [
        lambda streams: streams.cogroup(None, concat),
        lambda streams: streams.cogroup(streams, concat),
        lambda streams: streams.cogroup(StreamsBuilder().stream("in").group_by_key(), concat),
        lambda streams: streams.aggregate(None),
        lambda streams: streams.windowed_by(None),
        lambda streams: streams.windowed_by(SessionWindows(10)).aggregate(str),
        lambda streams: streams.windowed_by(SessionWindows(10)).aggregate(str, merger="x"),
        lambda streams: streams.windowed_by(TumblingWindows(10)).aggregate(str, merger=concat),
        lambda streams: streams.aggregate(str, merger=concat),
    ],
)
def test_wrong_arguments_are_refused(call: Any) -> None:
    _, streams = cogrouped("in")

    with pytest.raises(TopologyError):
        call(streams)


def test_cogroup_needs_an_aggregator() -> None:
    with pytest.raises(TopologyError, match="cogroup"):
        StreamsBuilder().stream("in").group_by_key().cogroup(None)  # type: ignore[arg-type]
