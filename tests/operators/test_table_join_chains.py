"""Joins of joined tables: every combination of kinds, several tables, views in between.

If the same table is on both sides of the second join, its updates arrive there twice.

Tests `table_join.py` and `value_getters.py`.
"""

import pytest

from headrace import KTable, StreamsBuilder
from tests.operators.join_piping import check, plus


def fill_in(results: dict[str, str]) -> str:
    """Put the results of some records into a common list of them."""
    records = """
        left k=None@1, right k=None@2, left k=A@3, right k=a@4, left k=B@5, right k=b@6, left k=None@7, right k=None@8,
        left k=C@9, right k=c@10, right k=None@11, left k=None@12, right k=None@13, right k=d@14, left k=D@15,
        left None=E@16, right None=e@17
    """
    steps = [step.strip() for step in records.split(",")]
    assert set(results) <= {step.split()[1] for step in steps}
    return "\n".join(f"{step} -> {results.get(step.split()[1], '')}" for step in steps)


INNER = {
    "k=a@4": "k=A+a+a@4 k=A+a+a@4",
    "k=B@5": "k=B+a+a@5",
    "k=b@6": "k=B+b+b@6 k=B+b+b@6",
    "k=None@7": "k=None@7",
    "k=c@10": "k=C+c+c@10 k=C+c+c@10",
    "k=D@15": "k=D+d+d@15",
}
LEFT = {
    "k=A@3": "k=A+None+None@3",
    "k=C@9": "k=C+None+None@9",
    "k=None@11": "k=C+None+None@11 k=C+None+None@11",
    "k=None@12": "k=None@12",
}
OUTER = {
    "k=None@7": "k=None+b+b@7",
    "k=d@14": "k=None+d+d@14 k=None+d+d@14",
}
RIGHT_ALONE = {"k=None@7": "k=None+b@7", "k=None@8": "k=None@8", "k=d@14": "k=None+d@14"}


@pytest.mark.parametrize(
    ("first", "second", "results"),
    [
        ("join", "join", INNER),
        ("join", "left_join", INNER | {"k=None@11": "k=None@11"}),
        ("join", "outer_join", INNER | RIGHT_ALONE | {"k=None@11": "k=None@11 k=None@11"}),
        ("left_join", "join", INNER | {"k=None@11": "k=None@11"}),
        ("left_join", "left_join", INNER | LEFT),
        ("left_join", "outer_join", INNER | LEFT | RIGHT_ALONE),
        ("outer_join", "join", INNER | OUTER | {"k=None@11": "k=None@11"}),
        ("outer_join", "left_join", INNER | LEFT | OUTER | {"k=None@8": "k=None@8"}),
        ("outer_join", "outer_join", INNER | LEFT | OUTER | {"k=None@8": "k=None@8 k=None@8"}),
    ],
)
def test_table_joined_twice_with_the_same_one(first: str, second: str, results: dict[str, str]) -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left", store="lefts"), builder.table("right", store="rights")
    once = getattr(left, first)(right, plus)
    getattr(once, second)(right, plus, store="kept").to_stream().to("out")

    check(builder.build(), fill_in(results), stores={"kept": {"k": "D+d+d"}})


def three(first: str, second: str, stores: tuple[str | None, str | None] = (None, None)) -> StreamsBuilder:
    builder = StreamsBuilder()
    one, two, three = (builder.table(topic) for topic in ("one", "two", "three"))
    table: KTable[str, str] = getattr(one, first)(two, plus, store=stores[0])
    getattr(table, second)(three, plus, store=stores[1]).to_stream().to("out")
    return builder


@pytest.mark.parametrize("stores", [(None, None), ("pairs", None), (None, "triples"), ("pairs", "triples")])
def test_three_tables(stores: tuple[str | None, str | None]) -> None:
    check(
        three("join", "join", stores).build(),
        """
        three k=3@5    ->
        one   k=1@9    ->
        two   k=2@1    -> k=1+2+3@9
        three k=4@12   -> k=1+2+4@12
        one   k=5@2    -> k=5+2+4@12
        two   k=None@3 -> k=None@12
        one   k=6@4    ->
        """,
    )


def test_three_tables_left_joined() -> None:
    check(
        three("left_join", "left_join").build(),
        """
        one   k=1@1    -> k=1+None+None@1
        three k=3@2    -> k=1+None+3@2
        two   k=2@3    -> k=1+2+3@3
        two   k=None@4 -> k=1+None+3@4
        one   k=None@5 -> k=None@5
        """,
    )


def test_three_tables_outer_joined() -> None:
    check(
        three("outer_join", "outer_join").build(),
        """
        three k=3@1    -> k=None+3@1
        two   k=2@2    -> k=None+2+3@2
        three k=None@3 -> k=None+2+None@3
        one   k=1@4    -> k=1+2+None@4
        two   k=None@5 -> k=1+None+None@5
        one   k=None@6 -> k=None@6
        """,
    )


def test_join_of_two_joins() -> None:
    builder = StreamsBuilder()
    one, two, three, four = (builder.table(topic) for topic in ("one", "two", "three", "four"))
    one.join(two, plus).outer_join(
        three.left_join(four, plus), lambda left, right: f"({left})+({right})"
    ).to_stream().to("out")

    check(
        builder.build(),
        """
        one   k=1@1    ->
        three k=3@2    -> k=(None)+(3+None)@2
        two   k=2@3    -> k=(1+2)+(3+None)@3
        four  k=4@4    -> k=(1+2)+(3+4)@4
        three k=None@5 -> k=(1+2)+(None)@5
        two   k=None@6 -> k=None@6
        """,
    )


def test_views_between_joins() -> None:
    builder = StreamsBuilder()
    one, two, three = (builder.table(topic) for topic in ("one", "two", "three"))
    pairs = one.join(two, plus).filter(lambda key, value: "no" not in value).map_values(str.upper)
    pairs.left_join(three, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        one   k=a@1  ->
        two   k=b@2  -> k=A+B+None@2
        three k=c@3  -> k=A+B+c@3
        two   k=no@4 -> k=None@4
        three k=d@5  ->
        one   k=e@6  ->
        two   k=f@7  -> k=E+F+d@7
        """,
    )


def test_result_joined_with_one_of_its_own_sides() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(right, plus).join(left, plus).to_stream().to("out")

    check(
        builder.build(),
        """
        left  k=A@1    ->
        right k=x@2    -> k=A+x+A@2
        left  k=B@3    -> k=B+x+B@3 k=B+x+B@3
        left  k=None@4 ->
        """,
    )
