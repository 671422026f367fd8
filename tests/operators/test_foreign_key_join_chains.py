"""Foreign-key joins among other steps: views, aggregates, further joins, caches, versions, serdes.

Tests `foreign_key_join.py` and `foreign_key_messages.py`, as does `test_foreign_key_join.py`.
"""

import pytest

from headrace import KTable, Materialized, StreamsBuilder, Topology, serdes
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import after_bar, check, plus

FIVE_MINUTES = 300_000


# -- tables of other kinds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [None, "upper"])
def test_mapped_left_table(store: str | None) -> None:
    builder = StreamsBuilder()
    left = builder.table("left").map_values(str.upper, store=store)
    left.join(builder.table("right"), plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        right R=x@0    ->
        left  a=a|r@1  -> a=A|R+x@1
        left  a=b|r@2  -> a=B|R+x@2
        left  a=b|q@3  -> a=None@3
        left  a=None@4 -> a=None@4
        """,
    )


@pytest.mark.parametrize("store", [None, "small"])
def test_filtered_left_table(store: str | None) -> None:
    builder = StreamsBuilder()
    left = builder.table("left").filter(lambda key, value: not value.startswith("no"), store=store)
    left.left_join(builder.table("right"), plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        right r=x@0    ->
        left  a=no|r@1 ->
        left  a=A|r@2  -> a=A|r+x@2
        left  a=no|r@3 -> a=None@3
        right r=y@4    ->
        """,
    )


@pytest.mark.parametrize("store", [None, "small"])
def test_filtered_right_table(store: str | None) -> None:
    builder = StreamsBuilder()
    right = builder.table("right").filter(lambda key, value: value != "no", store=store)
    builder.table("left").left_join(right, plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        right r=no@0  ->
        left  a=A|r@1 -> a=A|r+None@1
        right r=x@2   -> a=A|r+x@2
        right r=no@3  -> a=A|r+None@3
        right r=no@4  ->
        """,
    )


def test_aggregated_right_table() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("right").group_by_key().count()
    builder.table("left").left_join(counts, plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        left  a=A|r@0 -> a=A|r+None@0
        right r=x@1   -> a=A|r+1@1
        right r=x@2   -> a=A|r+2@2
        """,
    )


def test_aggregated_left_table() -> None:
    builder = StreamsBuilder()
    latest = builder.stream("left").group_by_key().reduce(lambda before, value: value)
    latest.join(builder.table("right"), plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        right r=x@0   ->
        left  a=A|r@5 -> a=A|r+x@5
        left  a=B|r@3 -> a=B|r+x@5
        """,
    )


def test_table_joined_with_itself() -> None:
    builder = StreamsBuilder()
    people = builder.table("left")
    people.left_join(people, plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        left boss=B|@0     -> boss=B|+None@0
        left ann=A|boss@1  -> ann=A|boss+B|@1
        left boss=C|@2     -> ann=A|boss+C|@2 boss=C|+None@2
        """,
    )


# -- further steps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_result_joined_with_the_left_table_again(kind: str) -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    pairs = getattr(left, kind)(right, plus, foreign_key=after_bar, store="pairs")
    left.join(pairs, lambda left, pair: f"{left}({pair})").to_stream().to("out")

    check(
        builder.build(),
        f"""
        left  a=A|r@1 -> {"" if kind == "join" else "a=A|r(A|r+None)@1"}
        right r=x@2   -> a=A|r(A|r+x)@2
        """,
    )


def test_two_foreign_keys_in_a_row() -> None:
    builder = StreamsBuilder()
    orders, people, places = (builder.table(topic) for topic in ("orders", "people", "places"))
    orders.join(people, plus, foreign_key=after_bar).join(
        places, plus, foreign_key=lambda value: value.split("/")[1]
    ).to_stream().to("out")

    check(
        builder.build(),
        """
        places rome=Rome@0     ->
        people ann=Ann/rome@1  ->
        orders 1=pen|ann@2     -> 1=pen|ann+Ann/rome+Rome@2
        people ann=Ann/oslo@3  -> 1=None@3
        places oslo=Oslo@4     -> 1=pen|ann+Ann/oslo+Oslo@4
        orders 1=None@5        -> 1=None@5
        """,
    )


