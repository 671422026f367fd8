"""Join of a stream with a table: each record is joined with the row that its key has when the record comes.

Tests `stream_table_join.py`, as do the modules test_stream_table_join_*.py and `test_global_table.py`.
"""

from typing import Any

import pytest

from headrace import (
    JoinWindows,
    KStream,
    StreamsBuilder,
    Topology,
    TopologyError,
    serdes,
)
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check, inner_and_left, plus
from tests.operators.join_scenarios import STREAM_AND_TABLE


def joined(kind: str = "join", store: str | None = None) -> Topology:
    builder = StreamsBuilder()
    getattr(builder.stream("left"), kind)(builder.table("right", store=store), plus).to("out")
    return builder.build()


# -- what is joined ---------------------------------------------------------------------------------------------------


@inner_and_left
def test_documented_example(kind: str) -> None:
    check(
        joined(kind),
        STREAM_AND_TABLE
        + """
        right k=d@14    ->
        left  k=D@15    -> k=D+d@15
        """,
        column=kind,
    )


def test_update_of_the_table_gives_no_result() -> None:
    check(
        joined(),
        """
        left  0=X0@0   ->
        left  1=X1@1   ->
        right 0=Y0@77  ->
        right 1=Y1@12  ->
        left  0=X0@0   -> 0=X0+Y0@0
        left  1=X1@1   -> 1=X1+Y1@1
        left  2=X2@2   ->
        right 0=YY0@5  ->
        right 2=YY2@99 ->
        left  0=X0@0   -> 0=X0+YY0@0
        left  2=X2@2   -> 2=X2+YY2@2
        right 0=YYY0@0 ->
        """,
    )


def test_left_join_gives_a_result_for_every_record() -> None:
    check(
        joined("left_join"),
        """
        left  0=X0@0  -> 0=X0+None@0
        right 0=Y0@77 ->
        left  0=X0@0  -> 0=X0+Y0@0
        left  2=X2@2  -> 2=X2+None@2
        """,
    )


@pytest.mark.parametrize(("kind", "result"), [("join", ""), ("left_join", "0=XX0+None@0")])
def test_deleted_row_is_no_longer_found(kind: str, result: str) -> None:
    check(
        joined(kind),
        f"""
        right 0=Y0@0   ->
        right 2=Y2@0   ->
        left  0=X0@0   -> 0=X0+Y0@0
        right 0=None@1 ->
        left  0=XX0@0  -> {result}
        left  2=XX2@2  -> 2=XX2+Y2@2
        """,
    )


def test_result_has_the_time_of_the_record_even_when_the_row_is_newer() -> None:
    check(
        joined(),
        """
        right k=x@9  ->
        left  k=A@3  -> k=A+x@3
        left  k=B@12 -> k=B+x@12
        """,
    )


@inner_and_left
@pytest.mark.parametrize("cached", [False, True])
def test_table_takes_updates_as_they_come_whatever_their_time(kind: str, cached: bool) -> None:
    check(
        joined(kind),
        STREAM_AND_TABLE
        + """
        right k=d@7     ->
        left  k=D@6     -> k=D+d@6
        left  k=None@2  ->
        right k=None@3  ->
        right k=e@14    ->
        left  k=E@15    -> k=E+e@15
        left  k=None@10 ->
        right k=None@9  ->
        left  k=F@4     ->            | k=F+None@4
        right k=f@3     ->
        """,
        column=kind,
        cached=cached,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_null_keys_and_null_values_are_dropped() -> None:
    check(
        joined("join"),
        """
        right k=x@0    ->
        right None=y@0 ->
        left  None=A@1 ->
        left  k=None@1 ->
        left  k=B@1    -> k=B+x@1
        """,
    )


def test_left_join_keeps_null_keys_but_not_null_values() -> None:
    check(
        joined("left_join"),
        """
        right k=x@0       ->
        left  None=A@0    -> None=A+None@0
        left  k=None@1    ->
        left  None=None@1 ->
        """,
    )


def test_null_key_gets_through_the_repartition_of_a_left_join() -> None:
    builder = StreamsBuilder()
    table = builder.stream("right").repartition().to_table()
    builder.stream("left").repartition().left_join(table, plus).to("out")

    check(
        builder.build(),
        """
        left  None=A@1 -> None=A+None@1
        right k=x@1    ->
        left  k=B@1    -> k=B+x@1
        """,
    )


def test_result_may_be_null() -> None:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.table("right"), lambda left, right: None).to("out")

    check(
        builder.build(),
        """
        right k=x@0 ->
        left  k=A@1 -> k=None@1
        """,
    )


# -- changed keys -----------------------------------------------------------------------------------------------------


