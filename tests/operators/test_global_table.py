"""Join of a stream with a global table: each record looks up the row of the key made from it.

Tests `stream_table_join.py`, as do the modules test_stream_table_join*.py.
"""

from typing import Any

import pytest

from headrace import JoinWindows, Materialized, StreamsBuilder, Topology, TopologyError, serdes
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check, plus


def after_comma(key: Any, value: str) -> str | None:
    """Find the key to look up in the value, if it is there."""
    return value.split(",")[1] if "," in value else None


def joined(kind: str, store: str | None = None) -> Topology:
    builder = StreamsBuilder()
    table = builder.global_table("global", store=store)
    getattr(builder.stream("left"), kind)(table, plus, key=after_comma).to("out")
    return builder.build()


# -- what is joined ---------------------------------------------------------------------------------------------------


def test_record_is_joined_with_the_row_it_names() -> None:
    check(
        joined("join"),
        """
        global f0=Y0@0    ->
        global f1=Y1@0    ->
        left   0=X0,f0@0  -> 0=X0,f0+Y0@0
        left   1=X1,f1@1  -> 1=X1,f1+Y1@1
        left   2=X2,f2@2  ->
        """,
    )


def test_left_join_gives_a_result_for_every_record() -> None:
    check(
        joined("left_join"),
        """
        left   0=X0,f0@0 -> 0=X0,f0+None@0
        global f0=Y0@0   ->
        left   0=X0,f0@0 -> 0=X0,f0+Y0@0
        left   2=X2,f2@2 -> 2=X2,f2+None@2
        """,
    )


def test_update_of_the_table_gives_no_result() -> None:
    check(
        joined("join"),
        """
        left   0=X0,f0@0 ->
        global f0=Y0@0   ->
        left   0=X0,f0@2 -> 0=X0,f0+Y0@2
        global f0=YY0@3  ->
        left   0=X0,f0@6 -> 0=X0,f0+YY0@6
        global f0=YYY0@7 ->
        """,
    )


@pytest.mark.parametrize(("kind", "result"), [("join", ""), ("left_join", "0=XX0,f0+None@4")])
def test_deleted_row_is_no_longer_found(kind: str, result: str) -> None:
    check(
        joined(kind),
        f"""
        global f0=Y0@0    ->
        global f1=Y1@0    ->
        left   0=X0,f0@0  -> 0=X0,f0+Y0@0
        global f0=None@1  ->
        left   0=XX0,f0@4 -> {result}
        left   1=XX1,f1@5 -> 1=XX1,f1+Y1@5
        """,
    )


def test_result_has_key_and_time_of_the_record() -> None:
    check(
        joined("join"),
        """
        global a=A@50   ->
        left   1=x,a@2  -> 1=x,a+A@2
        left   2=y,a@99 -> 2=y,a+A@99
        """,
    )


def test_table_takes_updates_as_they_come_whatever_their_time() -> None:
    check(
        joined("join"),
        """
        global a=A@50  ->
        global a=B@10  ->
        left   1=x,a@2 -> 1=x,a+B@2
        """,
    )


