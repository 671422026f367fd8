"""The topologies of the benchmarks. Each reads `left` (joins also read `right`) and writes `out`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import (
    Buffer,
    EmitStrategy,
    GroupedStream,
    HoppingWindows,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    Topology,
    TumblingWindows,
)
from headrace.serdes import String

Build = Callable[[StreamsBuilder], None]


def stream(builder: StreamsBuilder, topic: str = "left") -> KStream[Any, Any]:
    return builder.stream(topic, key_serde=String, value_serde=String)


def table(builder: StreamsBuilder, topic: str, store: Materialized | None = None) -> KTable[Any, Any]:
    return builder.table(topic, key_serde=String, value_serde=String, store=store)


def grouped(builder: StreamsBuilder) -> GroupedStream[Any, Any]:
    return stream(builder).group_by_key()


def filter_map(builder: StreamsBuilder) -> None:
    kept = stream(builder).filter(lambda key, value: value != "none")
    kept.map_values(lambda value: value + "!").to("out", value_serde=String)


def count(builder: StreamsBuilder) -> None:
    grouped(builder).count(store="counts").to_stream().to("out")


def tumbling(builder: StreamsBuilder) -> None:
    grouped(builder).windowed_by(TumblingWindows(10_000)).count(store="counts").to_stream().to("out")


def hopping(builder: StreamsBuilder) -> None:
    grouped(builder).windowed_by(HoppingWindows(1000, 200)).count().to_stream().to("out")


def sliding(builder: StreamsBuilder) -> None:
    grouped(builder).windowed_by(SlidingWindows(10)).count().to_stream().to("out")


def session(builder: StreamsBuilder) -> None:
    grouped(builder).windowed_by(SessionWindows(10)).count().to_stream().to("out")


def endless_session(builder: StreamsBuilder) -> None:
    grouped(builder).windowed_by(SessionWindows(1 << 40)).count().to_stream().to("out")


def tumbling_on_close(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(TumblingWindows(1000)).emit_strategy(EmitStrategy.on_window_close())
    windowed.count().to_stream().to("out")


def session_on_close(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows(100)).emit_strategy(EmitStrategy.on_window_close())
    windowed.count().to_stream().to("out")


def suppressed(builder: StreamsBuilder) -> None:
    counts = grouped(builder).windowed_by(TumblingWindows(10_000)).count()
    final = counts.suppress(Suppressed.until_window_closes(Buffer.unbounded()))
    final.to_stream(lambda key, value: key.key).to("out", key_serde=String)


def suppressed_by_size(builder: StreamsBuilder) -> None:
    limit = Suppressed.until_time_limit(1 << 40, Buffer.max_records(1000))
    table(builder, "left").suppress(limit).to_stream().to("out")


def joined(left: Any, right: Any) -> str:
    return f"{left}{right}"


def stream_join(builder: StreamsBuilder) -> None:
    left, right = stream(builder), stream(builder, "right")
    left.join(right, joined, window=JoinWindows(100), key_serde=String).to("out", value_serde=String)


def stream_left_join(builder: StreamsBuilder) -> None:
    left, right = stream(builder), stream(builder, "right")
    left.left_join(right, joined, window=JoinWindows(5), key_serde=String).to("out", value_serde=String)


def stream_outer_join(builder: StreamsBuilder) -> None:
    left, right = stream(builder), stream(builder, "right")
    left.outer_join(right, joined, window=JoinWindows(5), key_serde=String).to("out", value_serde=String)


def stream_table_join(builder: StreamsBuilder) -> None:
    stream(builder).join(table(builder, "right"), joined).to("out", value_serde=String)


def versioned_join(builder: StreamsBuilder) -> None:
    versions = table(builder, "right", Materialized("rows", history_retention=100_000))
    stream(builder).join(versions, joined).to("out", value_serde=String)


def table_join(builder: StreamsBuilder) -> None:
    table(builder, "left").join(table(builder, "right"), joined).to_stream().to("out", value_serde=String)


WORK: dict[str, Build] = {
    "filter+map_values": filter_map,
    "count": count,
    "tumbling count": tumbling,
    "tumbling count + suppress": suppressed,
    "session count": session,
    "stream-stream join": stream_join,
    "table-table join": table_join,
}
"""The topologies of `benchmarks.task` and `benchmarks.driver`."""

MORE_WORK: dict[str, Build] = {
    "hopping count": hopping,
    "sliding count": sliding,
    "endless session": endless_session,
    "tumbling on close": tumbling_on_close,
    "session on close": session_on_close,
    "suppress by size": suppressed_by_size,
    "stream left join": stream_left_join,
    "stream outer join": stream_outer_join,
    "stream-table join": stream_table_join,
    "versioned join": versioned_join,
}
"""More topologies whose cost per record must not grow with the length of a batch."""


def topology(build: Build) -> Topology:
    builder = StreamsBuilder()
    build(builder)
    return builder.build()


def topics_of(name: str) -> list[str]:
    return ["left", "right"] if "join" in name else ["left"]