def test_result_regrouped() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    pairs = left.join(right, plus, foreign_key=after_bar)
    pairs.group_by(lambda key, value: (value.split("+")[1], value)).count().to_stream().map_values(str).to("out")

    check(
        builder.build(),
        """
        right r=x@0    ->
        left  a=A|r@1  -> x=1@1
        left  b=B|r@2  -> x=2@2
        left  a=None@3 -> x=1@3
        """,
    )


def test_stream_joined_with_the_result() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    pairs = left.join(right, plus, foreign_key=after_bar)
    builder.stream("clicks").left_join(pairs, plus).to("out")

    check(
        builder.build(),
        """
        right  r=x@0   ->
        left   a=A|r@1 ->
        clicks a=1@2   -> a=1+A|r+x@2
        clicks b=2@3   -> b=2+None@3
        """,
    )


# -- caches -----------------------------------------------------------------------------------------------------------


def cached(store: str | None, left_store: str | None = None) -> Topology:
    builder = StreamsBuilder()
    left, right = builder.table("left", store=left_store), builder.table("right")
    left.join(right, plus, foreign_key=after_bar, store=store).to_stream().to("out")
    return builder.build()


@pytest.mark.parametrize("left_store", [None, "lefts"])
def test_caches_do_not_change_what_the_join_gives(left_store: str | None) -> None:
    check(
        cached(None, left_store),
        """
        left  a=A|r1@0 ->
        left  b=B|r2@1 ->
        right r1=x@2   -> a=A|r1+x@2
        left  a=A|r2@3 -> a=None@3
        right r2=y@4   -> a=A|r2+y@4 b=B|r2+y@4
        left  b=None@5 -> b=None@5
        """,
        cached=True,
    )


def test_cached_result_does_not_pass_on_the_delete_of_a_row_without_a_match() -> None:
    check(
        cached("kept"),
        """
        left  a=A|r@0  ->
        left  a=None@1 ->
        left  b=B|r@2  ->
        right r=x@3    -> b=B|r+x@3
        left  b=None@4 -> b=None@4
        left  b=None@5 ->
        """,
        cached=True,
        stores={"kept": {}},
    )


def test_result_without_a_name_is_not_cached() -> None:
    check(
        cached(None),
        """
        left a=A|r@0  ->
        left a=None@1 -> a=None@1
        left a=None@2 ->
        """,
        cached=True,
    )


def updates(builder: StreamsBuilder, topic: str) -> KTable[str, str]:
    """Make an update of each word of a record, all within one commit."""
    return builder.stream(topic).flat_map_values(lambda value: value.split("_")).to_table(store=f"{topic}-rows")


