"""Join of two tables by key: an update of either side is joined with the current row of the other.

Tests `table_join.py`, as do the modules test_table_join_*.py.
"""

from typing import Any

import pytest

from headrace import (
    JoinWindows,
    Materialized,
    StreamsBuilder,
    Topology,
    TopologyError,
    serdes,
)
from headrace.records import Record, ValueAndTimestamp
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check, every_kind, plus
from tests.operators.join_scenarios import TABLES


def joined(kind: str, store: str | Materialized | None = None) -> Topology:
    builder = StreamsBuilder()
    getattr(builder.table("left"), kind)(builder.table("right"), plus, store=store).to_stream().to("out")
    return builder.build()


# -- what is joined ---------------------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("store", [None, "kept"])
def test_documented_example(kind: str, store: str | None) -> None:
    check(
        joined(kind, store),
        TABLES
        + """
        right k=d@14    ->           |             | k=None+d@14
        left  k=D@15    -> k=D+d@15
        """,
        column=kind,
    )


@every_kind
def test_updates_are_taken_as_they_come_whatever_their_time(kind: str) -> None:
    check(
        joined(kind),
        """
                           join      | left_join  | outer_join
        right k=None@13 ->
        right k=d@7     ->           |            | k=None+d@7
        left  k=D@6     -> k=D+d@7
        left  k=None@2  -> k=None@7  | k=None@7   | k=None+d@7
        right k=None@3  ->           |            | k=None@3
        right k=e@14    ->           |            | k=None+e@14
        left  k=E@15    -> k=E+e@15
        left  k=None@10 -> k=None@14 | k=None@14  | k=None+e@14
        right k=None@9  ->           |            | k=None@9
        left  k=F@4     ->           | k=F+None@4 | k=F+None@4
        right k=f@3     -> k=F+f@4
        """,
        column=kind,
    )


def test_result_has_the_larger_timestamp_of_both_rows() -> None:
    check(
        joined("join"),
        """
        left  0=X0@5      ->
        left  1=X1@6      ->
        right 0=Y0@0      -> 0=X0+Y0@5
        right 1=Y1@10     -> 1=X1+Y1@10
        left  0=XX0@7     -> 0=XX0+Y0@7
        left  1=XX1@7     -> 1=XX1+Y1@10
        left  2=XX2@7     ->
        right 0=YY0@0     -> 0=XX0+YY0@7
        right 1=YY1@5     -> 1=XX1+YY1@7
        right 2=YY2@10    -> 2=XX2+YY2@10
        left  0=XXX0@6    -> 0=XXX0+YY0@6
        left  2=XXX2@6    -> 2=XXX2+YY2@10
        right 0=None@5    -> 0=None@6
        right 1=None@7    -> 1=None@7
        left  0=XXXX0@13  ->
        left  2=XXXX2@13  -> 2=XXXX2+YY2@13
        left  0=None@0    ->
        left  2=None@5    -> 2=None@10
        """,
    )


def test_result_of_a_left_join_has_the_larger_timestamp_of_both_rows() -> None:
    check(
        joined("left_join"),
        """
        left  0=X0@5     -> 0=X0+None@5
        right 0=Y0@0     -> 0=X0+Y0@5
        left  0=XX0@7    -> 0=XX0+Y0@7
        left  3=XX3@7    -> 3=XX3+None@7
        right 3=YY3@15   -> 3=XX3+YY3@15
        left  3=XXX3@6   -> 3=XXX3+YY3@15
        right 0=None@5   -> 0=XX0+None@7
        left  0=XXXX0@13 -> 0=XXXX0+None@13
        left  0=None@0   -> 0=None@0
        left  3=None@20  -> 3=None@20
        """,
    )


