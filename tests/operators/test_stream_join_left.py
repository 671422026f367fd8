"""Left join of two streams: a left record without a match is output when its window has closed.

Tests `stream_join.py`.
"""

import pytest

from headrace import JoinWindows, StreamsBuilder, Topology, serdes
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check, plus


def joined(window: JoinWindows) -> Topology:
    builder = StreamsBuilder()
    builder.stream("left").left_join(builder.stream("right"), plus, window=window).to("out")
    return builder.build()


def test_record_with_a_match_is_never_put_out_alone() -> None:
    check(
        joined(JoinWindows(100)),
        """
        left  0=A0@0      ->
        left  1=A1@0      ->
        right 0=a0@0      -> 0=A0+a0@0
        right 1=a1@0      -> 1=A1+a1@0
        left  0=B0@0      -> 0=B0+a0@0
        left  2=B2@0      ->
        right 0=b0@0      -> 0=A0+b0@0 0=B0+b0@0
        right 2=b2@0      -> 2=B2+b2@0
        right 3=b3@0      ->
        left  3=C3@0      -> 3=C3+b3@0
        left  0=dummy@1000 ->
        """,
    )


def test_match_at_the_end_of_the_window_comes_in_time() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  a=A@0  ->
        left  b=B@0  ->
        right a=x@10 -> a=A+x@10
        right b=x@11 -> b=B+None@0
        """,
    )


# -- when results without a match come --------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
def test_record_of_either_side_puts_out_what_has_expired(side: str) -> None:
    check(
        joined(JoinWindows(100)),
        f"""
        left   0=A0@1      ->
        left   1=A1@2      ->
        left   0=A0-0@3    ->
        right  1=a1@3      -> 1=A1+a1@3
        {side} 2=dummy@401 -> 0=A0+None@1 0=A0-0+None@3
        """,
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_right_record_without_a_match_is_never_put_out(side: str) -> None:
    check(
        joined(JoinWindows(100)),
        f"""
        right  0=a0@1      ->
        right  1=a1@2      ->
        right  0=a0-0@3    ->
        left   1=A1@3      -> 1=A1+a1@3
        {side} 2=dummy@401 ->
        """,
    )


def test_expired_results_come_before_the_result_of_the_record_that_brings_them() -> None:
    check(
        joined(JoinWindows(100)),
        """
        left  0=A0@0   ->
        left  1=A1@100 ->
        right 1=a1@110 -> 0=A0+None@0 1=A1+a1@110
        """,
    )


def test_result_waits_for_window_and_grace() -> None:
    check(
        joined(JoinWindows(100, grace=10)),
        """
        left  0=A0@0      ->
        left  1=A1@0      ->
        right 0=a0@101    ->
        right 2=a2@110    ->
        right 3=dummy@111 -> 0=A0+None@0 1=A1+None@0
        """,
    )


def test_duplicates_are_put_out_each() -> None:
    check(
        joined(JoinWindows(100, grace=10)),
        """
        left  0=A0@0      ->
        left  0=A0-0@0    ->
        right 1=a0@111    -> 0=A0+None@0 0=A0-0+None@0
        right 2=dummy@500 ->
        left  2=A2@1000   ->
        left  2=A2-0@1000 ->
        right 2=a2@1001   -> 2=A2+a2@1001 2=A2-0+a2@1001
        right 3=a3@315    ->
        left  3=end@9000  ->
        """,
    )


def test_a_match_settles_all_records_of_its_key_and_time() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  k=A@5  ->
        left  k=B@5  ->
        left  k=C@6  ->
        right k=x@15 -> k=A+x@15 k=B+x@15 k=C+x@15
        left  k=D@17 -> k=D+x@17
        right z=y@99 ->
        """,
    )


def test_results_are_put_out_by_time_then_key() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  b=B@3  ->
        left  c=C@1  ->
        left  a=A@3  ->
        left  b=D@3  ->
        right z=x@99 -> c=C+None@1 a=A+None@3 b=B+None@3 b=D+None@3
        """,
    )


def test_out_of_order_record_does_not_bring_expired_results() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  a=A@0     ->
        right z=None@50 ->
        left  b=B@45    ->
        left  c=C@50    -> a=A+None@0
        """,
    )


