"""Join of a stream with a versioned table: each record is joined with the row that was valid at the record's time.

Tests `stream_table_join.py`, and `value_getters.py` as of a time.
"""

import pytest

from headrace import Materialized, StreamsBuilder, Topology
from tests.operators.join_piping import check, inner_and_left, plus
from tests.operators.join_scenarios import STREAM_AND_TABLE

FIVE_MINUTES = 300_000


def joined(kind: str, history: int = FIVE_MINUTES) -> Topology:
    builder = StreamsBuilder()
    table = builder.table("right", store=Materialized("versions", history_retention=history))
    getattr(builder.stream("left"), kind)(table, plus).to("out")
    return builder.build()


@inner_and_left
@pytest.mark.parametrize("cached", [False, True])
def test_late_record_sees_the_table_of_its_own_time(kind: str, cached: bool) -> None:
    check(
        joined(kind),
        STREAM_AND_TABLE
        + """
        right k=d@7     ->
        left  k=D@6     -> k=D+b@6
        left  k=None@2  ->
        right k=None@3  ->
        right k=e@14    ->
        left  k=E@15    -> k=E+e@15
        left  k=None@10 ->
        right k=None@9  ->
        left  k=F@4     -> k=F+a@4
        right k=f@3     ->
        """,
        column=kind,
        cached=cached,
    )


def test_version_holds_from_its_own_time_until_the_next() -> None:
    check(
        joined("left_join"),
        """
        right k=x@10 ->
        right k=y@20 ->
        left  k=A@9  -> k=A+None@9
        left  k=B@10 -> k=B+x@10
        left  k=C@19 -> k=C+x@19
        left  k=D@20 -> k=D+y@20
        left  k=E@99 -> k=E+y@99
        """,
    )


def test_late_update_is_put_into_its_place() -> None:
    check(
        joined("left_join"),
        """
        right k=x@10 ->
        right k=z@30 ->
        right k=y@20 ->
        left  k=A@19 -> k=A+x@19
        left  k=B@20 -> k=B+y@20
        left  k=C@30 -> k=C+z@30
        right k=w@20 ->
        left  k=D@25 -> k=D+w@25
        """,
    )


def test_deleted_row_is_found_only_by_records_from_before_the_delete() -> None:
    check(
        joined("left_join"),
        """
        right k=x@10    ->
        right k=None@20 ->
        left  k=A@20    -> k=A+None@20
        left  k=B@19    -> k=B+x@19
        right k=y@30    ->
        left  k=C@25    -> k=C+None@25
        left  k=D@30    -> k=D+y@30
        """,
    )


def test_late_delete_leaves_a_gap() -> None:
    check(
        joined("left_join"),
        """
        right k=x@10    ->
        right k=y@30    ->
        right k=None@20 ->
        left  k=A@15    -> k=A+x@15
        left  k=B@20    -> k=B+None@20
        left  k=C@30    -> k=C+y@30
        """,
    )


def test_record_older_than_the_history_finds_nothing_but_the_latest_version() -> None:
    check(
        joined("left_join", history=50),
        """
        right k=x@10  ->
        right k=y@30  ->
        right q=z@81  ->
        left  k=A@29  -> k=A+None@29
        left  k=B@30  -> k=B+y@30
        left  q=C@30  -> q=C+None@30
        left  k=D@100 -> k=D+y@100
        """,
    )


def test_record_at_the_end_of_the_history_still_finds_its_version() -> None:
    check(
        joined("join", history=50),
        """
        right k=x@10 ->
        right k=y@60 ->
        left  k=A@10 -> k=A+x@10
        right q=z@61 ->
        left  k=B@10 ->
        left  k=C@11 -> k=C+x@11
        """,
    )


def test_update_older_than_the_history_is_dropped() -> None:
    check(
        joined("left_join", history=10),
        """
        right q=z@100 ->
        right k=x@89  ->
        left  k=A@100 -> k=A+None@100
        right k=y@90  ->
        left  k=B@100 -> k=B+y@100
        """,
    )


def test_no_history_keeps_the_latest_version_only() -> None:
    check(
        joined("left_join", history=0),
        """
        right k=x@10 ->
        left  k=A@10 -> k=A+x@10
        right k=y@20 ->
        left  k=B@10 -> k=B+None@10
        left  k=C@20 -> k=C+y@20
        """,
    )


# -- what is made of a versioned table --------------------------------------------------------------------------------


def test_filter_and_map_of_a_versioned_table_are_looked_up_as_of_the_record_too() -> None:
    builder = StreamsBuilder()
    table = builder.table("right", store=Materialized("versions", history_retention=FIVE_MINUTES))
    view = table.filter(lambda key, value: value != "no").map_values(str.upper)
    builder.stream("left").left_join(view, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@10  ->
        right k=no@20 ->
        right k=y@30  ->
        left  k=A@15  -> k=A+X@15
        left  k=B@25  -> k=B+None@25
        left  k=C@35  -> k=C+Y@35
        """,
    )


def test_mapping_with_a_plain_store_forgets_the_versions() -> None:
    builder = StreamsBuilder()
    table = builder.table("right", store=Materialized("versions", history_retention=FIVE_MINUTES))
    builder.stream("left").left_join(table.map_values(str.upper, store="plain"), plus).to("out")

    check(
        builder.build(),
        """
        right k=x@10 ->
        right k=y@30 ->
        left  k=A@15 -> k=A+Y@15
        """,
    )


def test_mapping_with_a_versioned_store_has_versions_of_its_own() -> None:
    builder = StreamsBuilder()
    table = builder.table("right").map_values(str.upper, store=Materialized("upper", history_retention=FIVE_MINUTES))
    builder.stream("left").left_join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@10 ->
        right k=z@30 ->
        right k=y@20 ->
        left  k=A@15 -> k=A+X@15
        left  k=B@25 -> k=B+Y@25
        left  k=C@35 -> k=C+Z@35
        """,
    )


def test_stream_kept_as_a_versioned_table() -> None:
    builder = StreamsBuilder()
    table = builder.stream("right").to_table(store=Materialized("versions", history_retention=FIVE_MINUTES))
    builder.stream("left").left_join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@10 ->
        right k=y@30 ->
        left  k=A@15 -> k=A+x@15
        left  k=B@30 -> k=B+y@30
        """,
    )


def test_versioned_aggregate() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("right").group_by_key().count(store=Materialized("counts", history_retention=FIVE_MINUTES))
    builder.stream("left").left_join(counts, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@10 ->
        right k=y@30 ->
        left  k=A@15 -> k=A+1@15
        left  k=B@30 -> k=B+2@30
        right k=z@20 ->
        left  k=C@25 -> k=C+1@25
        left  k=D@30 -> k=D+3@30
        """,
    )


def test_joined_tables_are_looked_up_at_their_latest_even_when_both_are_versioned() -> None:
    builder = StreamsBuilder()
    one = builder.table("one", store=Materialized("ones", history_retention=FIVE_MINUTES))
    two = builder.table("two", store=Materialized("twos", history_retention=FIVE_MINUTES))
    builder.stream("left").left_join(one.join(two, plus), plus).to("out")

    check(
        builder.build(),
        """
        one  k=x@10 ->
        two  k=y@10 ->
        one  k=z@30 ->
        left k=A@15 -> k=A+z+y@15
        """,
    )