def test_result_of_an_outer_join_has_the_larger_timestamp_of_both_rows() -> None:
    check(
        joined("outer_join"),
        """
        left  2=XXX2@6  -> 2=XXX2+None@6
        right 2=YY2@10  -> 2=XXX2+YY2@10
        left  2=None@5  -> 2=None+YY2@10
        left  3=XXX3@6  -> 3=XXX3+None@6
        right 3=YY3@15  -> 3=XXX3+YY3@15
        left  3=None@20 -> 3=None+YY3@20
        right 3=None@2  -> 3=None@2
        """,
    )


# -- deletes ----------------------------------------------------------------------------------------------------------


def test_delete_of_an_absent_row_goes_on_when_the_other_side_has_one() -> None:
    check(
        joined("join"),
        """
        right k=x@5     ->
        left  k=None@1  -> k=None@5
        left  k=A@2     -> k=A+x@5
        left  k=None@9  -> k=None@9
        left  k=None@10 -> k=None@10
        right k=None@10 ->
        left  k=None@11 ->
        """,
    )


def test_delete_of_the_left_row_of_a_left_join_goes_on_if_either_row_exists() -> None:
    check(
        joined("left_join"),
        """
        left  k=None@1 ->
        left  k=A@2    -> k=A+None@2
        left  k=None@3 -> k=None@3
        left  k=None@4 ->
        right k=x@5    ->
        left  k=None@6 -> k=None@6
        right k=None@7 ->
        """,
    )


def test_delete_of_an_outer_join_leaves_the_other_side() -> None:
    check(
        joined("outer_join"),
        """
        left  k=A@1    -> k=A+None@1
        right k=x@2    -> k=A+x@2
        left  k=None@3 -> k=None+x@3
        left  k=None@4 -> k=None+x@4
        right k=None@5 -> k=None@5
        right k=None@6 ->
        """,
    )


@every_kind
def test_null_keys_are_dropped(kind: str) -> None:
    check(
        joined(kind),
        """
        left  None=A@0 ->
        right None=x@0 ->
        """,
    )


def test_joiner_that_gives_null_deletes_the_row() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(right, lambda left, right: None if right == "no" else left + right, store="kept").to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A@0  ->
        right k=x@1  -> k=Ax@1
        right k=no@2 -> k=None@2
        """,
        stores={"kept": {}},
    )


# -- the result as a table --------------------------------------------------------------------------------------------


def test_result_can_be_read_from_its_store() -> None:
    check(
        joined("outer_join", store="kept"),
        """
        left  a=A@1    -> a=A+None@1
        right b=x@2    -> b=None+x@2
        right a=y@0    -> a=A+y@1
        left  c=C@3    -> c=C+None@3
        left  c=None@4 -> c=None@4
        """,
        stores={"kept": {"a": "A+y", "b": "None+x"}},
    )


def test_store_keeps_the_time_of_the_result() -> None:
    with TopologyTestDriver(joined("join", store="kept"), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("left").pipe_input("k", "A", 9)
        driver.create_input_topic("right").pipe_input("k", "x", 4)
        assert driver.timestamped_store("kept").get("k") == ValueAndTimestamp("A+x", 9)


def changes(kind: str) -> Topology:
    """Log the updates that a regrouping gets from the join: `+` for an added row, `-` for a removed one."""
    builder = StreamsBuilder()
    table = getattr(builder.table("left"), kind)(builder.table("right"), plus)
    table.group_by(lambda key, value: (key, f"({value})")).aggregate(
        lambda: "", lambda key, value, log: f"{log}+{value}", lambda key, value, log: f"{log}-{value}"
    ).to_stream().to("out")
    return builder.build()


def test_old_results_are_taken_back() -> None:
    check(
        changes("join"),
        """
        left  k=A@1    ->
        right k=x@2    -> k=+(A+x)@2
        left  k=B@3    -> k=+(A+x)-(A+x)+(B+x)@3
        right k=None@4 -> k=+(A+x)-(A+x)+(B+x)-(B+x)@4
        left  k=C@5    ->
        """,
    )


def test_old_results_of_a_left_join_are_taken_back() -> None:
    check(
        changes("left_join"),
        """
        left  k=A@1    -> k=+(A+None)@1
        right k=x@2    -> k=+(A+None)-(A+None)+(A+x)@2
        right k=None@3 -> k=+(A+None)-(A+None)+(A+x)-(A+x)+(A+None)@3
        left  k=None@4 -> k=+(A+None)-(A+None)+(A+x)-(A+x)+(A+None)-(A+None)@4
        """,
    )


def test_old_results_of_an_outer_join_are_taken_back() -> None:
    check(
        changes("outer_join"),
        """
        right k=x@1    -> k=+(None+x)@1
        left  k=A@2    -> k=+(None+x)-(None+x)+(A+x)@2
        right k=None@3 -> k=+(None+x)-(None+x)+(A+x)-(A+x)+(A+None)@3
        left  k=None@4 -> k=+(None+x)-(None+x)+(A+x)-(A+x)+(A+None)-(A+None)@4
        """,
    )


# -- how it is called -------------------------------------------------------------------------------------------------


@every_kind
def test_joiner_gets_the_key_first_when_asked(kind: str) -> None:
    builder = StreamsBuilder()
    table = getattr(builder.table("left"), kind)(
        builder.table("right"), lambda key, left, right: f"{key}:{left}+{right}", with_key=True, store="kept"
    )
    table.to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=None@0 ->
        right k=None@1 ->
        left  q=A@2    -> """
        + ("" if kind == "join" else "q=q:A+None@2")
        + """
        right q=x@3    -> q=q:A+x@3
        """,
        stores={"kept": {"q": "q:A+x"}},
    )


