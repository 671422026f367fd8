"""Inner join of two streams: which records meet, how often, in which order, at what time.

Tests `stream_join.py`, as do the modules test_stream_join_*.py.
"""

import pytest

from headrace import JoinWindows, StreamsBuilder, Topology
from tests.operators.join_piping import check, every_kind, plus
from tests.operators.join_scenarios import STREAMS


def joined(window: JoinWindows, kind: str = "join") -> Topology:
    builder = StreamsBuilder()
    getattr(builder.stream("left"), kind)(builder.stream("right"), plus, window=window).to("out")
    return builder.build()


# -- which records meet -----------------------------------------------------------------------------------------------


@every_kind
def test_documented_example(kind: str) -> None:
    check(joined(JoinWindows(15_000, grace=5_000), kind), STREAMS, column=kind)


WINDOWS = [
    pytest.param(JoinWindows(100, grace=1000), -100, 100, id="both ways"),
    pytest.param(JoinWindows(before=0, after=100, grace=1000), 0, 100, id="only after"),
    pytest.param(JoinWindows(before=100, after=0, grace=1000), -100, 0, id="only before"),
    pytest.param(JoinWindows(before=20, after=50, grace=1000), -20, 50, id="asymmetric"),
    pytest.param(JoinWindows(before=-50, after=100, grace=1000), 50, 100, id="not before 50 later"),
    pytest.param(JoinWindows(before=100, after=-50, grace=1000), -100, -50, id="not after 50 earlier"),
    pytest.param(JoinWindows(before=-100, after=100, grace=1000), 100, 100, id="exactly 100 later"),
    pytest.param(JoinWindows(0, grace=1000), 0, 0, id="same time"),
]


@pytest.mark.parametrize(("window", "first", "last"), WINDOWS)
def test_left_record_finds_right_records_up_to_both_ends_of_its_window(
    window: JoinWindows, first: int, last: int
) -> None:
    first, last = 1000 + first, 1000 + last
    check(
        joined(window),
        f"""
        right k=early@{first - 1} ->
        right k=first@{first}     ->
        right k=last@{last}       ->
        right k=late@{last + 1}   ->
        left  k=A@1000            -> k=A+first@{max(first, 1000)} k=A+last@{max(last, 1000)}
        """,
    )


@pytest.mark.parametrize(("window", "first", "last"), WINDOWS)
def test_right_record_finds_the_left_records_whose_window_it_is_in(window: JoinWindows, first: int, last: int) -> None:
    first, last = 1000 + first, 1000 + last
    check(
        joined(window),
        f"""
        left  k=A@1000            ->
        right k=early@{first - 1} ->
        right k=first@{first}     -> k=A+first@{max(first, 1000)}
        right k=last@{last}       -> k=A+last@{max(last, 1000)}
        right k=late@{last + 1}   ->
        """,
    )


def test_window_moves_with_each_record() -> None:
    check(
        joined(JoinWindows(100, grace=1000)),
        """
        left  a=A@1000 ->
        left  b=B@1001 ->
        left  c=C@1002 ->
        right a=x@1101 ->
        right b=x@1101 -> b=B+x@1101
        right c=x@1101 -> c=C+x@1101
        right a=y@1102 ->
        right b=y@1102 ->
        right c=y@1102 -> c=C+y@1102
        right a=z@900  -> a=A+z@1000
        right b=z@900  ->
        right c=z@900  ->
        right a=z@901  -> a=A+z@1000
        right b=z@901  -> b=B+z@1001
        right c=z@901  ->
        """,
    )


def test_window_does_not_reach_below_time_zero() -> None:
    check(
        joined(JoinWindows(100)),
        """
        left  k=A@0   ->
        right k=x@50  -> k=A+x@50
        right k=y@0   -> k=A+y@0
        left  k=B@100 -> k=B+y@100 k=B+x@100
        """,
    )


def test_only_records_of_the_same_key_meet() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  a=A@0  ->
        left  ab=B@0 ->
        right b=x@0  ->
        right ab=y@0 -> ab=B+y@0
        right a=z@0  -> a=A+z@0
        """,
    )


# -- how often, in which order ----------------------------------------------------------------------------------------


def test_every_record_joins_all_of_the_other_side_in_the_order_they_came() -> None:
    check(
        joined(JoinWindows(100)),
        """
        left  0=A0@0 ->
        left  1=A1@0 ->
        right 0=a0@0 -> 0=A0+a0@0
        right 1=a1@0 -> 1=A1+a1@0
        left  0=B0@0 -> 0=B0+a0@0
        left  1=B1@0 -> 1=B1+a1@0
        left  2=B2@0 ->
        right 0=b0@0 -> 0=A0+b0@0 0=B0+b0@0
        right 1=b1@0 -> 1=A1+b1@0 1=B1+b1@0
        right 2=b2@0 -> 2=B2+b2@0
        right 3=b3@0 ->
        left  0=C0@0 -> 0=C0+a0@0 0=C0+b0@0
        left  3=C3@0 -> 3=C3+b3@0
        """,
    )


def test_results_are_ordered_by_the_time_of_the_partner_then_by_arrival() -> None:
    check(
        joined(JoinWindows(10)),
        """
        right k=x@5 ->
        right k=y@1 ->
        right k=z@5 ->
        left  k=A@6 -> k=A+y@6 k=A+x@6 k=A+z@6
        """,
    )


def test_equal_records_are_joined_each_for_itself() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  k=A@0 ->
        left  k=A@0 ->
        right k=x@0 -> k=A+x@0 k=A+x@0
        right k=x@0 -> k=A+x@0 k=A+x@0
        """,
    )


def test_result_has_the_larger_timestamp() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  k=A@7 ->
        right k=x@3 -> k=A+x@7
        right k=y@9 -> k=A+y@9
        left  k=B@8 -> k=B+x@8 k=B+y@9
        """,
    )


# -- late records, retention ------------------------------------------------------------------------------------------


def test_late_record_joins_while_the_other_store_still_has_its_partner() -> None:
    check(
        joined(JoinWindows(10)),
        """
        right k=x@0   ->
        left  z=Z@100 ->
        left  k=A@5   -> k=A+x@5
        """,
    )


def test_record_is_forgotten_when_its_own_side_is_further_than_window_and_grace() -> None:
    check(
        joined(JoinWindows(10, grace=5)),
        """
        right k=x@0  ->
        right z=y@24 ->
        left  k=A@5  -> k=A+x@5
        right z=y@25 ->
        left  k=B@5  ->
        """,
    )


def test_late_record_that_is_already_forgotten_is_not_kept() -> None:
    check(
        joined(JoinWindows(10)),
        """
        right z=y@100 ->
        right k=x@80  ->
        right k=y@81  ->
        left  k=A@85  -> k=A+y@85
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_null_keys_and_null_values_are_dropped() -> None:
    check(
        joined(JoinWindows(10)),
        """
        left  None=A@0 ->
        right None=x@0 ->
        left  k=None@0 ->
        right k=x@0    ->
        right k=None@0 ->
        left  k=A@0    -> k=A+x@0
        """,
    )


def test_result_may_be_null() -> None:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.stream("right"), lambda left, right: None, window=JoinWindows(10)).to("out")

    check(
        builder.build(),
        """
        left  k=A@0 ->
        right k=x@0 -> k=None@0
        """,
    )
