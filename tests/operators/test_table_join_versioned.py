"""Joins of versioned tables: an update that is older than its row's latest is kept, but does not reach the join.

Tests `table_join.py`.
"""

from headrace import Materialized, StreamsBuilder, Topology
from tests.operators.join_piping import check, every_kind, plus
from tests.operators.join_scenarios import TABLES

FIVE_MINUTES = 300_000


def versioned(name: str, history: int = FIVE_MINUTES) -> Materialized:
    return Materialized(name, history_retention=history)


def joined(kind: str, versioned_sides: str) -> Topology:
    builder = StreamsBuilder()
    sides = ["left", "right"] if versioned_sides == "both" else [versioned_sides]
    left, right = (builder.table(side, store=versioned(side) if side in sides else side) for side in ("left", "right"))
    getattr(left, kind)(right, plus, store=Materialized("kept", caching=False)).to_stream().to("out")
    return builder.build()


# -- late updates, after the scenario in which versions make no difference ---------------------------------------------


@every_kind
def test_both_versioned(kind: str) -> None:
    check(
        joined(kind, "both"),
        TABLES
        + """
        right k=d@7     ->
        left  k=D@6     ->
        left  k=None@2  ->
        right k=None@3  ->
        right k=e@14    ->           |             | k=None+e@14
        left  k=E@15    -> k=E+e@15
        left  k=None@10 ->
        right k=None@9  ->
        left  k=F@4     ->
        right k=f@3     ->
        """,
        column=kind,
        stores={"kept": {"k": "E+e"}},
    )


@every_kind
def test_only_the_left_side_versioned(kind: str) -> None:
    check(
        joined(kind, "left"),
        TABLES
        + """
        right k=d@7     ->           |             | k=None+d@7
        left  k=D@6     ->
        left  k=None@2  ->
        right k=None@3  ->           |             | k=None@3
        right k=e@14    ->           |             | k=None+e@14
        left  k=E@15    -> k=E+e@15
        left  k=None@10 ->
        right k=None@9  -> k=None@15 | k=E+None@15 | k=E+None@15
        left  k=F@4     ->
        right k=f@3     -> k=E+f@15
        """,
        column=kind,
        stores={"kept": {"k": "E+f"}},
    )


@every_kind
def test_only_the_right_side_versioned(kind: str) -> None:
    check(
        joined(kind, "right"),
        TABLES
        + """
        right k=d@7     ->
        left  k=D@6     ->           | k=D+None@6 | k=D+None@6
        left  k=None@2  ->           | k=None@2   | k=None@2
        right k=None@3  ->
        right k=e@14    ->           |            | k=None+e@14
        left  k=E@15    -> k=E+e@15
        left  k=None@10 -> k=None@14 | k=None@14  | k=None+e@14
        right k=None@9  ->
        left  k=F@4     -> k=F+e@14
        right k=f@3     ->
        """,
        column=kind,
        stores={"kept": {"k": "F+e"}},
    )


# -- corners ----------------------------------------------------------------------------------------------------------


def test_update_of_the_same_time_is_the_latest() -> None:
    check(
        joined("join", "both"),
        """
        left  k=A@5 ->
        right k=x@5 -> k=A+x@5
        left  k=B@5 -> k=B+x@5
        right k=y@5 -> k=B+y@5
        """,
    )


def test_update_older_than_the_history_does_not_reach_the_join() -> None:
    builder = StreamsBuilder()
    left = builder.table("left", store=versioned("left", 10))
    left.outer_join(builder.table("right"), plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left q=Q@100 -> q=Q+None@100
        left k=A@89  ->
        left k=B@90  -> k=B+None@90
        """,
    )


def test_views_of_a_versioned_table_keep_late_updates_from_the_join() -> None:
    builder = StreamsBuilder()
    left = builder.table("left", store=versioned("left")).filter(lambda key, value: value != "no").map_values(str.upper)
    left.left_join(builder.table("right"), plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left k=a@10  -> k=A+None@10
        left k=b@5   ->
        left k=no@20 -> k=None@20
        left k=c@15  ->
        left k=d@30  -> k=D+None@30
        """,
    )


def test_view_with_a_plain_store_lets_late_updates_through() -> None:
    builder = StreamsBuilder()
    left = builder.table("left", store=versioned("left")).map_values(str.upper, store="upper")
    left.left_join(builder.table("right"), plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left k=a@10 -> k=A+None@10
        left k=b@5  -> k=B+None@5
        """,
    )


def test_late_update_goes_on_to_a_stream_of_the_table() -> None:
    builder = StreamsBuilder()
    builder.table("left", store=versioned("left")).to_stream().to("out")

    check(
        builder.build(),
        """
        left k=a@10 -> k=a@10
        left k=b@5  -> k=b@5
        """,
    )


def test_result_kept_in_versions_keeps_late_results_from_the_next_join() -> None:
    builder = StreamsBuilder()
    one, two, three = (builder.table(topic) for topic in ("one", "two", "three"))
    one.join(two, plus, store=versioned("pairs")).left_join(three, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        one   k=1@5    ->
        two   k=2@20   -> k=1+2+None@20
        two   k=3@10   ->
        one   k=4@30   -> k=4+3+None@30
        three k=x@1    -> k=4+3+x@30
        """,
    )


def test_table_joined_with_itself() -> None:
    builder = StreamsBuilder()
    table = builder.table("left", store=versioned("left"))
    table.join(table, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left k=A@10 -> k=A+A@10 k=A+A@10
        left k=B@5  ->
        left k=C@10 -> k=C+C@10 k=C+C@10
        """,
    )


def test_older_version_is_the_latest_again_after_a_delete_at_the_time_of_the_latest() -> None:
    check(
        joined("outer_join", "left"),
        """
        left k=A@5    -> k=A+None@5
        left k=None@5 -> k=None@5
        left k=B@3    -> k=B+None@3
        """,
    )
