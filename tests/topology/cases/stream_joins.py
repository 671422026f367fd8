"""Joins of a stream: with a stream, a table, a global table."""

from headrace import JoinWindows, StreamsBuilder
from tests.topology.cases.steps import WINDOW, both, rekeyed, same, stream, table, to_value, yes


def stream_joined_with_itself(b: StreamsBuilder) -> None:
    records = stream(b, "in")
    records.join(records, both, window=WINDOW).to("out")


def changed_key_joined_with_itself(b: StreamsBuilder) -> None:
    records = rekeyed(b, "in")
    records.join(records, both, window=WINDOW).to("out")


def changed_key_joined_twice(b: StreamsBuilder) -> None:
    records = rekeyed(b, "in")
    records.join(stream(b, "b"), both, window=WINDOW).to("one")
    records.join(stream(b, "c"), both, window=WINDOW).to("two")


def changed_key_joined_twice_named(b: StreamsBuilder) -> None:
    records = rekeyed(b, "in")
    records.join(stream(b, "b"), both, window=WINDOW, name="first").to("one")
    records.join(stream(b, "c"), both, window=WINDOW, name="second").to("two")


def changed_key_joined_on_the_other_side_twice(b: StreamsBuilder) -> None:
    records = rekeyed(b, "in")
    stream(b, "b").left_join(records, both, window=WINDOW).to("one")
    stream(b, "c").outer_join(records, both, window=WINDOW).to("two")


def changed_key_joined_named_then_unnamed(b: StreamsBuilder) -> None:
    records = rekeyed(b, "in")
    records.join(stream(b, "b"), both, window=WINDOW, name="first").to("one")
    records.join(stream(b, "c"), both, window=WINDOW).to("two")


def changed_key_joined_unnamed_then_named(b: StreamsBuilder) -> None:
    records = rekeyed(b, "in")
    records.join(stream(b, "b"), both, window=WINDOW).to("one")
    records.join(stream(b, "c"), both, window=WINDOW, name="second").to("two")
    records.join(stream(b, "d"), both, window=WINDOW).to("three")


def join_of_joins(b: StreamsBuilder) -> None:
    first = stream(b, "a").join(stream(b, "b"), both, window=WINDOW)
    second = first.join(stream(b, "c"), both, window=WINDOW).select_key(to_value)
    second.left_join(stream(b, "d"), both, window=WINDOW).to("out")


def changed_key_joined_with_two_tables(b: StreamsBuilder) -> None:
    records = rekeyed(b, "s")
    records.join(table(b, "t"), both).to("one")
    records.left_join(table(b, "u"), both).to("two")


def stream_joined_with_an_aggregate(b: StreamsBuilder) -> None:
    records = stream(b, "s")
    records.join(records.group_by_key().count(), both).to("out")


def stream_global_join(b: StreamsBuilder) -> None:
    rows = b.global_table("g")
    stream(b, "s").join(rows, both, key=to_value).to("out")


def stream_global_left_join(b: StreamsBuilder) -> None:
    rows = b.global_table("g")
    stream(b, "s").left_join(rows, both, key=to_value).to("out")


def stream_global_join_named(b: StreamsBuilder) -> None:
    rows = b.global_table("g", store="rows")
    stream(b, "s").join(rows, both, key=to_value, name="j").to("out")


def stream_global_join_of_a_changed_key(b: StreamsBuilder) -> None:
    records = rekeyed(b, "s")
    rows = b.global_table("g")
    records.join(rows, both, key=to_value).group_by_key().count().to_stream().to("out")


CASES = {
    "stream join": lambda b: stream(b, "a").join(stream(b, "b"), both, window=WINDOW).to("out"),
    "stream left join": lambda b: stream(b, "a").left_join(stream(b, "b"), both, window=WINDOW).to("out"),
    "stream outer join": lambda b: stream(b, "a").outer_join(stream(b, "b"), both, window=WINDOW).to("out"),
    "stream join named": lambda b: stream(b, "a").join(stream(b, "b"), both, window=WINDOW, name="j").to("out"),
    "stream left join named": lambda b: (
        stream(b, "a").left_join(stream(b, "b"), both, window=WINDOW, name="j").to("out")
    ),
    "stream outer join named": lambda b: (
        stream(b, "a").outer_join(stream(b, "b"), both, window=WINDOW, name="j").to("out")
    ),
    "stream join with grace": lambda b: (
        stream(b, "a").left_join(stream(b, "b"), both, window=JoinWindows(1000, grace=1000)).to("out")
    ),
    "stream join with asymmetric windows": lambda b: (
        stream(b, "a").outer_join(stream(b, "b"), both, window=JoinWindows(before=5, after=10)).to("out")
    ),
    "stream join of changed keys": lambda b: rekeyed(b, "a").join(rekeyed(b, "b"), both, window=WINDOW).to("out"),
    "stream join of changed keys named": lambda b: (
        rekeyed(b, "a").join(rekeyed(b, "b"), both, window=WINDOW, name="j").to("out")
    ),
    "stream left join of a changed key": lambda b: (
        rekeyed(b, "a").left_join(stream(b, "b"), both, window=WINDOW).to("out")
    ),
    "stream outer join of a changed other key named": lambda b: (
        stream(b, "a").outer_join(rekeyed(b, "b"), both, window=WINDOW, name="j").to("out")
    ),
    "stream joined with itself": stream_joined_with_itself,
    "changed key joined with itself": changed_key_joined_with_itself,
    "changed key joined twice": changed_key_joined_twice,
    "changed key joined twice named": changed_key_joined_twice_named,
    "changed key joined on the other side twice": changed_key_joined_on_the_other_side_twice,
    "changed key joined twice, named then unnamed": changed_key_joined_named_then_unnamed,
    "changed key joined twice, unnamed then named": changed_key_joined_unnamed_then_named,
    "join of joins": join_of_joins,
    "stream table join": lambda b: stream(b, "s").join(table(b, "t"), both).to("out"),
    "stream table left join": lambda b: stream(b, "s").left_join(table(b, "t"), both).to("out"),
    "stream table join named": lambda b: stream(b, "s").join(table(b, "t"), both, name="j").to("out"),
    "stream table join with store": lambda b: stream(b, "s").join(b.table("t", store="rows"), both).to("out"),
    "stream table join of a changed key": lambda b: rekeyed(b, "s").join(table(b, "t"), both).to("out"),
    "stream table left join of a changed key named": lambda b: (
        rekeyed(b, "s").left_join(table(b, "t"), both, name="j").to("out")
    ),
    "changed key joined with two tables": changed_key_joined_with_two_tables,
    "stream joined with a filtered table": lambda b: stream(b, "s").join(table(b, "t").filter(yes), both).to("out"),
    "stream joined with a mapped, kept table": lambda b: (
        stream(b, "s").join(table(b, "t").map_values(same, store="kept"), both).to("out")
    ),
    "stream joined with an aggregate": stream_joined_with_an_aggregate,
    "stream joined with a joined table": lambda b: (
        stream(b, "s").join(table(b, "t").join(table(b, "u"), both), both).to("out")
    ),
    "stream joined with a stream as a table": lambda b: stream(b, "s").join(stream(b, "t").to_table(), both).to("out"),
    "stream global join": stream_global_join,
    "stream global left join": stream_global_left_join,
    "stream global join named with store": stream_global_join_named,
    "stream global join of a changed key": stream_global_join_of_a_changed_key,
}
