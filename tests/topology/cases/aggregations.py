"""Aggregations of streams: plain, windowed, held back, and of several streams together."""

from typing import Any

from headrace import Buffer, CogroupedStream, EmitStrategy, HoppingWindows, StreamsBuilder, Suppressed, UnlimitedWindows
from tests.topology.cases.steps import (
    SESSIONS,
    SLIDING,
    TUMBLING,
    UNNAMED,
    UNNAMED_COUNT,
    both,
    empty,
    fold,
    grouped,
    merge_sessions,
    rekeyed,
    stream,
    table,
    to_value,
    yes,
)


def two_aggregations_of_a_group(b: StreamsBuilder) -> None:
    group = stream(b, "in").group_by(to_value)
    group.count()
    group.reduce(both)


def two_aggregations_of_a_named_group(b: StreamsBuilder) -> None:
    group = stream(b, "in").group_by(to_value, name="shared")
    group.count()
    group.reduce(both)
    group.windowed_by(TUMBLING).count()


def two_groups_of_a_changed_key(b: StreamsBuilder) -> None:
    records = rekeyed(b, "in")
    records.group_by_key().count()
    records.group_by_key().reduce(both)


def tumbling(b: StreamsBuilder) -> Any:
    return grouped(b).windowed_by(TUMBLING)


def sliding(b: StreamsBuilder) -> Any:
    return grouped(b).windowed_by(SLIDING)


def sessions(b: StreamsBuilder) -> Any:
    return grouped(b).windowed_by(SESSIONS)


ON_CLOSE = EmitStrategy.on_window_close()
WINDOW_CLOSES = Suppressed.until_window_closes(Buffer.unbounded())
TIME_LIMIT = Suppressed.until_time_limit(1000, Buffer.max_records(10))
NO_LIMIT = Suppressed.until_time_limit(1000, Buffer.unbounded())


def suppress_then_filter_and_join(b: StreamsBuilder) -> None:
    held = table(b, "a").suppress(NO_LIMIT)
    held.filter(yes).join(table(b, "b"), both).to_stream().to("out")


def stream_joined_with_suppressed(b: StreamsBuilder) -> None:
    held = table(b, "a").suppress(NO_LIMIT)
    stream(b, "s").join(held, both).to("out")


def two(b: StreamsBuilder) -> CogroupedStream[Any, Any]:
    return stream(b, "a").group_by_key().cogroup(fold).cogroup(stream(b, "b").group_by_key(), fold)


def cogroup_of_changed_keys(b: StreamsBuilder) -> None:
    first = rekeyed(b, "a").group_by_key().cogroup(fold)
    first.cogroup(rekeyed(b, "b").group_by_key(name="gb"), fold).aggregate(empty)


def cogroup_of_changed_keys_named(b: StreamsBuilder) -> None:
    first = rekeyed(b, "a").group_by_key(name="ga").cogroup(fold)
    second = first.cogroup(stream(b, "b").group_by(to_value, name="gb"), fold)
    second.cogroup(stream(b, "c").group_by_key(), fold).aggregate(empty, name="together", store="kept")


def cogroup_of_one_changed_key(b: StreamsBuilder) -> None:
    first = stream(b, "a").group_by_key().cogroup(fold)
    first.cogroup(rekeyed(b, "b").group_by_key(), fold).windowed_by(TUMBLING).aggregate(empty)