def test_names() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    table = left.join(right, plus, store="kept", name="pairs")
    table.to_stream().to("out")
    topology = builder.build()

    assert table.queryable_store_name == "kept"
    assert {"pairs", "pairs-join-this", "pairs-join-other"} <= set(topology.nodes)
    assert topology.nodes["pairs"].stores == ["kept"]  # type: ignore[union-attr]
    assert len(topology.sub_topologies()) == 1


def test_table_without_a_store_cannot_be_read() -> None:
    builder = StreamsBuilder()
    table = builder.table("left").join(builder.table("right"), plus)

    assert table.queryable_store_name is None


def test_serdes_of_the_result() -> None:
    builder = StreamsBuilder()
    left = builder.table("left", key_serde=serdes.Integer, value_serde=serdes.Long)
    right = builder.table("right", key_serde=serdes.Integer, value_serde=serdes.String)
    left.join(
        right, lambda count, word: word * count, store=Materialized("kept", value_serde=serdes.String)
    ).to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("left").pipe_input(1, 3, 0)
        driver.create_input_topic("right").pipe_input(1, "ab", 0)
        assert driver.create_output_topic("out").read_key_values() == [(1, "ababab")]
        assert driver.state_store("kept").get(1) == "ababab"


def test_result_has_the_headers_of_the_update_that_brings_it() -> None:
    with TopologyTestDriver(joined("join"), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("left").pipe_input("k", "A", 0, headers={"h": b"1"})
        driver.create_input_topic("right").pipe_input("k", "x", 0, headers={"h": b"2"})
        assert driver.create_output_topic("out").read_records() == [Record("k", "A+x", 0, [("h", b"2")])]


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [None, "right", JoinWindows(1)])
def test_other_side_must_be_a_table(other: Any) -> None:
    with pytest.raises(TopologyError, match="expected a KTable, got"):
        StreamsBuilder().table("left").join(other, plus)


def test_table_cannot_be_joined_with_a_stream() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="expected a KTable, got KStream"):
        builder.table("left").join(builder.stream("right"), plus)  # type: ignore[arg-type]


def test_table_of_another_builder_is_refused() -> None:
    with pytest.raises(TopologyError, match="same StreamsBuilder"):
        StreamsBuilder().table("left").join(StreamsBuilder().table("right"), plus)


def test_joiner_must_be_callable() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="expected joiner to be a function, got str"):
        builder.table("left").join(builder.table("right"), "plus")  # type: ignore[arg-type]
