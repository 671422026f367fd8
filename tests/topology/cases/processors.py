"""A user's processors, in the DSL and alone, and topologies with many steps."""

import re
from collections.abc import Callable
from typing import Any

from headrace import Buffer, Materialized, Stores, StreamsBuilder, Suppressed, Topology, Windowed
from headrace.serdes import Long, String
from tests.topology.cases.steps import (
    SESSIONS,
    TUMBLING,
    WINDOW,
    Forward,
    ForwardValue,
    WithStores,
    both,
    same,
    store,
    stream,
    table,
    to_value,
    topic_of_record,
    yes,
)


def process_with_stores(b: StreamsBuilder) -> None:
    b.add_state_store(store("one"))
    b.add_state_store(store("two"))
    stream(b, "in").process(Forward, "one", "two").to("out")


def process_named_with_stores(b: StreamsBuilder) -> None:
    b.add_state_store(store("one"))
    stream(b, "in").process(Forward, "one", name="mine").to("out")


def process_values_named_with_stores(b: StreamsBuilder) -> None:
    b.add_state_store(store("one"))
    stream(b, "in").process_values(ForwardValue, "one", name="mine").to("out")


def processors_that_share_a_store(b: StreamsBuilder) -> None:
    b.add_state_store(store("shared"))
    stream(b, "a").process(Forward, "shared").to("x")
    stream(b, "b").process(Forward, "shared").to("y")
    stream(b, "c").to("z")


def process_with_a_tables_store(b: StreamsBuilder) -> None:
    b.table("t", store="rows")
    stream(b, "s").process(Forward, "rows").to("out")


def store_nobody_uses(b: StreamsBuilder) -> None:
    b.add_state_store(store("idle"))
    stream(b, "in").to("out")


def word_count(b: StreamsBuilder) -> None:
    words = stream(b, "lines").flat_map_values(str.split).group_by(to_value)
    words.count(store="counts").to_stream().to("counts-out", key_serde=String, value_serde=Long)


def page_of(key: Windowed[Any], value: Any) -> Any:
    return key.key


def everything_named(b: StreamsBuilder) -> None:
    counts = (
        b.stream("clicks", name="clicks")
        .filter(yes, name="valid")
        .group_by(to_value, name="by-page")
        .windowed_by(TUMBLING)
        .count(name="count", store=Materialized("counts"))
        .suppress(Suppressed.until_window_closes(Buffer.unbounded()), name="final")
    )
    updates = counts.to_stream(page_of, name="by-page-again")
    pages = b.table("pages", name="pages", store="pages-store")
    updates.left_join(pages, both, name="with-page").to("report", name="report")


def wide(b: StreamsBuilder) -> None:
    records = stream(b, "in")
    for number in range(14):
        step = records
        for _ in range(number % 4):
            step = step.map_values(same)
        step.to(f"out-{number}")


def through_user_topics(b: StreamsBuilder) -> None:
    stream(b, "a").map_values(same).to("b")
    stream(b, "b").group_by_key().count().to_stream().to("c")
    stream(b, "c").to("d")


def joins_of_all_kinds(b: StreamsBuilder) -> None:
    orders = stream(b, "orders")
    users = table(b, "users")
    countries = b.global_table("countries")
    enriched = orders.select_key(to_value).join(users, both).left_join(countries, both, key=to_value)
    enriched.join(stream(b, "payments"), both, window=WINDOW).to("paid")
    enriched.group_by(to_value).windowed_by(SESSIONS).count().to_stream().to("sessions")
    users.join(table(b, "addresses"), both, foreign_key=same).to_stream().to("addressed")


def several_parents(t: Topology) -> None:
    for source, topic in zip(("s1", "s2", "s3"), "abc", strict=True):
        t.add_source(source, topic)
    t.add_processor("p", Forward, "s1", "s2", "s3").add_sink("sink", "out", "p", "s1")


