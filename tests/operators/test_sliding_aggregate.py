"""count, reduce and aggregate over sliding windows: one that ends at each record, one that starts just after it."""

import random
from typing import Any

import pytest

from headrace import (
    Materialized,
    SlidingWindows,
    StreamsBuilder,
    TaskError,
    TimeWindowedStream,
    TopologyError,
    Window,
    Windowed,
    serdes,
)
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, dropped, log_of


def sliding(difference: int, grace: int = 0) -> tuple[StreamsBuilder, TimeWindowedStream[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.stream("in").group_by_key().windowed_by(SlidingWindows(difference, grace=grace))


def concat(key: Any, value: str, aggregate: str) -> str:
    return f"{aggregate}+{value}"


def aggregated(difference: int, grace: int = 0, store: Any = None) -> StreamsBuilder:
    builder, stream = sliding(difference, grace)
    stream.aggregate(lambda: "0", concat, store=store).to_stream().to("out")
    return builder


def counted(difference: int, grace: int = 0, store: Any = None) -> StreamsBuilder:
    builder, stream = sliding(difference, grace)
    stream.count(store=store).to_stream().to("out")
    return builder


# -- which windows there are ------------------------------------------------------------------------------------------


def test_records_in_order() -> None:
    check(
        aggregated(10, grace=5),
        """
        A=1@10 -> A@0-10=0+1@10
        A=2@10 -> A@0-10=0+1+2@10
        A=3@14 -> A@11-21=0+3@14 A@4-14=0+1+2+3@14
        A=4@15 -> A@11-21=0+3+4@15 A@15-25=0+4@15 A@5-15=0+1+2+3+4@15
        A=5@20 -> A@15-25=0+4+5@20 A@11-21=0+3+4+5@20 A@16-26=0+5@20 A@10-20=0+1+2+3+4+5@20
        A=6@22 -> A@16-26=0+5+6@22 A@15-25=0+4+5+6@22 A@21-31=0+6@22 A@12-22=0+3+4+5+6@22
        A=7@30 -> A@21-31=0+6+7@30 A@23-33=0+7@30 A@20-30=0+5+6+7@30
        """,
    )


def test_reduce_of_records_in_order() -> None:
    builder, stream = sliding(10, grace=5)
    stream.reduce(lambda aggregate, value: f"{aggregate}+{value}").to_stream().to("out")

    check(
        builder,
        """
        A=1@10 -> A@0-10=1@10
        A=2@14 -> A@11-21=2@14 A@4-14=1+2@14
        A=3@15 -> A@11-21=2+3@15 A@15-25=3@15 A@5-15=1+2+3@15
        A=4@22 -> A@15-25=3+4@22 A@16-26=4@22 A@12-22=2+3+4@22
        A=5@26 -> A@16-26=4+5@26 A@23-33=5@26
        A=6@30 -> A@23-33=5+6@30 A@27-37=6@30 A@20-30=4+5+6@30
        """,
    )


def test_both_bounds_belong_to_a_window() -> None:
    check(
        counted(10),
        """
        a=x@100 -> a@90-100=1@100
        a=x@110 -> a@101-111=1@110 a@100-110=2@110
        a=x@122 -> a@112-122=1@122
        """,
    )


def test_window_after_one_record_that_ends_at_the_next_is_put_out_twice_without_a_cache() -> None:
    check(
        counted(10),
        """
        a=x@100 -> a@90-100=1@100
        a=x@110 -> a@101-111=1@110 a@100-110=2@110
        a=x@121 -> a@111-121=1@121 a@111-121=1@121
        """,
        cached=False,
    )


def test_record_far_from_the_one_before_has_a_window_of_its_own() -> None:
    check(
        counted(10),
        """
        a=x@100 -> a@90-100=1@100
        a=x@112 -> a@102-112=1@112
        a=x@200 -> a@190-200=1@200
        """,
    )


def test_out_of_order_record_makes_the_windows_that_begin_after_it() -> None:
    check(
        aggregated(10, grace=50),
        """
        A=1@10 -> A@0-10=0+1@10
        A=2@20 -> A@11-21=0+2@20 A@10-20=0+1+2@20
        A=3@22 -> A@21-31=0+3@22 A@12-22=0+2+3@22
        A=4@15 -> A@12-22=0+2+3+4@22 A@11-21=0+2+4@20 A@10-20=0+1+2+4@20 A@5-15=0+1+4@15 A@16-26=0+2+3@22
        """,
    )


def test_record_at_the_time_of_another_makes_no_window() -> None:
    check(
        counted(10, grace=50),
        """
        a=x@100 -> a@90-100=1@100
        a=x@100 -> a@90-100=2@100
        a=x@105 -> a@101-111=1@105 a@95-105=3@105
        a=x@105 -> a@101-111=2@105 a@95-105=4@105
        a=x@100 -> a@95-105=5@105 a@90-100=3@100
        """,
    )


def test_keys_have_windows_of_their_own() -> None:
    check(
        counted(10),
        """
        a=x@100  -> a@90-100=1@100
        ab=x@100 -> ab@90-100=1@100
        a=x@101  -> a@101-111=1@101 a@91-101=2@101
        """,
    )


RECORDS = {
    "A": 10, "B": 15, "C": 16, "D": 18, "E": 30, "F": 40, "G": 55, "H": 56, "I": 58, "J": 58, "K": 62, "L": 63, "M": 63,
    "N": 63, "O": 76, "P": 77, "Q": 80, "R": 2, "S": 3, "T": 5, "U": 8,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_windows_are_the_same_in_whatever_order_records_come(seed: int) -> None:
    builder, stream = sliding(10, grace=100)
    texts = Materialized("texts", retention=1000)
    stream.aggregate(lambda: "", lambda key, value, text: "".join(sorted(text + value)), store=texts)
    records = list(RECORDS.items())
    random.Random(seed).shuffle(records)

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        for value, timestamp in records:
            lines.pipe_input("k", value, timestamp)

        windows = {key.window.start: text for key, text in driver.state_store("texts").all()}
    assert windows == {
        0: "ARSTU", 3: "ASTU", 4: "ATU", 5: "ABTU", 6: "ABCU", 8: "ABCDU", 9: "ABCD", 11: "BCD", 16: "CD", 17: "D",
        20: "E", 30: "EF", 31: "F", 45: "G", 46: "GH", 48: "GHIJ", 52: "GHIJK", 53: "GHIJKLMN", 56: "HIJKLMN",
        57: "IJKLMN", 59: "KLMN", 63: "LMN", 66: "O", 67: "OP", 70: "OPQ", 77: "PQ", 78: "Q",
    }  # fmt: skip


# -- early records: their own window would begin before 0 -------------------------------------------------------------


def test_early_records_share_the_window_that_begins_at_zero() -> None:
    check(
        aggregated(50),
        """
        A=1@0  -> A@0-50=0+1@0
        A=2@5  -> A@1-51=0+2@5 A@0-50=0+1+2@5
        A=3@6  -> A@1-51=0+2+3@6 A@6-56=0+3@6 A@0-50=0+1+2+3@6
        A=4@3  -> A@1-51=0+2+3+4@6 A@4-54=0+2+3@6 A@0-50=0+1+2+3+4@6
        A=5@13 -> A@1-51=0+2+3+4+5@13 A@4-54=0+2+3+5@13 A@6-56=0+3+5@13 A@7-57=0+5@13 A@0-50=0+1+2+3+4+5@13
        A=7@70 -> A@20-70=0+7@70
        """,
    )


def test_early_records_that_come_again() -> None:
    check(
        aggregated(5),
        """
        A=1@0 -> A@0-5=0+1@0
        A=2@2 -> A@1-6=0+2@2 A@0-5=0+1+2@2
        A=3@4 -> A@1-6=0+2+3@4 A@3-8=0+3@4 A@0-5=0+1+2+3@4
        A=4@0 -> A@0-5=0+1+2+3+4@4
        A=5@2 -> A@1-6=0+2+3+5@4 A@0-5=0+1+2+3+4+5@4
        A=6@2 -> A@1-6=0+2+3+5+6@4 A@0-5=0+1+2+3+4+5+6@4
        A=7@0 -> A@0-5=0+1+2+3+4+5+6+7@4
        A=8@7 -> A@3-8=0+3+8@7 A@5-10=0+8@7 A@2-7=0+2+3+5+6+8@7
        """,
    )


def test_early_record_before_the_first_one_makes_the_window_after_it() -> None:
    check(
        aggregated(10, grace=50),
        """
        k=1@3  -> k@0-10=0+1@3
        k=2@7  -> k@4-14=0+2@7 k@0-10=0+1+2@7
        k=3@1  -> k@2-12=0+1+2@7 k@0-10=0+1+2+3@7
        k=4@12 -> k@4-14=0+2+4@12 k@2-12=0+1+2+4@12 k@8-18=0+4@12
        """,
    )


def test_early_window_closes_like_any_other() -> None:
    check(
        aggregated(5),
        """
        A=1@0 -> A@0-5=0+1@0
        A=2@7 -> A@2-7=0+2@7
        A=3@4 -> A@2-7=0+2+3@7 A@5-10=0+2@7
        """,
    )


# -- late records -----------------------------------------------------------------------------------------------------


def test_window_takes_records_until_grace_after_its_end_has_passed() -> None:
    check(
        counted(10, grace=5),
        """
        a=x@100 -> a@90-100=1@100
        b=x@105 -> b@95-105=1@105
        a=x@100 -> a@90-100=2@100
        b=x@106 -> b@106-116=1@106 b@96-106=2@106
        a=x@100 ->
        """,
    )


def test_late_record_is_dropped_after_grace() -> None:
    builder = aggregated(10, grace=90)

    check(
        builder,
        """
        k=100@200 -> k@190-200=0+100@200
        k=0@100   ->
        k=5@105   ->
        k=6@15    ->
        k=101@300 -> k@290-300=0+101@300
        """,
    )
    assert dropped(builder, "k=100@200 k=0@100 k=1@101 k=2@102 k=3@103 k=4@104 k=5@105 k=6@15 k=101@300") == 7


def test_late_record_still_gets_into_the_windows_that_are_open() -> None:
    check(
        aggregated(10),
        """
        a=1@100 -> a@90-100=0+1@100
        a=2@105 -> a@101-111=0+2@105 a@95-105=0+1+2@105
        a=3@98  -> a@95-105=0+1+2+3@105 a@99-109=0+1+2@105
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_null_key_or_value_is_dropped_and_time_stands_still() -> None:
    builder = counted(10)

    check(
        builder,
        """
        a=x@100    -> a@90-100=1@100
        None=x@900 ->
        a=None@900 ->
        a=x@100    -> a@90-100=2@100
        """,
    )
    assert dropped(builder, "None=x@900 a=None@900") == 2


def test_aggregator_that_gives_none_deletes_the_window() -> None:
    builder, stream = sliding(10)
    stream.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value, store="texts")
    stream.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value).to_stream().to("out")

    check(
        builder,
        """
        a=x@100 -> a@90-100=x@100
        a=-@100 -> a@90-100=None@100
        a=y@100 -> a@90-100=y@100
        """,
        stores={"texts": {"a@90-100": "y"}},
    )


# -- stores and retention ---------------------------------------------------------------------------------------------


def test_windows_are_kept_for_twice_the_difference_and_grace() -> None:
    check(
        counted(10, grace=5, store="counts"),
        """
        a=x@100 -> a@90-100=1@100
        b=x@124 -> b@114-124=1@124
        b=x@135 -> b@125-135=1@135
        """,
        cached=False,
        stores={"counts": {"b@114-124": 1, "b@125-135": 1}},
    )


def test_windows_can_be_kept_longer() -> None:
    check(
        counted(100, store=Materialized("counts", retention=1200)),
        """
        1=x@100  -> 1@0-100=1@100
        1=x@500  -> 1@400-500=1@500
        1=x@1000 -> 1@900-1000=1@1000
        1=x@2000 -> 1@1900-2000=1@2000
        """,
        cached=False,
        stores={"counts": {"1@900-1000": 1, "1@1900-2000": 1}},
    )


def test_retention_must_cover_twice_the_difference_and_grace() -> None:
    _, stream = sliding(10, grace=5)

    with pytest.raises(TopologyError, match=r"\(25 ms\), got 24 ms"):
        stream.count(store=Materialized("counts", retention=24))


# -- keys on the output topic -----------------------------------------------------------------------------------------


def test_end_of_a_window_is_its_start_and_the_difference() -> None:
    with TopologyTestDriver(counted(10).build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "x", 100)

        out = driver.create_output_topic("out", key_serde=serdes.Windowed(serdes.String, 10))
        assert out.read_key_value() == (Windowed("a", Window(90, 100)), 1)


# -- old values -------------------------------------------------------------------------------------------------------


def test_old_value_of_a_window_made_from_another_is_the_other_windows_value_without_a_cache() -> None:
    builder, stream = sliding(10)
    log_of(stream.reduce(lambda text, value: text + value))

    check(
        builder,
        """
        a=1@100 -> all=+1@100
        a=2@105 -> all=+1+2@105 all=+1+2-1+12@105
        """,
        cached=False,
    )


def test_regrouping_out_of_a_cache_has_the_old_values_right() -> None:
    builder, stream = sliding(10)
    log_of(stream.reduce(lambda text, value: text + value))

    check(
        builder,
        """
        a=1@100 -> all=+1@100
        a=2@105 -> all=+1+2@105 all=+1+2+12@105
        a=3@105 -> all=+1+2+12-2+23@105 all=+1+2+12-2+23-12+123@105
        """,
        cached=True,
    )


# -- functions that change what they are given ------------------------------------------------------------------------


def test_aggregator_that_changes_its_aggregate_in_place() -> None:
    builder, stream = sliding(10, grace=50)
    lists = stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json))
    lists.map_values("".join).to_stream().to("out")

    check(
        builder,
        """
        A=1@10 -> A@0-10=1@10
        A=2@20 -> A@11-21=2@20 A@10-20=12@20
        A=3@22 -> A@21-31=3@22 A@12-22=23@22
        A=4@15 -> A@12-22=234@22 A@11-21=24@20 A@10-20=124@20 A@5-15=14@15 A@16-26=23@22
        A=5@3  -> A@4-14=1@10 A@0-10=15@10
        """,
        stores={
            "lists": {
                "A@0-10": ["1", "5"],
                "A@4-14": ["1"],
                "A@5-15": ["1", "4"],
                "A@10-20": ["1", "2", "4"],
                "A@11-21": ["2", "4"],
                "A@12-22": ["2", "3", "4"],
                "A@16-26": ["2", "3"],
                "A@21-31": ["3"],
            }
        },
    )


def test_old_value_is_not_changed_by_an_aggregator_that_works_in_place() -> None:
    builder, stream = sliding(10)
    lists = stream.aggregate(list, append, store=Materialized(value_serde=serdes.Json))
    log_of(lists.map_values("".join))

    check(
        builder,
        """
        a=x@100 -> all=+x@100
        a=y@100 -> all=+x-x+xy@100
        """,
        cached=True,
    )


# -- errors -----------------------------------------------------------------------------------------------------------


def test_failing_aggregator_names_its_step() -> None:
    builder, stream = sliding(10)
    stream.aggregate(lambda: 0, lambda key, value, total: total + int(value), name="sum")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        with pytest.raises(TaskError, match=r"step 'sum'.*ValueError"):
            lines.pipe_input("a", "x", 0)