def test_only_the_last_of_several_updates_subscribes_and_answers() -> None:
    builder = StreamsBuilder()
    updates(builder, "left").join(updates(builder, "right"), plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        left  a=A|r_B|q_C|r@0 ->
        right r=x_y@1         -> a=C|r+y@1
        right q=z@2           ->
        left  a=D|q_E|q@3     -> a=E|q+z@3
        """,
        cached=True,
    )


def test_answer_to_a_row_that_has_changed_since_is_dropped() -> None:
    builder = StreamsBuilder()
    updates(builder, "left").join(updates(builder, "right"), plus, foreign_key=after_bar).to_stream().to("out")

    check(
        builder.build(),
        """
        right r=x@0           ->
        right q=z@0           ->
        left  a=A|r_B|q_C|r@1 -> a=C|r+x@1
        """,
    )


# -- versions ---------------------------------------------------------------------------------------------------------


def versioned(kind: str, sides: str) -> Topology:
    builder = StreamsBuilder()
    left, right = (
        builder.table(side, store=Materialized(side, history_retention=FIVE_MINUTES) if side in sides else None)
        for side in ("left", "right")
    )
    getattr(left, kind)(right, plus, foreign_key=after_bar).to_stream().to("out")
    return builder.build()


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_late_updates_of_versioned_tables_do_not_reach_the_join(kind: str) -> None:
    check(
        versioned(kind, "left and right"),
        """
        right r=x@4       ->
        left  a=A|r@3     -> a=A|r+x@4
        left  b=B|r@5     -> b=B|r+x@5
        left  b=None@6    -> b=None@6
        left  a=late|r@2  ->
        left  b=late|r@2  ->
        left  a=None@2    ->
        left  a=A2|r@8    -> a=A2|r+x@8
        left  b=B2|r@8    -> b=B2|r+x@8
        right r=late@1    ->
        right r=None@1    ->
        right r=y@6       -> a=A2|r+y@6 b=B2|r+y@6
        """,
    )


def test_late_updates_of_the_left_table_alone() -> None:
    check(
        versioned("join", "left"),
        """
        right r=x@4      ->
        left  a=A|r@3    -> a=A|r+x@4
        left  a=late|r@2 ->
        right r=w@1      -> a=A|r+w@1
        right r=None@1   -> a=None@1
        right r=y@6      -> a=A|r+y@6
        """,
    )


def test_late_updates_of_the_right_table_alone() -> None:
    check(
        versioned("join", "right"),
        """
        right r=x@4      ->
        left  a=A|r@3    -> a=A|r+x@4
        left  a=late|r@2 -> a=late|r+x@4
        left  a=None@2   -> a=None@4
        left  a=B|r@1    -> a=B|r+x@4
        right r=late@1   ->
        right r=None@1   ->
        right r=y@6      -> a=B|r+y@6
        """,
    )


def test_result_can_be_kept_in_versions() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    pairs = left.join(right, plus, foreign_key=after_bar, store=Materialized("pairs", history_retention=FIVE_MINUTES))
    builder.stream("clicks").left_join(pairs, plus).to("out")

    check(
        builder.build(),
        """
        right  r=x@10   ->
        left   a=A|r@20 ->
        left   a=B|r@30 ->
        clicks a=1@25   -> a=1+A|r+x@25
        clicks a=2@30   -> a=2+B|r+x@30
        clicks a=3@19   -> a=3+None@19
        """,
    )


# -- serdes -----------------------------------------------------------------------------------------------------------


def test_tables_with_serdes_of_their_own() -> None:
    builder = StreamsBuilder()
    one = builder.table("one", key_serde=serdes.Integer, value_serde=serdes.Float)
    two = builder.table("two", key_serde=serdes.String, value_serde=serdes.Long)
    three = builder.table("three", key_serde=serdes.Integer, value_serde=serdes.String)
    one.join(
        two,
        lambda left, right: f"{left:.2f},{right}",
        foreign_key=lambda value: str(int(value)),
        store=Materialized("pairs", value_serde=serdes.String),
    ).join(
        three,
        lambda left, right: f"{left},{right}",
        foreign_key=lambda value: 10 if value.endswith(",10") else 0,
        store=Materialized("triples", value_serde=serdes.String),
    ).to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        for key, value in [(1, 1.33), (2, 2.22), (3, -1.22), (4, -2.22)]:
            driver.create_input_topic("one").pipe_input(key, value)
        for number in range(10):
            driver.create_input_topic("two").pipe_input(str(number), 10 * number)
        driver.create_input_topic("three").pipe_input(10, "waffle")
        assert driver.create_output_topic("out").read_key_values() == [(1, "1.33,10,waffle")]
        assert dict(driver.state_store("pairs").all()) == {1: "1.33,10", 2: "2.22,20"}


def test_tables_with_the_default_serdes() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    pairs = left.join(right, lambda left, right: [left, right], foreign_key=lambda value: value["of"], store="pairs")
    left.join(pairs, lambda left, pair: [left["of"], pair]).to_stream().to("out")

    with TopologyTestDriver(builder.build(), {"default_key_serde": serdes.Integer}) as driver:
        driver.create_input_topic("left").pipe_input(1, {"of": 999})
        driver.create_input_topic("right").pipe_input(999, "beta")
        assert driver.create_output_topic("out").read_key_values() == [(1, [999, [{"of": 999}, "beta"]])]
