"""Steps, aggregations and joins of tables."""

from typing import Any

from headrace import GroupedTable, StreamsBuilder
from tests.topology.cases.steps import (
    UNNAMED,
    UNNAMED_COUNT,
    both,
    empty,
    fold,
    grouped,
    same,
    stream,
    swapped,
    table,
    to_value,
    yes,
)


def table_chain(b: StreamsBuilder) -> None:
    derived = table(b, "in").filter(yes).map_values(same).filter_not(yes)
    derived.map_values(same, store="kept").filter(yes).to_stream().to("out")


def by_value(b: StreamsBuilder) -> GroupedTable[Any, Any]:
    return table(b, "in").group_by(swapped)


def named_group(b: StreamsBuilder) -> GroupedTable[Any, Any]:
    return table(b, "in").group_by(swapped, name="by-value")


def two_aggregations(b: StreamsBuilder) -> None:
    group = by_value(b)
    group.count()
    group.reduce(both, both)


def two_aggregations_of_a_named_group(b: StreamsBuilder) -> None:
    group = named_group(b)
    group.count()
    group.reduce(both, both)


def table_joined_with_itself(b: StreamsBuilder) -> None:
    rows = table(b, "a")
    rows.join(rows, both).to_stream().to("out")


def table_joined_with_its_own_filter(b: StreamsBuilder) -> None:
    rows = table(b, "a")
    rows.left_join(rows.filter(yes), both).to_stream().to("out")


def join_of_three_with_store(b: StreamsBuilder) -> None:
    first = table(b, "a").join(table(b, "b"), both, store="kept")
    first.outer_join(table(b, "c"), both).to_stream().to("out")


def join_of_aggregates(b: StreamsBuilder) -> None:
    counts = grouped(b).count()
    counts.join(stream(b, "b").group_by(to_value).count(), both).to_stream().to("out")


def foreign_key_join_of_derived_tables(b: StreamsBuilder) -> None:
    left, right = table(b, "a").filter(yes), table(b, "b").map_values(same)
    left.join(right, both, foreign_key=same).filter(yes).to_stream().to("out")


def foreign_key_join_with_itself(b: StreamsBuilder) -> None:
    rows = table(b, "a")
    rows.join(rows, both, foreign_key=same).to_stream().to("out")


def foreign_key_join_then_grouped(b: StreamsBuilder) -> None:
    joined = table(b, "a").join(table(b, "b"), both, foreign_key=same)
    joined.group_by(swapped).count().to_stream().to("out")


def two_foreign_key_joins(b: StreamsBuilder) -> None:
    first = table(b, "a").join(table(b, "b"), both, foreign_key=same)
    first.left_join(table(b, "c"), both, foreign_key=same).to_stream().to("out")