CASES = {
    "count": lambda b: grouped(b).count().to_stream().to("out"),
    "count named": lambda b: grouped(b).count(name="counted"),
    "count with store": lambda b: grouped(b).count(store="counts"),
    "count named with store": lambda b: grouped(b).count(name="counted", store="counts"),
    "count with unnamed store": lambda b: grouped(b).count(store=UNNAMED_COUNT).to_stream().to("out"),
    "reduce": lambda b: grouped(b).reduce(both).to_stream().to("out"),
    "reduce with store": lambda b: grouped(b).reduce(both, store="kept"),
    "reduce named with store": lambda b: grouped(b).reduce(both, name="reduced", store="kept"),
    "reduce with unnamed store": lambda b: grouped(b).reduce(both, store=UNNAMED),
    "aggregate": lambda b: grouped(b).aggregate(empty, fold).to_stream().to("out"),
    "aggregate with store": lambda b: grouped(b).aggregate(empty, fold, store="kept"),
    "aggregate named with store": lambda b: grouped(b).aggregate(empty, fold, name="folded", store="kept"),
    "aggregate with unnamed store": lambda b: grouped(b).aggregate(empty, fold, store=UNNAMED),
    "group by": lambda b: stream(b, "in").group_by(to_value).count().to_stream().to("out"),
    "group by named": lambda b: stream(b, "in").group_by(to_value, name="by-value").count().to_stream().to("out"),
    "group by with store": lambda b: stream(b, "in").group_by(to_value).count(store="counts"),
    "group by named with store": lambda b: stream(b, "in").group_by(to_value, name="by-value").count(store="counts"),
    "group by with unnamed store": lambda b: stream(b, "in").group_by(to_value).count(store=UNNAMED_COUNT),
    "group by, reduce": lambda b: stream(b, "in").group_by(to_value).reduce(both),
    "group by, aggregate": lambda b: stream(b, "in").group_by(to_value).aggregate(empty, fold),
    "group by key of a changed key": lambda b: rekeyed(b, "in").group_by_key().count(),
    "group by key of a changed key named": lambda b: rekeyed(b, "in").group_by_key(name="grouped").count(),
    "group by key named without need": lambda b: stream(b, "in").group_by_key(name="grouped").count(),
    "two aggregations of a group": two_aggregations_of_a_group,
    "two aggregations of a named group": two_aggregations_of_a_named_group,
    "two groups of a changed key": two_groups_of_a_changed_key,
    "tumbling count": lambda b: tumbling(b).count().to_stream().to("out"),
    "tumbling count with store": lambda b: tumbling(b).count(store="counts"),
    "tumbling count named with store": lambda b: tumbling(b).count(name="counted", store="counts"),
    "tumbling count named": lambda b: tumbling(b).count(name="counted"),
    "tumbling count with unnamed store": lambda b: tumbling(b).count(store=UNNAMED_COUNT),
    "tumbling reduce": lambda b: tumbling(b).reduce(both),
    "tumbling reduce named": lambda b: tumbling(b).reduce(both, name="reduced"),
    "tumbling aggregate": lambda b: tumbling(b).aggregate(empty, fold),
    "tumbling aggregate named": lambda b: tumbling(b).aggregate(empty, fold, name="folded"),
    "tumbling aggregate with unnamed store": lambda b: tumbling(b).aggregate(empty, fold, store=UNNAMED),
    "hopping count": lambda b: grouped(b).windowed_by(HoppingWindows(1000, 100)).count(),
    "unlimited count": lambda b: grouped(b).windowed_by(UnlimitedWindows()).count(),
    "sliding count": lambda b: sliding(b).count(),
    "sliding count with unnamed store": lambda b: sliding(b).count(store=UNNAMED_COUNT),
    "sliding reduce": lambda b: sliding(b).reduce(both),
    "sliding aggregate named with store": lambda b: sliding(b).aggregate(empty, fold, name="folded", store="kept"),
    "session count": lambda b: sessions(b).count(),
    "session count with store": lambda b: sessions(b).count(store="counts"),
    "session count named": lambda b: sessions(b).count(name="counted"),
    "session count with unnamed store": lambda b: sessions(b).count(store=UNNAMED_COUNT),
    "session reduce": lambda b: sessions(b).reduce(both),
    "session aggregate": lambda b: sessions(b).aggregate(empty, fold, merge_sessions),
    "session aggregate named": lambda b: sessions(b).aggregate(empty, fold, merge_sessions, name="folded"),
    "group by, tumbling count": lambda b: stream(b, "in").group_by(to_value).windowed_by(TUMBLING).count(),
    "group by named, session count with store": lambda b: (
        stream(b, "in").group_by(to_value, name="g").windowed_by(SESSIONS).count(store="counts")
    ),
    "emit on close, tumbling": lambda b: tumbling(b).emit_strategy(ON_CLOSE).count().to_stream().to("out"),
    "emit on close, sliding": lambda b: sliding(b).emit_strategy(ON_CLOSE).count(),
    "emit on close, session named": lambda b: sessions(b).emit_strategy(ON_CLOSE).count(name="counted"),
    "emit on update": lambda b: tumbling(b).emit_strategy(EmitStrategy.on_window_update()).count(),
    "suppress until window closes": lambda b: tumbling(b).count().suppress(WINDOW_CLOSES).to_stream().to("out"),
    "suppress until window closes named": lambda b: (
        tumbling(b).count().suppress(WINDOW_CLOSES, name="held").to_stream().to("out")
    ),
    "suppress until time limit": lambda b: table(b, "in").suppress(TIME_LIMIT).to_stream().to("out"),
    "suppress until time limit named": lambda b: table(b, "in").suppress(TIME_LIMIT, name="held").to_stream().to("out"),
    "suppress, then filter and join": suppress_then_filter_and_join,
    "stream joined with suppressed": stream_joined_with_suppressed,
    "cogroup": lambda b: two(b).aggregate(empty).to_stream().to("out"),
    "cogroup of one": lambda b: grouped(b).cogroup(fold).aggregate(empty),
    "cogroup named": lambda b: two(b).aggregate(empty, name="together"),
    "cogroup with store": lambda b: two(b).aggregate(empty, store="kept"),
    "cogroup named with store": lambda b: two(b).aggregate(empty, name="together", store="kept"),
    "cogroup with unnamed store": lambda b: two(b).aggregate(empty, store=UNNAMED),
    "cogroup tumbling": lambda b: two(b).windowed_by(TUMBLING).aggregate(empty).to_stream().to("out"),
    "cogroup sliding": lambda b: two(b).windowed_by(SLIDING).aggregate(empty),
    "cogroup sessions": lambda b: two(b).windowed_by(SESSIONS).aggregate(empty, merger=merge_sessions),
    "cogroup sessions named with store": lambda b: (
        two(b).windowed_by(SESSIONS).aggregate(empty, merger=merge_sessions, name="together", store="kept")
    ),
    "cogroup of changed keys": cogroup_of_changed_keys,
    "cogroup of changed keys named": cogroup_of_changed_keys_named,
    "cogroup of one changed key": cogroup_of_one_changed_key,
}