def test_lookup_key_can_be_the_key_of_the_record() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global")
    builder.stream("left").left_join(table, plus, key=lambda key, value: key).to("out")

    check(
        builder.build(),
        """
        global k=x@0 ->
        left   k=A@1 -> k=A+x@1
        left   q=B@2 -> q=B+None@2
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_record_that_names_no_row_is_dropped() -> None:
    check(
        joined("join"),
        """
        global f0=Y0@0   ->
        left   0=XXX0@0  ->
        left   None=XXX0@1 ->
        """,
    )


def test_record_of_a_left_join_that_names_no_row_is_joined_with_none() -> None:
    check(
        joined("left_join"),
        """
        global f0=Y0@0     ->
        left   0=XXX0@0    -> 0=XXX0+None@0
        left   None=XXX0@1 -> None=XXX0+None@1
        """,
    )


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_record_without_a_key_is_joined_if_it_names_a_row(kind: str) -> None:
    check(
        joined(kind),
        """
        global f0=Y0@0      ->
        left   None=X0,f0@0 -> None=X0,f0+Y0@0
        """,
    )


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_null_value_is_dropped_before_the_lookup_key_is_made(kind: str) -> None:
    check(
        joined(kind),
        """
        left k=None@0    ->
        left None=None@0 ->
        """,
    )


def test_null_key_of_the_table_is_dropped() -> None:
    check(
        joined("join", store="rows"),
        """
        global None=x@0 ->
        global a=y@0    ->
        """,
        stores={"rows": {"a": "y"}},
    )


def test_null_key_gets_through_a_repartition_before_a_left_join() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global")
    builder.stream("left").repartition().left_join(table, plus, key=lambda key, value: None).to("out")

    check(builder.build(), "left None=A@1 -> None=A+None@1")


# -- what it is made of -----------------------------------------------------------------------------------------------


def test_stream_with_a_changed_key_is_not_repartitioned_for_the_lookup() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global")
    builder.stream("left").select_key(lambda key, value: value[0]).join(table, plus, key=after_comma).to("out")
    topology = builder.build()

    check(
        topology,
        """
        global f=Y@0   ->
        left   k=X,f@1 -> X=X,f+Y@1
        """,
    )
    assert not topology.internal_topics


def test_changed_key_is_repartitioned_for_what_comes_after_the_lookup() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global")
    stream = builder.stream("left").select_key(lambda key, value: value[0]).join(table, plus, key=after_comma)
    stream.group_by_key().count().to_stream().map_values(str).to("out")
    topology = builder.build()

    check(
        topology,
        """
        global f=Y@0    ->
        left   k=X,f@1  -> X=1@1
        left   q=XX,f@2 -> X=2@2
        """,
    )
    assert len(topology.internal_topics) == 1


def test_star_join() -> None:
    builder = StreamsBuilder()
    people, places = builder.global_table("people"), builder.global_table("places")
    builder.stream("left").join(people, plus, key=lambda key, value: value[0]).left_join(
        places, plus, key=lambda key, value: value[1]
    ).to("out")

    check(
        builder.build(),
        """
        people p=Ann@0  ->
        places q=Rome@0 ->
        left   1=pq@1   -> 1=pq+Ann+Rome@1
        left   2=px@2   -> 2=px+Ann+None@2
        left   3=xq@3   ->
        """,
    )


def test_two_joins_with_one_table() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global")
    stream = builder.stream("left")
    stream.join(table, plus, key=lambda key, value: key).merge(
        stream.join(table, plus, key=lambda key, value: value)
    ).to("out")

    check(
        builder.build(),
        """
        global a=x@0 ->
        global b=y@0 ->
        left   a=b@1 -> a=b+x@1 a=b+y@1
        """,
    )


@pytest.mark.parametrize("cached", [False, True])
def test_table_can_be_read_under_its_name(cached: bool) -> None:
    check(
        joined("join", store="rows"),
        """
        global a=x@0    ->
        global b=y@0    ->
        global a=None@1 ->
        """,
        cached=cached,
        stores={"rows": {"b": "y"}},
    )


def test_table_is_no_part_of_the_sub_topology_that_joins_it() -> None:
    subs = joined("join").sub_topologies()

    assert sorted(sub.is_global for sub in subs) == [False, True]


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_joiner_gets_the_key_of_the_record_first_when_asked(kind: str) -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global")
    getattr(builder.stream("left"), kind)(
        table, lambda key, left, right: f"{key}:{left}+{right}", key=lambda key, value: value, with_key=True
    ).to("out")

    check(
        builder.build(),
        """
        global a=x@0 ->
        left   k=a@1 -> k=k:a+x@1
        """,
    )


def test_keys_of_stream_and_table_may_have_different_types() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global", key_serde=serdes.String, value_serde=serdes.Long)
    stream = builder.stream("left", key_serde=serdes.Integer, value_serde=serdes.String)
    stream.join(table, lambda left, right: right, key=lambda key, value: value).to("out", value_serde=serdes.Long)

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("global").pipe_input("a", 7, 0)
        driver.create_input_topic("left").pipe_input(1, "a", 0)
        assert driver.create_output_topic("out").read_key_values() == [(1, 7)]


def test_result_has_the_headers_of_the_record() -> None:
    with TopologyTestDriver(joined("join"), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("global").pipe_input("f", "Y", 0, headers={"h": b"1"})
        driver.create_input_topic("left").pipe_input("k", "X,f", 0, headers={"h": b"2"})
        assert driver.create_output_topic("out").read_records() == [Record("k", "X,f+Y", 0, [("h", b"2")])]


def test_names() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("global", store="rows", name="rows-of")
    builder.stream("left").join(table, plus, key=after_comma, name="lookup").to("out")
    topology = builder.build()

    assert table.queryable_store_name == "rows"
    assert "lookup" in topology.nodes
    assert builder.global_table("other").queryable_store_name is None


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_lookup_needs_a_key(kind: str) -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=rf"{kind} with a GlobalKTable needs key=f\(key, value\)"):
        getattr(builder.stream("left"), kind)(builder.global_table("global"), plus)


def test_lookup_key_must_be_a_function() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="expected key= to be a function, got str"):
        builder.stream("left").join(builder.global_table("global"), plus, key="key")  # type: ignore[arg-type]


def test_there_is_no_outer_join() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="a stream cannot be outer-joined with a table"):
        builder.stream("left").outer_join(builder.global_table("global"), plus)  # type: ignore[arg-type]


def test_lookup_takes_no_window() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="window= is only for joins of two streams"):
        builder.stream("left").join(builder.global_table("global"), plus, key=after_comma, window=JoinWindows(1))


def test_global_table_keeps_no_versions() -> None:
    with pytest.raises(TopologyError, match="cannot keep versions"):
        StreamsBuilder().global_table("global", store=Materialized("rows", history_retention=10))