CASES = {
    "table filter": lambda b: table(b, "in").filter(yes).to_stream().to("out"),
    "table filter not": lambda b: table(b, "in").filter_not(yes).to_stream().to("out"),
    "table filter with store": lambda b: table(b, "in").filter(yes, store="kept").to_stream().to("out"),
    "table filter with unnamed store": lambda b: table(b, "in").filter(yes, store=UNNAMED).to_stream().to("out"),
    "table filter named": lambda b: table(b, "in").filter(yes, name="some").to_stream().to("out"),
    "table filter named with store": lambda b: (
        table(b, "in").filter(yes, name="some", store="kept").to_stream().to("out")
    ),
    "table filter of a kept table": lambda b: b.table("in", store="rows").filter(yes).to_stream().to("out"),
    "table map values": lambda b: table(b, "in").map_values(same).to_stream().to("out"),
    "table map values with store": lambda b: table(b, "in").map_values(same, store="kept").to_stream().to("out"),
    "table map values with unnamed store": lambda b: (
        table(b, "in").map_values(same, store=UNNAMED).to_stream().to("out")
    ),
    "table map values named": lambda b: (
        table(b, "in").map_values(to_value, with_key=True, name="mapped").to_stream().to("out")
    ),
    "table map values named with store": lambda b: (
        table(b, "in").map_values(same, name="mapped", store="kept").to_stream().to("out")
    ),
    "table chain": table_chain,
    "to stream named": lambda b: table(b, "in").to_stream(name="updates").to("out"),
    "to stream with key": lambda b: table(b, "in").to_stream(to_value).group_by_key().count(),
    "to stream with key named": lambda b: table(b, "in").to_stream(to_value, name="updates").to("out"),
    "grouped table count": lambda b: by_value(b).count().to_stream().to("out"),
    "grouped table count named": lambda b: by_value(b).count(name="counted").to_stream().to("out"),
    "grouped table count with store": lambda b: by_value(b).count(store="counts").to_stream().to("out"),
    "grouped table count with unnamed store": lambda b: by_value(b).count(store=UNNAMED_COUNT).to_stream().to("out"),
    "grouped table count named with store": lambda b: (
        by_value(b).count(name="counted", store="counts").to_stream().to("out")
    ),
    "named grouped table count": lambda b: named_group(b).count().to_stream().to("out"),
    "named grouped table count named with store": lambda b: (
        named_group(b).count(name="counted", store="counts").to_stream().to("out")
    ),
    "grouped table reduce": lambda b: by_value(b).reduce(both, both),
    "grouped table reduce named with store": lambda b: by_value(b).reduce(both, both, name="reduced", store="kept"),
    "grouped table reduce with unnamed store": lambda b: by_value(b).reduce(both, both, store=UNNAMED),
    "grouped table aggregate": lambda b: by_value(b).aggregate(empty, fold, fold),
    "grouped table aggregate named": lambda b: by_value(b).aggregate(empty, fold, fold, name="folded"),
    "two aggregations of a grouped table": two_aggregations,
    "two aggregations of a named grouped table": two_aggregations_of_a_named_group,
    "table join": lambda b: table(b, "a").join(table(b, "b"), both).to_stream().to("out"),
    "table left join": lambda b: table(b, "a").left_join(table(b, "b"), both).to_stream().to("out"),
    "table outer join": lambda b: table(b, "a").outer_join(table(b, "b"), both).to_stream().to("out"),
    "table join with store": lambda b: table(b, "a").join(table(b, "b"), both, store="kept"),
    "table left join with unnamed store": lambda b: table(b, "a").left_join(table(b, "b"), both, store=UNNAMED),
    "table outer join with store": lambda b: table(b, "a").outer_join(table(b, "b"), both, store="kept"),
    "table join named": lambda b: table(b, "a").join(table(b, "b"), both, name="j").to_stream().to("out"),
    "table left join named with store": lambda b: table(b, "a").left_join(table(b, "b"), both, name="j", store="kept"),
    "table outer join named": lambda b: table(b, "a").outer_join(table(b, "b"), both, name="j"),
    "table join of kept tables": lambda b: (
        b.table("a", store="as").join(b.table("b", store="bs"), both).to_stream().to("out")
    ),
    "table join of derived tables": lambda b: (
        table(b, "a").filter(yes).join(table(b, "b").map_values(same), both).to_stream().to("out")
    ),
    "table join of three": lambda b: (
        table(b, "a").join(table(b, "b"), both).left_join(table(b, "c"), both).to_stream().to("out")
    ),
    "table join of three with store": join_of_three_with_store,
    "table joined with itself": table_joined_with_itself,
    "table joined with its own filter": table_joined_with_its_own_filter,
    "table join of aggregates": join_of_aggregates,
    "foreign key join": lambda b: table(b, "a").join(table(b, "b"), both, foreign_key=same).to_stream().to("out"),
    "foreign key left join": lambda b: (
        table(b, "a").left_join(table(b, "b"), both, foreign_key=same).to_stream().to("out")
    ),
    "foreign key join named": lambda b: (
        table(b, "a").join(table(b, "b"), both, foreign_key=same, name="fk").to_stream().to("out")
    ),
    "foreign key join with store": lambda b: (
        table(b, "a").join(table(b, "b"), both, foreign_key=same, store="kept").to_stream().to("out")
    ),
    "foreign key left join named with store": lambda b: (
        table(b, "a").left_join(table(b, "b"), both, foreign_key=same, name="fk", store="kept").to_stream().to("out")
    ),
    "foreign key join with unnamed store": lambda b: (
        table(b, "a").join(table(b, "b"), both, foreign_key=same, store=UNNAMED).to_stream().to("out")
    ),
    "foreign key join of kept tables": lambda b: (
        b.table("a", store="as").join(b.table("b", store="bs"), both, foreign_key=same).to_stream().to("out")
    ),
    "foreign key join of derived tables": foreign_key_join_of_derived_tables,
    "foreign key join of a table with itself": foreign_key_join_with_itself,
    "foreign key join, then grouped": foreign_key_join_then_grouped,
    "two foreign key joins": two_foreign_key_joins,
}
