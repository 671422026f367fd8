"""Joins of cached tables: they get one update per key and commit, and no delete of a row that was not there.

Tests `table_join.py`.
"""

import pytest

from headrace import KTable, Materialized, StreamsBuilder, Topology
from tests.operators.join_piping import check, plus


def words(builder: StreamsBuilder, topic: str, store: str | Materialized | None = None) -> KTable[str, str | None]:
    """Make an update of each word of a record, all within one commit; `-` deletes."""
    stream = builder.stream(topic).flat_map_values(
        lambda value: [None if word == "-" else word for word in value.split("_")]
    )
    return stream.to_table(store=store)


def joined(kind: str, caching: bool = True) -> Topology:
    builder = StreamsBuilder()
    left = words(builder, "left", Materialized("lefts", caching=caching))
    right = words(builder, "right", Materialized("rights", caching=caching))
    getattr(left, kind)(right, plus).to_stream().to("out")
    return builder.build()


def test_last_of_several_updates_is_joined() -> None:
    check(
        joined("join"),
        """
        left  k=A_B_C@1 ->
        right k=x_y@2   -> k=C+y@2
        left  k=D_-_E@3 -> k=E+y@3
        left  k=F_-@4   -> k=None@4
        """,
        cached=True,
    )


@pytest.mark.parametrize(("caching", "cached"), [(False, True), (True, False)])
def test_without_a_cache_every_update_is_joined(caching: bool, cached: bool) -> None:
    check(
        joined("join", caching=caching),
        """
        left  k=A_B_C@1 ->
        right k=x_y@2   -> k=C+x@2 k=C+y@2
        left  k=D_-_E@3 -> k=D+y@3 k=None@3 k=E+y@3
        left  k=F_-@4   -> k=F+y@4 k=None@4
        """,
        cached=cached,
    )


def test_row_that_came_and_went_between_commits_was_never_there() -> None:
    check(
        joined("left_join"),
        """
        left  k=A_-@1 ->
        left  k=B@2   -> k=B+None@2
        right k=x_-@3 ->
        left  k=C@4   -> k=C+None@4
        """,
        cached=True,
    )


def test_delete_of_an_absent_row_is_not_passed_on() -> None:
    check(
        joined("join"),
        """
        right k=x@5    ->
        left  k=-@6    ->
        left  k=A@7    -> k=A+x@7
        left  k=-@8    -> k=None@8
        left  k=-@9    ->
        """,
        cached=True,
    )


def test_join_with_a_cached_store_gives_one_result_for_an_update_that_arrives_twice() -> None:
    builder = StreamsBuilder()
    table = builder.table("left")
    table.join(table, plus, store="kept").to_stream().to("out")

    check(
        builder.build(),
        """
        left k=A@0    -> k=A+A@0
        left k=B@1    -> k=B+B@1
        left k=None@2 ->
        """,
        cached=True,
        stores={"kept": {"k": "B+B"}},
    )


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_final_rows_are_the_same_with_and_without_caches(kind: str) -> None:
    transcript = """
        left  k=None@1  ->
        right k=None@2  ->
        left  k=A@3     ->
        right k=a@4     -> k=A+a@4
        left  k=B@5     -> k=B+a@5
        right k=b@6     -> k=B+b@6
        left  k=None@2  -> k=None@6
        left  k=F@4     -> k=F+b@6
        right k=f@3     -> k=F+f@4
    """
    if kind != "join":
        transcript = transcript.replace("k=A@3     ->", "k=A@3     -> k=A+None@3")
    if kind == "outer_join":
        transcript = transcript.replace("-> k=None@6", "-> k=None+b@6")
    for cached in (False, True):
        builder = StreamsBuilder()
        left, right = builder.table("left"), builder.table("right")
        getattr(left, kind)(right, plus, store="kept").to_stream().to("out")

        check(builder.build(), transcript, cached=cached, stores={"kept": {"k": "F+f"}})


def test_old_result_is_that_of_the_last_commit() -> None:
    builder = StreamsBuilder()
    left, right = words(builder, "left"), words(builder, "right")
    left.join(right, plus, store="kept").group_by(lambda key, value: (key, f"({value})")).aggregate(
        lambda: "", lambda key, value, log: f"{log}+{value}", lambda key, value, log: f"{log}-{value}"
    ).to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A_B@1 ->
        right k=x_y@2 -> k=+(B+y)@2
        left  k=C_D@3 -> k=+(B+y)-(B+y)+(D+y)@3
        right k=z_-@4 -> k=+(B+y)-(B+y)+(D+y)-(D+y)@4
        """,
        cached=True,
    )


def test_stream_sees_the_row_although_the_update_still_waits_in_the_cache() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    table = stream.map_values(lambda value: value + "!").to_table(store="rows")
    stream.join(table, plus).to("out")

    check(
        builder.build(),
        """
        left k=A@1 -> k=A+A!@1
        left k=B@2 -> k=B+B!@2
        """,
        cached=True,
    )
