"""Outer join of two streams: records of both sides without a match are output when their window has closed.

Tests `stream_join.py`.
"""

import pytest

from headrace import JoinWindows, StreamsBuilder, Topology, serdes
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check, plus


def joined(window: JoinWindows) -> Topology:
    builder = StreamsBuilder()
    builder.stream("left").outer_join(builder.stream("right"), plus, window=window).to("out")
    return builder.build()


def test_record_with_a_match_is_never_put_out_alone() -> None:
    check(
        joined(JoinWindows(100)),
        """
        left  0=A0@0      ->
        right 0=10@0      -> 0=A0+10@0
        left  0=B0@0      -> 0=B0+10@0
        left  2=B2@0      ->
        right 0=20@0      -> 0=A0+20@0 0=B0+20@0
        right 2=22@0      -> 2=B2+22@0
        right 3=23@0      ->
        left  3=C3@0      -> 3=C3+23@0
        left  0=dummy@400 ->
        """,
    )


# -- when results without a match come --------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
def test_expired_left_records_are_put_out_by_either_side(side: str) -> None:
    check(
        joined(JoinWindows(100)),
        f"""
        left   0=A0@1      ->
        left   1=A1@2      ->
        left   0=A0-0@3    ->
        right  1=11@3      -> 1=A1+11@3
        {side} 2=dummy@401 -> 0=A0+None@1 0=A0-0+None@3
        """,
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_expired_right_records_are_put_out_by_either_side(side: str) -> None:
    check(
        joined(JoinWindows(100)),
        f"""
        right  0=10@1      ->
        right  1=11@2      ->
        right  0=12@3      ->
        left   1=A1@3      -> 1=A1+11@3
        {side} 2=dummy@401 -> 0=None+10@1 0=None+12@3
        """,
    )


def test_duplicates_of_both_sides() -> None:
    check(
        joined(JoinWindows(100, grace=10)),
        """
        left  0=A0@0    ->
        left  0=A0-0@0  ->
        right 1=11@0    ->
        right 1=12@0    ->
        right 1=10@111  -> 1=None+11@0 1=None+12@0 0=A0+None@0 0=A0-0+None@0
        right 3=100@211 ->
        left  2=A2@200  ->
        left  2=A2-0@200 ->
        right 2=13@201  -> 2=A2+13@201 2=A2-0+13@201
        right 2=14@201  -> 2=A2+14@201 2=A2-0+14@201
        right 3=100@1500 -> 1=None+10@111 3=None+100@211
        """,
    )


def test_expired_results_come_before_the_result_of_the_record_that_brings_them() -> None:
    check(
        joined(JoinWindows(100)),
        """
        left  0=A0@0   ->
        left  1=A1@100 ->
        right 1=11@110 -> 0=A0+None@0 1=A1+11@110
        """,
    )


def test_results_are_put_out_by_time_then_right_before_left_then_key() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  a=A@1  ->
        right c=z@1  ->
        left  d=D@0  ->
        right b=y@1  ->
        left  z=Z@20 -> d=D+None@0 b=None+y@1 c=None+z@1 a=A+None@1
        """,
    )


def test_result_waits_for_window_and_grace() -> None:
    check(
        joined(JoinWindows(100, grace=10)),
        """
        left  0=A0@0    ->
        right 1=11@0    ->
        left  1=A1@101  ->
        right 0=10@101  ->
        right 0=100@112 -> 1=None+11@0 0=A0+None@0
        """,
    )


# -- asymmetric windows -----------------------------------------------------------------------------------------------


def test_each_side_waits_for_its_own_end_of_the_window() -> None:
    check(
        joined(JoinWindows(before=5, after=20)),
        """
        left  0=A0@29 ->
        left  1=A1@30 ->
        right 2=12@31 ->
        right 3=13@36 ->
        right 4=14@37 -> 2=None+12@31
        right 5=15@50 -> 0=A0+None@29 3=None+13@36 4=None+14@37
        """,
    )


def test_window_without_a_before() -> None:
    check(
        joined(JoinWindows(before=0, after=100)),
        """
        left  0=A0@0   ->
        left  1=A1@1   ->
        right 0=10@100 -> 0=A0+10@100
        right 1=11@102 -> 1=A1+None@1
        right 2=12@103 -> 1=None+11@102
        left  2=A2@103 -> 2=A2+12@103
        """,
    )


def test_window_without_an_after() -> None:
    check(
        joined(JoinWindows(before=100, after=0)),
        """
        left  0=A0@0   ->
        left  1=A1@1   -> 0=A0+None@0
        right 1=11@1   -> 1=A1+11@1
        right 2=12@101 ->
        right 3=13@101 ->
        left  2=A2@201 -> 2=A2+12@201
        """,
    )


def test_window_of_no_length_joins_records_of_the_same_time() -> None:
    check(
        joined(JoinWindows(0, grace=1)),
        """
        left  k=A@5 ->
        right k=x@5 -> k=A+x@5
        right k=y@6 ->
        left  k=B@8 -> k=None+y@6
        right q=z@9 ->
        right q=v@10 -> k=B+None@8
        """,
    )


def test_window_of_no_length_and_no_grace_keeps_nothing_to_join_with() -> None:
    check(
        joined(JoinWindows(0)),
        """
        left  k=A@5 ->
        right k=x@5 ->
        right k=y@6 -> k=None+x@5 k=A+None@5
        left  k=B@7 -> k=None+y@6
        """,
    )


# -- late records -----------------------------------------------------------------------------------------------------


def test_late_records_whose_window_has_passed_are_put_out_at_once() -> None:
    check(
        joined(JoinWindows(10, grace=5)),
        """
        left  a=A@100 ->
        right a=x@80  -> a=None+x@80
        right a=y@95  -> a=A+y@100
        left  a=B@70  -> a=B+x@80
        right a=z@60  -> a=None+z@60
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_null_keys_of_both_sides_are_put_out_at_once() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  None=A@0    -> None=A+None@0
        right None=x@1    -> None=None+x@1
        left  None=None@2 ->
        right None=None@3 ->
        """,
    )


def test_null_keys_move_the_time_of_the_join() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  k=B@3     ->
        right None=x@50 -> None=None+x@50
        left  m=C@30    -> m=C+None@30
        right q=y@51    -> k=B+None@3
        """,
    )