def test_record_with_a_null_value_moves_time_but_brings_nothing() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  a=A@0    ->
        left  b=None@9 ->
        right a=None@40 ->
        right z=x@40   -> a=A+None@0
        """,
    )


def test_scan_for_expired_results_stops_where_both_sides_are_open() -> None:
    check(
        joined(JoinWindows(before=5, after=30, grace=5)),
        """
        left  c=A@38 ->
        left  d=B@66 ->
        right z=x@67 ->
        right z=x@75 ->
        right z=x@77 -> c=A+None@38
        """,
    )


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_window_without_an_after_expires_with_the_next_time() -> None:
    check(
        joined(JoinWindows(before=100, after=0)),
        """
        left  0=A0@1000 ->
        left  1=A1@1001 -> 0=A0+None@1000
        left  2=A2@1002 -> 1=A1+None@1001
        left  3=A3@1003 -> 2=A2+None@1002
        right 0=a0@999  -> 0=A0+a0@1000
        right 3=a3@999  -> 3=A3+a3@1003
        right 0=b0@1000 -> 0=A0+b0@1000
        right 0=c0@1001 ->
        right 1=c1@1001 -> 1=A1+c1@1001
        right 3=e3@1003 -> 3=A3+e3@1003
        right 3=f3@1100 ->
        """,
    )


def test_window_without_a_before() -> None:
    check(
        joined(JoinWindows(before=0, after=100)),
        """
        left  0=A0@0   ->
        left  1=A1@1   ->
        right 0=a0@100 -> 0=A0+a0@100
        right 1=a1@102 -> 1=A1+None@1
        """,
    )


def test_window_that_lies_wholly_after_the_record() -> None:
    check(
        joined(JoinWindows(before=-5, after=10)),
        """
        right k=w@100 ->
        left  k=A@100 ->
        right k=x@104 ->
        right k=y@105 -> k=A+y@105
        left  k=B@106 ->
        right k=z@117 -> k=B+None@106
        """,
    )


def test_window_that_lies_wholly_before_the_record() -> None:
    check(
        joined(JoinWindows(before=10, after=-5)),
        """
        right k=x@100 ->
        left  k=A@104 -> k=A+None@104
        left  k=B@105 -> k=B+x@105
        left  k=C@111 -> k=C+None@111
        """,
    )


def test_window_that_would_begin_before_time_zero_is_cut_off_there() -> None:
    check(
        joined(JoinWindows(before=10, after=-5)),
        """
        right k=x@0 ->
        left  k=A@4 -> k=A+x@4
        """,
    )


# -- late records -----------------------------------------------------------------------------------------------------


def test_late_record_whose_window_has_passed_is_put_out_at_once() -> None:
    check(
        joined(JoinWindows(10, grace=50)),
        """
        right z=x@100 ->
        left  k=A@89  -> k=A+None@89
        left  k=B@90  ->
        right z=y@150 ->
        right z=y@151 -> k=B+None@90
        """,
    )


def test_late_record_joins_what_the_other_store_still_has() -> None:
    check(
        joined(JoinWindows(100)),
        """
        right 0=b0@1000 ->
        right 1=b1@1001 ->
        left  z=Z@1405  ->
        left  0=G0@899  -> 0=G0+None@899
        left  0=H0@900  -> 0=H0+b0@1000
        left  1=H1@900  -> 1=H1+None@900
        left  1=I1@901  -> 1=I1+b1@1001
        """,
    )


def test_record_that_was_put_out_alone_can_still_be_joined_later() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  k=A@0  ->
        right z=x@15 -> k=A+None@0
        right k=y@5  -> k=A+y@5
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_left_null_key_is_put_out_at_once_and_right_null_key_never() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  None=A@0    -> None=A+None@0
        right None=x@1    ->
        left  None=None@2 ->
        right z=x@99      ->
        """,
    )


def test_null_key_gets_through_the_repartition_of_a_left_join() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left").repartition(), builder.stream("right").repartition()
    left.left_join(right, plus, window=JoinWindows(10)).to("out")

    check(
        builder.build(),
        """
        left  None=A@1 -> None=A+None@1
        right None=x@1 ->
        left  k=B@1    ->
        right k=y@1    -> k=B+y@1
        """,
    )


def test_null_key_made_by_a_mapping_gets_through() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").select_key(lambda key, value: None)
    left.left_join(builder.stream("right"), plus, window=JoinWindows(10)).to("out")

    check(builder.build(), "left k=A@1 -> None=A+None@1")


# -- what it is made of -----------------------------------------------------------------------------------------------


def test_left_join_of_a_stream_with_itself_has_no_result_without_a_match() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    stream.left_join(stream, plus, window=JoinWindows(10)).to("out")

    check(
        builder.build(),
        """
        left k=A@0  -> k=A+A@0
        left k=B@50 -> k=B+B@50
        left k=C@99 -> k=C+C@99
        """,
    )


def test_left_joins_in_a_row() -> None:
    builder = StreamsBuilder()
    one, two, three = (builder.stream(topic) for topic in ("one", "two", "three"))
    one.left_join(two, plus, window=JoinWindows(10)).left_join(three, plus, window=JoinWindows(5)).to("out")

    check(
        builder.build(),
        """
        one   k=A@0  ->
        three k=z@1  ->
        two   q=x@11 -> k=A+None+z@1
        one   k=B@12 ->
        two   k=y@13 ->
        three q=w@30 -> k=B+y+None@13
        """,
    )


def test_expired_result_has_the_headers_of_the_record_that_brings_it() -> None:
    with TopologyTestDriver(joined(JoinWindows(10)), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("left").pipe_input("k", "A", 0, headers={"h": b"1"})
        driver.create_input_topic("right").pipe_input("z", "x", 50, headers={"h": b"2"})
        assert driver.create_output_topic("out").read_records() == [Record("k", "A+None", 0, [("h", b"2")])]


def test_named_left_join() -> None:
    builder = StreamsBuilder()
    builder.stream("left").left_join(builder.stream("right"), plus, window=JoinWindows(10), name="pairs").to("out")
    topology = builder.build()

    assert {
        "pairs-this-windowed",
        "pairs-other-windowed",
        "pairs-this-join",
        "pairs-outer-other-join",
        "pairs-merge",
    } <= set(topology.nodes)
    assert "KSTREAM-OUTERSHARED-0000000004-store" in topology.stores