def diamond(t: Topology) -> None:
    t.add_source("source", "in").add_processor("left", Forward, "source").add_processor("right", Forward, "source")
    t.add_processor("bottom", Forward, "left", "right").add_sink("sink", "out", "bottom")


def shared_store(t: Topology) -> None:
    t.add_source("s1", "a").add_source("s2", "b").add_source("s3", "c")
    t.add_processor("p1", Forward, "s1").add_processor("p2", Forward, "s2").add_processor("p3", Forward, "s3")
    t.add_state_store(store("shared"), "p1", "p3").add_sink("sink", "out", "p2")


def connected_later(t: Topology) -> None:
    t.add_source("s1", "a").add_source("s2", "b").add_processor("p1", Forward, "s1").add_processor("p2", Forward, "s2")
    t.add_state_store(store("one"), "p1").add_state_store(store("two"), "p2")
    t.connect("p2", "one")


def other_kinds_of_stores(t: Topology) -> None:
    t.add_source("source", "in").add_processor("p", Forward, "source")
    t.add_state_store(Stores.window("windows", String, String, retention=1000, window_size=1000), "p")
    t.add_state_store(Stores.session("sessions", String, String, retention=1000), "p")


def several_sub_topologies(t: Topology) -> None:
    t.add_source("z", "1").add_source("y", "2").add_source("x", "3")
    t.add_sink("zz", "4", "z").add_sink("xx", "5", "x").add_sink("yy", "6", "y")


def names_with_spaces(t: Topology) -> None:
    t.add_source("the source", "in").add_processor("count & sum", Forward, "the source")
    t.add_sink("the <sink>", "out", "count & sum")


CASES = {
    "process": lambda b: stream(b, "in").process(Forward).to("out"),
    "process named": lambda b: stream(b, "in").process(Forward, name="mine").to("out"),
    "process with stores": process_with_stores,
    "process named with stores": process_named_with_stores,
    "process with a supplied store": lambda b: stream(b, "in").process(WithStores("own")).to("out"),
    "process with two supplied stores named": lambda b: (
        stream(b, "in").process(WithStores("own", "other"), name="mine").to("out")
    ),
    "process values": lambda b: stream(b, "in").process_values(ForwardValue).to("out"),
    "process values named with stores": process_values_named_with_stores,
    "processors that share a store": processors_that_share_a_store,
    "process, then count": lambda b: stream(b, "in").process(Forward).group_by_key().count(),
    "process values, then count": lambda b: stream(b, "in").process_values(ForwardValue).group_by_key().count(),
    "process with a table's store": process_with_a_tables_store,
    "store nobody uses": store_nobody_uses,
    "word count": word_count,
    "everything named": everything_named,
    "wide": wide,
    "through user topics": through_user_topics,
    "joins of all kinds": joins_of_all_kinds,
}

TOPOLOGY_CASES: dict[str, Callable[[Topology], Any]] = {
    "empty": lambda t: None,
    "source only": lambda t: t.add_source("source", "in"),
    "source, processor, sink": lambda t: (
        t.add_source("source", "in").add_processor("p", Forward, "source").add_sink("sink", "out", "p")
    ),
    "source of several topics": lambda t: t.add_source("source", "orders", "payments", "a", "b", "topic-17"),
    "source of a pattern": lambda t: t.add_source("source", re.compile(r"in-\d+")).add_sink("sink", "out", "source"),
    "several parents": several_parents,
    "diamond": diamond,
    "shared store": shared_store,
    "connected later": connected_later,
    "supplied stores": lambda t: t.add_source("source", "in").add_processor(
        "p", WithStores("alpha", "beta", "gamma"), "source"
    ),
    "other kinds of stores": other_kinds_of_stores,
    "sink by record": lambda t: t.add_source("source", "in").add_sink("sink", topic_of_record, "source"),
    "several sub-topologies": several_sub_topologies,
    "names with spaces": names_with_spaces,
}
