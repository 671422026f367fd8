"""Join of a stream with tables that are not read from a topic: filtered, mapped, joined, aggregated, suppressed.

Tests `stream_table_join.py` and `value_getters.py`.
"""

import pytest

from headrace import (
    Buffer,
    StreamsBuilder,
    Suppressed,
    TumblingWindows,
    serdes,
)
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check, plus


@pytest.mark.parametrize("store", [None, "kept"])
@pytest.mark.parametrize("cached", [False, True])
def test_filtered_table(store: str | None, cached: bool) -> None:
    builder = StreamsBuilder()
    table = builder.table("right").filter(lambda key, value: value != "no", store=store)
    builder.stream("left").left_join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@0  ->
        left  k=A@1  -> k=A+x@1
        right k=no@2 ->
        left  k=B@3  -> k=B+None@3
        right k=y@4  ->
        left  k=C@5  -> k=C+y@5
        """,
        cached=cached,
    )


@pytest.mark.parametrize("store", [None, "kept"])
@pytest.mark.parametrize("cached", [False, True])
def test_mapped_table(store: str | None, cached: bool) -> None:
    builder = StreamsBuilder()
    table = builder.table("right").map_values(lambda key, value: f"{key}{value}", with_key=True, store=store)
    builder.stream("left").left_join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@0    ->
        left  k=A@1    -> k=A+kx@1
        right k=None@2 ->
        left  k=B@3    -> k=B+None@3
        """,
        cached=cached,
    )


def test_row_that_is_mapped_to_null_is_not_there() -> None:
    builder = StreamsBuilder()
    table = builder.table("right").map_values(lambda value: None if value == "no" else value)
    builder.stream("left").join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=no@0 ->
        left  k=A@1  ->
        right k=x@2  ->
        left  k=B@3  -> k=B+x@3
        """,
    )


def test_chain_of_views_is_computed_at_every_lookup() -> None:
    builder = StreamsBuilder()
    table = (
        builder.table("right")
        .map_values(str.upper)
        .filter_not(lambda key, value: value == "NO")
        .map_values(lambda value: value + "!")
    )
    builder.stream("left").left_join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@0  ->
        left  k=A@1  -> k=A+X!@1
        right k=no@2 ->
        left  k=B@3  -> k=B+None@3
        """,
    )


def test_joined_tables() -> None:
    builder = StreamsBuilder()
    table = builder.table("right").left_join(builder.table("third"), plus)
    builder.stream("left").join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@0    ->
        left  k=A@1    -> k=A+x+None@1
        third k=y@2    ->
        left  k=B@3    -> k=B+x+y@3
        right k=None@4 ->
        left  k=C@5    ->
        """,
    )


def test_table_made_of_a_stream() -> None:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.stream("right").to_table(), plus).to("out")

    check(
        builder.build(),
        """
        right k=x@0    ->
        left  k=A@1    -> k=A+x@1
        right k=None@2 ->
        left  k=B@3    ->
        """,
    )


@pytest.mark.parametrize("cached", [False, True])
def test_aggregate(cached: bool) -> None:
    builder = StreamsBuilder()
    counts = builder.stream("right").group_by_key().count()
    builder.stream("left").left_join(counts, plus).to("out")

    check(
        builder.build(),
        """
        left  k=A@0 -> k=A+None@0
        right k=x@1 ->
        right k=y@2 ->
        left  k=B@3 -> k=B+2@3
        """,
        cached=cached,
    )


def test_stream_joined_with_an_aggregate_of_itself_sees_itself_counted_if_the_count_comes_first() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    counts = stream.group_by_key().count(store="counts")
    stream.join(counts, plus).to("out")

    check(
        builder.build(),
        """
        left k=A@0 -> k=A+1@0
        left k=B@1 -> k=B+2@1
        left q=C@1 -> q=C+1@1
        """,
        stores={"counts": {"k": 2, "q": 1}},
    )


def test_suppressed_table_shows_the_value_before_the_waiting_updates() -> None:
    builder = StreamsBuilder()
    table = builder.table("right").suppress(Suppressed.until_time_limit(10, Buffer.unbounded()))
    builder.stream("left").left_join(table, plus).to("out")

    check(
        builder.build(),
        """
        right k=x@0  ->
        left  k=A@1  -> k=A+None@1
        right q=y@10 ->
        left  k=B@11 -> k=B+x@11
        right k=z@12 ->
        left  k=C@13 -> k=C+x@13
        """,
    )


def test_windowed_table_is_joined_by_its_windowed_key() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("right").group_by_key().windowed_by(TumblingWindows(10)).count()
    counts.to_stream().join(counts, plus).to(
        "out", key_serde=serdes.Windowed(serdes.String, 10), value_serde=serdes.String
    )

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("right").pipe_input("k", "x", 3)
        driver.create_input_topic("right").pipe_input("k", "y", 4)
        results = driver.create_output_topic("out").read_records()
    assert [(result.key.window.start, result.value) for result in results] == [(0, "1+1"), (0, "2+2")]