def by_value(builder: StreamsBuilder) -> KStream[Any, Any]:
    return builder.stream("left").map(lambda key, value: (value, key))


def test_stream_with_a_changed_key_is_repartitioned_and_joined_by_the_new_key() -> None:
    builder = StreamsBuilder()
    by_value(builder).join(builder.table("right"), plus).to("out")
    topology = builder.build()

    check(
        topology,
        """
        right k=x@0    ->
        left  a=k@1    -> k=a+x@1
        left  k=z@2    ->
        left  a=None@3 ->
        """,
    )
    assert set(topology.internal_topics) == {"KSTREAM-MAP-0000000001-repartition"}


def test_stream_with_a_changed_key_is_repartitioned_once_for_all_its_joins() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("topic")
    tables = [builder.table("topic2"), builder.table("topic3")]
    rekeyed = stream.map(lambda key, value: (value, key))
    rekeyed.join(tables[0], plus).to("out-one")
    rekeyed.join(tables[1], plus).to("out-two")
    topology = builder.build()

    assert set(topology.internal_topics) == {"KSTREAM-MAP-0000000007-repartition"}
    assert topology.nodes["KSTREAM-SOURCE-0000000010"].children == [
        "KSTREAM-JOIN-0000000011",
        "KSTREAM-JOIN-0000000016",
    ]
    assert len(topology.sub_topologies()) == 2


def test_named_joins_have_a_repartition_of_their_own() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("topic")
    tables = [builder.table("topic2"), builder.table("topic3")]
    rekeyed = stream.map(lambda key, value: (value, key))
    rekeyed.join(tables[0], plus, name="first-join").to("out-one")
    rekeyed.join(tables[1], plus, name="second-join").to("out-two")
    topology = builder.build()

    assert set(topology.internal_topics) == {"first-join-repartition", "second-join-repartition"}
    assert topology.nodes["first-join"].stores == ["topic2-STATE-STORE-0000000001"]  # type: ignore[union-attr]
    assert topology.nodes["second-join"].stores == ["topic3-STATE-STORE-0000000004"]  # type: ignore[union-attr]
    assert len(topology.sub_topologies()) == 3


def test_join_keeps_the_key_so_that_the_next_join_does_not_repartition() -> None:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.table("right"), plus).join(builder.table("third"), plus).to("out")
    topology = builder.build()

    check(
        topology,
        """
        right k=x@0 ->
        third k=y@0 ->
        left  k=A@1 -> k=A+x+y@1
        """,
    )
    assert not topology.internal_topics


# -- how it is called -------------------------------------------------------------------------------------------------


@inner_and_left
def test_joiner_gets_the_key_first_when_asked(kind: str) -> None:
    builder = StreamsBuilder()
    table = builder.table("right")
    getattr(builder.stream("left"), kind)(table, lambda key, left, right: f"{key}:{left}+{right}", with_key=True).to(
        "out"
    )

    check(
        builder.build(),
        """
        right k=x@0 ->
        left  k=A@1 -> k=k:A+x@1
        """,
    )


def test_table_is_kept_for_the_join_and_can_be_read_under_its_name() -> None:
    check(
        joined(store="rows"),
        """
        right k=x@0    ->
        right q=y@1    ->
        right k=None@2 ->
        """,
        stores={"rows": {"q": "y"}},
    )


def test_result_has_the_headers_of_the_record() -> None:
    with TopologyTestDriver(joined(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("right").pipe_input("k", "x", 0, headers={"h": b"1"})
        driver.create_input_topic("left").pipe_input("k", "A", 0, headers={"h": b"2"})
        assert driver.create_output_topic("out").read_records() == [Record("k", "A+x", 0, [("h", b"2")])]


def test_both_sides_are_one_sub_topology() -> None:
    assert len(joined().sub_topologies()) == 1


# -- what is refused --------------------------------------------------------------------------------------------------


def test_stream_and_table_have_no_outer_join() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="a stream cannot be outer-joined with a table"):
        builder.stream("left").outer_join(builder.table("right"), plus)  # type: ignore[arg-type]


def test_join_with_a_table_takes_no_window() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="window= is only for joins of two streams"):
        builder.stream("left").join(builder.table("right"), plus, window=JoinWindows(1))


def test_join_with_a_table_takes_no_lookup_key() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="key= is only for global tables"):
        builder.stream("left").join(builder.table("right"), plus, key=lambda key, value: key)


def test_table_of_another_builder_is_refused() -> None:
    with pytest.raises(TopologyError, match="same StreamsBuilder"):
        StreamsBuilder().stream("left").join(StreamsBuilder().table("right"), plus)
