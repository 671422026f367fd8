"""Joins of tables that are not read from a topic: filtered, mapped, aggregated, windowed, suppressed, self-joined.

Tests `table_join.py` and `value_getters.py`.
"""

import pytest

from headrace import (
    Buffer,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TumblingWindows,
    serdes,
)
from headrace.records import Windowed
from tests.operators.join_piping import check, plus


@pytest.mark.parametrize("store", [None, "small"])
def test_filtered_table(store: str | None) -> None:
    builder = StreamsBuilder()
    left = builder.table("left").filter(lambda key, value: value != "no", store=store)
    left.join(builder.table("right"), plus).to_stream().to("out")

    check(
        builder.build(),
        """
        right k=x@1  ->
        left  k=no@2 -> k=None@2
        left  k=A@3  -> k=A+x@3
        left  k=no@4 -> k=None@4
        right k=y@5  ->
        left  k=B@6  -> k=B+y@6
        """,
    )


@pytest.mark.parametrize("store", [None, "upper"])
def test_mapped_table(store: str | None) -> None:
    builder = StreamsBuilder()
    right = builder.table("right").map_values(str.upper, store=store)
    builder.table("left").left_join(right, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A@1    -> k=A+None@1
        right k=x@2    -> k=A+X@2
        left  k=B@3    -> k=B+X@3
        right k=None@4 -> k=B+None@4
        """,
    )


def test_aggregates() -> None:
    builder = StreamsBuilder()
    sums = builder.stream("left").group_by_key().reduce(lambda total, value: total + value)
    counts = builder.stream("right").group_by_key().count()
    sums.outer_join(counts, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A@1 -> k=A+None@1
        right k=x@2 -> k=A+1@2
        left  k=B@0 -> k=AB+1@2
        right q=y@3 -> q=None+1@3
        """,
    )


def test_tables_made_of_streams() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left").to_table(), builder.stream("right").to_table()
    left.join(right, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A@1    ->
        right k=x@2    -> k=A+x@2
        right k=None@3 -> k=None@3
        """,
    )


def test_tables_of_streams_with_changed_keys_meet_by_the_new_key() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").select_key(lambda key, value: value[0]).to_table()
    left.join(builder.table("right"), plus).to_stream().to("out")

    check(
        builder.build(),
        """
        right a=x@1  ->
        left  k=a1@2 -> a=a1+x@2
        left  q=a2@3 -> a=a2+x@3
        """,
    )


def start_of(key: Windowed[str], value: str) -> str:
    return f"{key.key}/{key.window.start}"


def test_windowed_tables_meet_by_key_and_window() -> None:
    builder = StreamsBuilder()
    left, right = (
        builder.stream(topic).group_by_key().windowed_by(TumblingWindows(10, grace=100)).count()
        for topic in ("left", "right")
    )
    left.outer_join(right, plus).to_stream(start_of).to("out", value_serde=serdes.String)

    check(
        builder.build(),
        """
        left  k=A@1  -> k/0=1+None@1
        right k=x@9  -> k/0=1+1@9
        right k=y@10 -> k/10=None+1@10
        left  k=B@3  -> k/0=2+1@9
        left  k=C@15 -> k/10=1+1@15
        """,
    )


def test_sessions_meet_by_key_and_bounds() -> None:
    builder = StreamsBuilder()
    left, right = (
        builder.stream(topic).group_by_key().windowed_by(SessionWindows(5, grace=100)).count()
        for topic in ("left", "right")
    )
    left.left_join(right, plus).to_stream(start_of).to("out", value_serde=serdes.String)

    check(
        builder.build(),
        """
        left  k=A@1 -> k/1=1+None@1
        right k=x@1 -> k/1=1+1@1
        left  k=B@4 -> k/1=None@1 k/1=2+None@4
        right k=y@4 -> k/1=2+2@4
        """,
    )


def test_suppressed_table_is_joined_when_its_updates_go_on() -> None:
    builder = StreamsBuilder()
    left = builder.table("left").suppress(Suppressed.until_time_limit(5, Buffer.unbounded()))
    left.left_join(builder.table("right"), plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A@0 ->
        right k=x@1 ->
        left  k=B@2 ->
        left  q=C@5 -> k=B+x@2
        right k=y@6 -> k=B+y@6
        """,
    )


def test_result_can_be_suppressed() -> None:
    builder = StreamsBuilder()
    pairs = builder.table("left").outer_join(builder.table("right"), plus)
    pairs.suppress(Suppressed.until_time_limit(5, Buffer.unbounded())).to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A@0    ->
        right k=x@1    ->
        left  k=None@3 ->
        left  q=B@5    -> k=None+x@3
        """,
    )


def test_table_joined_with_itself_gives_every_result_twice_and_no_deletes() -> None:
    builder = StreamsBuilder()
    table = builder.table("left")
    table.join(table, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left k=A@0    -> k=A+A@0 k=A+A@0
        left k=B@1    -> k=B+B@1 k=B+B@1
        left k=None@2 ->
        """,
    )


@pytest.mark.parametrize(("kind", "deletes"), [("left_join", "k=None@2"), ("outer_join", "k=None@2 k=None@2")])
def test_table_left_or_outer_joined_with_itself_gives_deletes(kind: str, deletes: str) -> None:
    builder = StreamsBuilder()
    table = builder.table("left")
    getattr(table, kind)(table, plus).to_stream().to("out")

    check(
        builder.build(),
        f"""
        left k=A@0    -> k=A+A@0 k=A+A@0
        left k=None@2 -> {deletes}
        """,
    )
