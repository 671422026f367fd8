"""Sources, stateless steps, splits, repartitions and streams turned into tables."""

import re
from typing import Any

from headrace import StreamsBuilder
from tests.topology.cases.steps import (
    UNNAMED,
    WINDOW,
    both,
    ignore,
    pair,
    pairs,
    rekeyed,
    same,
    stream,
    table,
    to_value,
    topic_of_record,
    values,
    yes,
)


def same_topic_twice(b: StreamsBuilder) -> None:
    stream(b, "in").filter(yes).to("one")
    stream(b, "in").map_values(same).to("two")


def same_topics_twice(b: StreamsBuilder) -> None:
    b.stream(["a", "b"]).to("one")
    b.stream(["a", "b"]).to("two")


def same_pattern_twice(b: StreamsBuilder) -> None:
    b.stream(re.compile("a.*")).to("one")
    b.stream(re.compile("a.*")).to("two")


def several_streams(b: StreamsBuilder) -> None:
    for source, sink in zip("abc", "xyz", strict=True):
        stream(b, source).to(sink)


def global_table_beside_streams(b: StreamsBuilder) -> None:
    stream(b, "a").to("x")
    b.global_table("countries")
    stream(b, "b").to("y")
    b.global_table("cities", store="cities")
    stream(b, "c").to("z")


def global_tables_first(b: StreamsBuilder) -> None:
    b.global_table("one")
    b.global_table("two")
    stream(b, "a").to("x")


def merge_with_itself(b: StreamsBuilder) -> None:
    records = stream(b, "in")
    records.merge(records).to("out")


def merge_of_branches(b: StreamsBuilder) -> None:
    records = stream(b, "in")
    records.filter(yes).merge(records.map_values(same)).to("out")


def stateless_named(b: StreamsBuilder) -> None:
    records: Any = (
        b.stream("in", name="reader")
        .filter(yes, name="kept")
        .filter_not(yes, name="dropped")
        .map(pair, name="mapped")
        .flat_map(pairs, name="flattened")
        .select_key(to_value, name="rekeyed")
        .map_values(same, name="revalued")
        .flat_map_values(values, name="values")
        .peek(ignore, name="seen")
    )
    records.for_each(ignore, name="done")
    records.print(name="printed")
    records.merge(stream(b, "other"), name="merged").to("out", name="writer")


def named_and_unnamed_mixed(b: StreamsBuilder) -> None:
    kept = stream(b, "in").filter(yes, name="kept").map_values(same)
    kept.peek(ignore, name="seen").map_values(same).to("out")


def several_sinks(b: StreamsBuilder) -> None:
    records = stream(b, "in")
    records.to("one")
    records.to("two")
    records.map_values(same).to("three")


def split(b: StreamsBuilder) -> None:
    for part in stream(b, "in").split({"small": yes, "large": yes}, default="rest").values():
        part.map_values(same)


def split_named(b: StreamsBuilder) -> None:
    parts = stream(b, "in").split({"small": yes, "large": yes}, default="rest", name="by-size-")
    parts["small"].to("small")
    parts["large"].map_values(same).to("large")
    parts["rest"].to("rest")


def split_twice(b: StreamsBuilder) -> None:
    outer = stream(b, "in").split({"a": yes}, default="b", name="outer-")
    for part in outer["a"].split({"a": yes}, default="b", name="inner-").values():
        part.to("out")


def split_and_merge(b: StreamsBuilder) -> None:
    parts = stream(b, "in").split({"a": yes, "b": yes}, default="c", name="s-")
    parts["a"].map_values(same).merge(parts["b"]).merge(parts["c"].peek(ignore)).to("out")