def test_null_keys_get_through_the_repartitions_of_an_outer_join() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left").repartition(), builder.stream("right").repartition()
    left.outer_join(right, plus, window=JoinWindows(10)).to("out")

    check(
        builder.build(),
        """
        right None=x@1 -> None=None+x@1
        left  None=A@1 -> None=A+None@1
        """,
    )


def test_null_keys_made_by_mappings_get_through() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").map(lambda key, value: (None, value))
    right = builder.stream("right").flat_map(lambda key, value: [(None, value)])
    left.outer_join(right, plus, window=JoinWindows(10)).to("out")

    check(
        builder.build(),
        """
        left  k=A@1 -> None=A+None@1
        right k=x@1 -> None=None+x@1
        """,
    )


# -- what it is made of -----------------------------------------------------------------------------------------------


def test_results_without_a_match_can_be_joined_again() -> None:
    builder = StreamsBuilder()
    one, two, three = (builder.stream(topic) for topic in ("one", "two", "three"))
    one.outer_join(two, plus, window=JoinWindows(5)).outer_join(three, plus, window=JoinWindows(5)).to("out")

    check(
        builder.build(),
        """
        one   k=A@0  ->
        three k=z@2  ->
        two   q=x@6  -> k=A+None+z@2
        two   k=y@20 ->
        one   r=B@30 -> q=None+x+None@6
        """,
    )


def test_expired_results_have_the_headers_of_the_record_that_brings_them() -> None:
    with TopologyTestDriver(joined(JoinWindows(100, grace=10)), {"default_value_serde": serdes.String}) as driver:
        left, right = driver.create_input_topic("left"), driver.create_input_topic("right")
        out = driver.create_output_topic("out")
        left.pipe_input("0", "A0", 0, headers={"h": b"1"})
        right.pipe_input("1", "10", 0, headers={"h": b"2"})
        right.pipe_input("3", "100", 211, headers={"h": b"3"})
        assert out.read_records() == [
            Record("1", "None+10", 0, [("h", b"3")]),
            Record("0", "A0+None", 0, [("h", b"3")]),
        ]
        left.pipe_input("2", "A2", 200, headers={"h": b"4"})
        right.pipe_input("2", "12", 200, headers={"h": b"5"})
        assert out.read_records() == [Record("2", "A2+12", 200, [("h", b"5")])]


def test_sides_may_have_values_of_different_types() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left", key_serde=serdes.Integer, value_serde=serdes.String)
    right = builder.stream("right", key_serde=serdes.Integer, value_serde=serdes.Long)
    left.outer_join(right, lambda left, right: [left, right], window=JoinWindows(10)).to(
        "out", key_serde=serdes.Integer, value_serde=serdes.Json
    )

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("left").pipe_input(1, "A", 0)
        driver.create_input_topic("right").pipe_input(2, 7, 0)
        driver.create_input_topic("left").pipe_input(3, "end", 50)
        assert driver.create_output_topic("out").read_key_values() == [(2, [None, 7]), (1, ["A", None])]
