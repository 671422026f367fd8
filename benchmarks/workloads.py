"""The work W1 to W5, each as a topology and as a script that does the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace import StreamsBuilder, Topology, TumblingWindows, serdes
from headrace.brokers import Broker, TopicRecord

Produced = tuple[bytes | None, bytes, int]
START = 1_700_000_000_000
WINDOW, GRACE = 10_000, 2_000
CHUNK = 500_000
"""How many records the script processes before it writes: as many as a batch of the engine."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True)
class Workload:
    """One of W1 to W5: a topology, and a script that does the same."""

    name: str
    title: str
    build: Callable[..., Topology]
    """Takes the names of the topics to read and to write; the defaults are "in" and "out"."""
    script: Callable[[Iterator[TopicRecord], Write], None]
    goal: float
    """The share of the script's rate that the engine should reach."""
    keys: int = 5_000
    prepare: Callable[[Broker], None] = lambda broker: None


Write = Callable[[list[Produced]], None]


def make_records(count: int, keys: int, seed: int = 7) -> list[Produced]:
    """Make records of about 60 bytes, a millisecond apart, 1 % of them late by up to 2 s."""
    rng = random.Random(seed)
    choose, number = rng.random, rng.randrange
    made: list[Produced] = []
    for index in range(count):
        key = index if keys >= count else number(keys)
        late = number(GRACE) if choose() < 0.01 else 0
        value = b'{"user":"u%d","symbol":"S%02d","price":%d.5,"size":%d}' % (
            number(1000),
            number(50),
            number(900),
            number(99),
        )
        made.append((b"k%07d" % key, value, START + max(0, index - late)))
    return made


# -- W1: parse, filter, map -----------------------------------------------------------------------------------------


def parse(source: str = "in", sink: str = "out") -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(source, key_serde=serdes.String, value_serde=serdes.Json)
        .filter(lambda key, trade: trade["price"] > 450)
        .map_values(lambda trade: {"symbol": trade["symbol"], "value": trade["price"] * trade["size"]})
        .to(sink, key_serde=serdes.String, value_serde=serdes.Json)
    )
    return builder.build()


def parse_script(records: Iterator[TopicRecord], write: Write) -> None:
    out: list[Produced] = []
    for record in records:
        trade = _decode(record.value or b"")
        if trade["price"] > 450:
            value = _encode({"symbol": trade["symbol"], "value": trade["price"] * trade["size"]})
            out.append((record.key, value, record.timestamp))
            if len(out) >= CHUNK:
                write(out)
                out = []
    write(out)


# -- W2 and W3: count per key ---------------------------------------------------------------------------------------


def count(source: str = "in", sink: str = "out") -> Topology:
    builder = StreamsBuilder()
    counts = (
        builder.stream(source, key_serde=serdes.String, value_serde=serdes.Json).group_by_key().count(store="counts")
    )
    counts.to_stream().to(sink, key_serde=serdes.String, value_serde=serdes.Long)
    return builder.build()


def count_script(records: Iterator[TopicRecord], write: Write) -> None:
    counts: dict[str, int] = {}
    changed: dict[str, int] = {}
    for number, record in enumerate(records, 1):
        key = (record.key or b"").decode()
        _decode(record.value or b"")
        counts[key] = counts.get(key, 0) + 1
        changed[key] = record.timestamp
        if number % CHUNK == 0:
            write([(key.encode(), counts[key].to_bytes(8, "big"), time) for key, time in changed.items()])
            changed = {}
    write([(key.encode(), counts[key].to_bytes(8, "big"), time) for key, time in changed.items()])


# -- W4: statistics per symbol and window ---------------------------------------------------------------------------


def _add(key: str, price: float, statistics: Any) -> Any:
    if statistics is None:
        return [1, price, price, price]
    number, total, low, high = statistics
    return [number + 1, total + price, min(low, price), max(high, price)]


def statistics(source: str = "in", sink: str = "out") -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(source, key_serde=serdes.String, value_serde=serdes.Json)
        .map(lambda key, trade: (trade["symbol"], trade["price"]))
        .group_by_key(key_serde=serdes.String, value_serde=serdes.Double)
        .windowed_by(TumblingWindows(WINDOW, grace=GRACE))
        .aggregate(lambda: None, _add, store="statistics")
        .to_stream()
        .to(sink, key_serde=serdes.Windowed(serdes.String, WINDOW), value_serde=serdes.Json)
    )
    return builder.build()


def statistics_script(records: Iterator[TopicRecord], write: Write) -> None:
    windows: dict[tuple[str, int], Any] = {}
    changed: dict[tuple[str, int], int] = {}

    def results() -> list[Produced]:
        return [
            (symbol.encode() + start.to_bytes(8, "big"), _encode(windows[symbol, start]), time)
            for (symbol, start), time in changed.items()
        ]

    for number, record in enumerate(records, 1):
        trade = _decode(record.value or b"")
        place = (trade["symbol"], record.timestamp // WINDOW * WINDOW)
        windows[place] = _add("", trade["price"], windows.get(place))
        changed[place] = record.timestamp
        if number % CHUNK == 0:
            write(results())
            changed = {}
    write(results())


# -- W5: enrichment from a table ------------------------------------------------------------------------------------


def enrich(source: str = "in", sink: str = "out") -> Topology:
    builder = StreamsBuilder()
    users = builder.global_table("users", key_serde=serdes.String, value_serde=serdes.Json)
    (
        builder.stream(source, key_serde=serdes.String, value_serde=serdes.Json)
        .join(users, _with_user, key=lambda key, trade: trade["user"])
        .to(sink, key_serde=serdes.String, value_serde=serdes.Json)
    )
    return builder.build()


def _with_user(trade: Any, user: Any) -> Any:
    return {"symbol": trade["symbol"], "size": trade["size"], "city": user["city"]}


def make_users(broker: Broker, topic: str = "users", partitions: int = 1) -> None:
    rows = [
        (b"u%d" % number, b'{"name":"User %d","city":"City %d"}' % (number, number % 40), 1) for number in range(1000)
    ]
    broker.create_topic(topic, partitions)
    broker.produce(topic, rows)


def enrich_script(records: Iterator[TopicRecord], write: Write) -> None:
    users = {f"u{number}": {"name": f"User {number}", "city": f"City {number % 40}"} for number in range(1000)}
    out: list[Produced] = []
    for record in records:
        trade = _decode(record.value or b"")
        out.append((record.key, _encode(_with_user(trade, users[trade["user"]])), record.timestamp))
        if len(out) >= CHUNK:
            write(out)
            out = []
    write(out)


WORKLOADS = {
    work.name: work
    for work in (
        Workload("W1", "parse, filter, map", parse, parse_script, 0.8),
        Workload("W2", "count, 5,000 keys", count, count_script, 0.6),
        Workload("W3", "count, every key distinct", count, count_script, 0.5, keys=1 << 60),
        Workload("W4", "windowed statistics per symbol, repartitioned", statistics, statistics_script, 0.6),
        Workload("W5", "enrichment from a table of 1,000 rows", enrich, enrich_script, 0.8, prepare=make_users),
    )
}