CASES = {
    "stream": lambda b: stream(b, "in").to("out"),
    "stream named": lambda b: b.stream("in", name="reader").to("out", name="writer"),
    "stream of several topics": lambda b: b.stream(["a", "b", "c", "orders", "payments"]).to("out"),
    "stream of a pattern": lambda b: b.stream(re.compile("in-[a-z]+")).to("out"),
    "stream of a pattern named": lambda b: b.stream(re.compile("all-.*"), name="all").to("out"),
    "same topic twice": same_topic_twice,
    "same topic twice joined": lambda b: stream(b, "in").join(stream(b, "in"), both, window=WINDOW).to("out"),
    "same topics twice": same_topics_twice,
    "same pattern twice": same_pattern_twice,
    "several streams": several_streams,
    "table source": lambda b: b.table("in"),
    "table source with store": lambda b: b.table("in", store="rows"),
    "table source with unnamed store": lambda b: b.table("in", store=UNNAMED),
    "table source named": lambda b: b.table("in", name="rows"),
    "table source named with store": lambda b: b.table("in", name="reader", store="rows"),
    "table source needed": lambda b: table(b, "in").filter(yes, store="kept").to_stream().to("out"),
    "global table": lambda b: b.global_table("in"),
    "global table with store": lambda b: b.global_table("in", store="rows"),
    "global table named": lambda b: b.global_table("in", name="reader", store="rows"),
    "global table beside streams": global_table_beside_streams,
    "global tables first": global_tables_first,
    "filter": lambda b: stream(b, "in").filter(yes).to("out"),
    "filter not": lambda b: stream(b, "in").filter_not(yes).to("out"),
    "map": lambda b: stream(b, "in").map(pair).to("out"),
    "flat map": lambda b: stream(b, "in").flat_map(pairs).to("out"),
    "select key": lambda b: rekeyed(b, "in").to("out"),
    "map values": lambda b: stream(b, "in").map_values(same).to("out"),
    "map values with key": lambda b: stream(b, "in").map_values(to_value, with_key=True).to("out"),
    "flat map values": lambda b: stream(b, "in").flat_map_values(values).to("out"),
    "peek": lambda b: stream(b, "in").peek(ignore).to("out"),
    "for each": lambda b: stream(b, "in").for_each(ignore),
    "print": lambda b: stream(b, "in").print(),
    "print with label": lambda b: stream(b, "in").print("label"),
    "merge": lambda b: stream(b, "a").merge(stream(b, "b")).to("out"),
    "merge of three": lambda b: stream(b, "a").merge(stream(b, "b")).merge(stream(b, "c")).to("out"),
    "merge with itself": merge_with_itself,
    "merge of branches": merge_of_branches,
    "stateless named": stateless_named,
    "named and unnamed mixed": named_and_unnamed_mixed,
    "to a topic by record": lambda b: stream(b, "in").to(topic_of_record),
    "to a topic by record named": lambda b: stream(b, "in").to(topic_of_record, name="writer"),
    "several sinks": several_sinks,
    "split": split,
    "split without default": lambda b: stream(b, "in").split({"small": yes, "large": yes})["small"].to("out"),
    "split named": split_named,
    "split twice": split_twice,
    "split and merge": split_and_merge,
    "repartition": lambda b: stream(b, "in").repartition().to("out"),
    "repartition named": lambda b: stream(b, "in").repartition(name="by-user").to("out"),
    "repartition with partitions": lambda b: stream(b, "in").repartition(partitions=4).to("out"),
    "repartition named with partitions": lambda b: stream(b, "in").repartition(name="by-user", partitions=4).to("out"),
    "repartition of a changed key": lambda b: rekeyed(b, "in").repartition().group_by_key().count(),
    "repartition twice": lambda b: stream(b, "in").repartition().map_values(same).repartition().to("out"),
    "repartition name with the suffix": lambda b: stream(b, "in").repartition(name="x-repartition").to("out"),
    "to table": lambda b: stream(b, "in").to_table(),
    "to table named": lambda b: stream(b, "in").to_table(name="rows"),
    "to table with store": lambda b: stream(b, "in").to_table(store="kept"),
    "to table named with store": lambda b: stream(b, "in").to_table(name="rows", store="kept"),
    "to table with unnamed store": lambda b: stream(b, "in").to_table(store=UNNAMED),
    "to table of a changed key": lambda b: rekeyed(b, "in").to_table().to_stream().to("out"),
    "to table of a changed key named": lambda b: rekeyed(b, "in").to_table(name="rows").to_stream().to("out"),
    "to table of a changed key with store": lambda b: rekeyed(b, "in").to_table(store="kept"),
    "to table needed": lambda b: stream(b, "in").to_table().group_by(pair).count(),
}
