"""Kafka Streams and Headrace on the same topics: each reads what the other one writes, and they write the same."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from uuid import UUID

import pytest

from headrace import Materialized, SessionWindows, StreamsBuilder, Topology, TumblingWindows, serdes
from headrace.brokers import connect
from headrace.dev.kafka_broker import DevBroker
from tests.kafka.naming import unique
from tests.kafka.neighbour import Neighbour, build, console_consumer, is_built, what_is_missing
from tests.kafka.side_by_side import PARTITIONS, Both
from tests.kafka.transactions import has_member, wait_until
from tests.registry import SchemaRegistry
from tests.spark.applications import caught_up, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

SIZE, GAP, RETENTION = 1000, 300, 60_000


@pytest.fixture(scope="module")
def both(kafka: DevBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Have Kafka Streams and Headrace on a broker."""
    if not is_built() and (missing := what_is_missing()):
        pytest.skip(f"to build a Kafka Streams application takes {missing}")
    build()
    folder = tmp_path_factory.mktemp("neighbours")
    with connect(kafka.address) as broker, Neighbour(kafka.address, folder) as java:
        yield Both(broker, java, kafka.address, folder)


# -- primitive serdes --------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[serdes.Serde[Any], list[Any]]] = {
    "string": (serdes.String, ["", "tea", "grüße", "お茶"]),
    "integer": (serdes.Integer, [0, -1, 2**31 - 1, -(2**31)]),
    "long": (serdes.Long, [0, -1, 2**63 - 1, -(2**63)]),
    "short": (serdes.Short, [0, -1, 2**15 - 1, -(2**15)]),
    "float": (serdes.Float, [0.0, -0.5, 2.0**24]),
    "double": (serdes.Double, [0.0, 0.1, -1.5e300, 5e-324]),
    "boolean": (serdes.Boolean, [True, False]),
    "uuid": (serdes.UUID, ["00000000-0000-0000-0000-000000000000", "12345678-9abc-def0-fedc-ba9876543210"]),
    "bytes": (serdes.Bytes, ["", "00ff", "0102030405"]),
    "list": (serdes.List(serdes.Integer), [[], [1, None, -3]]),
}
"""Kinds with their serde here, and examples as JSON has them."""


def parsed(kind: str, text: str) -> Any:
    value = json.loads(text)
    if kind == "uuid":
        return UUID(value)
    return bytes.fromhex(value) if kind == "bytes" else value


def as_text(value: Any) -> str:
    return json.dumps(value.hex() if isinstance(value, bytes) else str(value) if isinstance(value, UUID) else value)


def primitives(texts: str, ours: str, theirs: str, read: str) -> Topology:
    """Write each text as key and value of its kind, and read what Kafka Streams has made of the same ones."""
    builder = StreamsBuilder()
    stream = builder.stream(texts, value_serde=serdes.String)
    for kind, (serde, _) in KINDS.items():
        (
            stream.filter(lambda key, value, kind=kind: key == kind)  # type: ignore[misc]
            .map(lambda key, value: (parsed(key, value), parsed(key, value)))
            .to(f"{ours}-{kind}", key_serde=serde, value_serde=serde)
        )
        (
            builder.stream(f"{theirs}-{kind}", key_serde=serde, value_serde=serde)
            .map(lambda key, value, kind=kind: (kind, f"[{as_text(key)}, {as_text(value)}]"))  # type: ignore[misc]
            .to(read, value_serde=serdes.String)
        )
    return builder.build()


def test_primitives_are_the_same_bytes_in_the_same_partitions_and_read_both_ways(both: Both) -> None:
    texts, read, ours, theirs = both.topic("texts"), both.topic("read"), unique("ours"), unique("theirs")
    for topic in (ours, theirs):
        for kind in KINDS:
            both.broker.create_topic(f"{topic}-{kind}", PARTITIONS)
    examples = [(kind, value) for kind, (_, values) in KINDS.items() for value in values]
    both.produce(texts, *((kind, json.dumps(value), 1000 + at) for at, (kind, value) in enumerate(examples)))
    expected: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for at, (kind, value) in enumerate(examples):
        expected[kind].append((value, value, 1000 + at))

    both.java.run("typed", unique("java-typed"), **{"in": texts, "out": theirs, "kinds": list(KINDS)})
    for kind in KINDS:
        both.settled(f"{theirs}-{kind}")
    both.headrace(primitives(texts, ours, theirs, read), unique("primitives")).run(until_caught_up=True)

    for kind in KINDS:
        assert both.rows(f"{ours}-{kind}") == both.rows(f"{theirs}-{kind}"), kind
    seen: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for record in both.settled(read):
        seen[(record.key or b"").decode()].append((*json.loads(record.value or b""), record.timestamp))
    for kind in KINDS:
        assert sorted(seen[kind], key=str) == sorted(expected[kind], key=str), kind
    told = both.texts(*((f"{ours}-{kind}", kind, kind) for kind in KINDS))
    for kind in KINDS:
        assert sorted(told[f"{ours}-{kind}"], key=str) == sorted(expected[kind], key=str), kind


# -- counts, and what the console consumer shows -----------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """The same words, counted by both."""

    words: str
    application: str
    ours: str
    theirs: str
    changelog: str
    their_changelog: str


def counts(words: str, out: str) -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream(words, value_serde=serdes.String).group_by(
        lambda key, word: word, value_serde=serdes.String
    )
    grouped.count(store="counts").to_stream().to(out, value_serde=serdes.Long)
    return builder.build()


WORDS = [(f"k{at % 7}", f"word-{at * 7 % 11}", 1000 + at) for at in range(60)]
COUNTS = {word: sum(1 for _, other, _ in WORDS if other == word) for _, word, _ in WORDS}


@pytest.fixture(scope="module")
def counted(both: Both) -> Counted:
    """Let both count the same words."""
    words, ours, theirs = both.topic("words"), both.topic("ours"), both.topic("theirs")
    both.produce(words, *WORDS)
    application, neighbour = unique("counts"), unique("java-counts")
    both.java.run("counts", neighbour, **{"in": words, "out": theirs})
    both.headrace(counts(words, ours), application).run(until_caught_up=True)
    names = (f"{app}-counts-changelog" for app in (application, neighbour))
    return Counted(words, application, ours, theirs, *names)


def test_counts_are_the_same_in_the_same_partitions(both: Both, counted: Counted) -> None:
    assert both.live(counted.ours) == both.live(counted.theirs)
    assert {partition for partition, *_ in both.rows(counted.ours)} == set(range(PARTITIONS))


def test_changelogs_hold_the_same(both: Both, counted: Counted) -> None:
    assert both.live(counted.changelog) == both.live(counted.their_changelog)
    topics = both.broker.topics()
    ours, theirs = topics[counted.changelog], topics[counted.their_changelog]
    assert (ours.partitions, ours.compact) == (theirs.partitions, theirs.compact)
    assert (ours.retention_ms, theirs.retention_ms) == (None, None)


@pytest.mark.parametrize("topic", ["ours", "changelog"])
def test_the_console_consumer_reads_output_and_changelog(both: Both, counted: Counted, topic: str) -> None:
    name = getattr(counted, topic)
    rows = both.rows(name)

    lines = console_consumer(
        both.address,
        name,
        len(rows),
        print_timestamp="true",
        print_partition="true",
        print_key="true",
        value_deserializer="org.apache.kafka.common.serialization.LongDeserializer",
    )

    expected = [
        f"CreateTime:{at}\tPartition:{partition}\t{(key or b'').decode()}\t{int.from_bytes(value or b'')}"
        for partition, key, value, at in rows
    ]
    assert lines == sorted(expected)
    assert {key: max(int(n) for _, _, k, n in map(str.split, lines) if k == key) for key in COUNTS} == COUNTS


def test_java_goes_on_with_the_state_and_the_positions_of_headrace(both: Both, counted: Counted) -> None:
    # The last test of what was counted: it counts on.
    both.settled(counted.changelog)
    both.produce(counted.words, *((key, word, at + 1000) for key, word, at in WORDS))
    wait_until(lambda: not has_member(both.address, counted.application), "Headrace is still in the group")

    both.java.run("counts", counted.application, **{"in": counted.words, "out": counted.ours})

    found = {key: int.from_bytes(value) for (_, key), (value, _) in both.live(counted.ours).items()}
    assert found == {word.encode(): 2 * count for word, count in COUNTS.items()}
    assert len(both.rows(counted.ours)) == 2 * len(WORDS)


# -- windows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Windows:
    """The same records, counted in windows and sessions by both."""

    application: str
    neighbour: str
    windows: str
    sessions: str
    their_windows: str
    their_sessions: str
    read: str


LATELY = (int(time.time()) // 60 - 2) * 60_000
"""A while ago: the broker deletes from changelogs what is older than the retention of windows or versions."""
VISITS = [
    # Some are out of order, some too late, and some make one session out of two.
    (f"visitor-{at % 5}", "", LATELY + 1000 + at * 130 - (at % 3) * 400 + (at // 20) * 700)
    for at in range(60)
]


def windows(visits: str, topics: Windows) -> Topology:
    """Count visits, and read what Kafka Streams has counted."""
    builder = StreamsBuilder()
    windowed, session = serdes.Windowed(serdes.String, SIZE), serdes.SessionWindowed(serdes.String)
    grouped = builder.stream(visits, value_serde=serdes.String).group_by_key()
    in_windows = grouped.windowed_by(TumblingWindows(SIZE)).count(store=Materialized("windows", retention=RETENTION))
    in_windows.to_stream().to(topics.windows, key_serde=windowed, value_serde=serdes.Long)
    in_sessions = grouped.windowed_by(SessionWindows(GAP)).count(store=Materialized("sessions", retention=RETENTION))
    in_sessions.to_stream().to(topics.sessions, key_serde=session, value_serde=serdes.Long)
    for topic, serde in ((topics.their_windows, windowed), (topics.their_sessions, session)):
        builder.stream(topic, key_serde=serde, value_serde=serdes.Long).map(
            lambda key, count, topic=topic: (topic, json.dumps([[key.key, *key.window], count]))  # type: ignore[misc]
        ).to(topics.read, value_serde=serdes.String)
    return builder.build()


@pytest.fixture(scope="module")
def windowed(both: Both) -> Windows:
    """Let both count the same visits."""
    visits = both.topic("visits")
    both.produce(visits, *VISITS)
    names = [both.topic(name) for name in ("windows", "sessions", "their-windows", "their-sessions", "read")]
    topics = Windows(unique("windows"), unique("java-windows"), *names)
    out = {"windows": topics.their_windows, "sessions": topics.their_sessions}
    spans = {"size": SIZE, "gap": GAP, "retention": RETENTION}
    both.java.run("windows", topics.neighbour, **{"in": visits, **spans, **out})
    for topic in out.values():
        both.settled(topic)
    both.headrace(windows(visits, topics), topics.application).run(until_caught_up=True)
    return topics


def plain(both: Both, topic: str, serde: serdes.Serde[Any]) -> list[Any]:
    """Return counts by window in the form that `texts` has."""
    return [
        ([key.key, *key.window], serdes.Long.deserialize(topic, record.value), record.timestamp)
        for record in both.settled(topic)
        if (key := serde.deserialize(topic, record.key)) is not None
    ]


def test_windowed_counts_are_the_same_bytes_in_the_same_partitions(both: Both, windowed: Windows) -> None:
    assert both.rows(windowed.windows) == both.rows(windowed.their_windows)
    assert both.rows(windowed.sessions) == both.rows(windowed.their_sessions)
    assert any(value is None for _, _, value, _ in both.rows(windowed.sessions))


def test_headrace_reads_the_windows_of_java(both: Both, windowed: Windows) -> None:
    seen: dict[str, list[Any]] = {windowed.their_windows: [], windowed.their_sessions: []}
    for record in both.settled(windowed.read):
        seen[(record.key or b"").decode()].append((*json.loads(record.value or b""), record.timestamp))

    told = both.texts(
        (windowed.their_windows, f"windowed:{SIZE}", "long"), (windowed.their_sessions, "session", "long")
    )
    for topic in seen:
        assert sorted(seen[topic], key=str) == sorted(told[topic], key=str)


def test_java_reads_the_windows_of_headrace_and_their_changelogs(both: Both, windowed: Windows) -> None:
    changelogs = [f"{windowed.application}-{store}-changelog" for store in ("windows", "sessions")]

    told = both.texts(
        (windowed.windows, f"windowed:{SIZE}", "long"),
        (windowed.sessions, "session", "long"),
        (changelogs[0], f"windowed-in-changelog:{SIZE}", "long"),
        (changelogs[1], "session", "long"),
    )

    for topic, changelog, serde in (
        (windowed.windows, changelogs[0], serdes.Windowed(serdes.String, SIZE)),
        (windowed.sessions, changelogs[1], serdes.SessionWindowed(serdes.String)),
    ):
        assert sorted(told[topic], key=str) == sorted(plain(both, topic, serde), key=str)
        assert last(told[changelog]) == last(told[topic])


def last(rows: list[Any]) -> dict[str, int]:
    """Return the last count of each window, unless it was deleted."""
    found = {str(key): count for key, count, _ in rows}
    return {key: count for key, count in found.items() if count is not None}


@pytest.mark.parametrize("store", ["windows", "sessions"])
def test_changelogs_of_windows_hold_the_same(both: Both, windowed: Windows, store: str) -> None:
    ours, theirs = (f"{app}-{store}-changelog" for app in (windowed.application, windowed.neighbour))

    live, their_live = both.live(ours), both.live(theirs)
    assert {key: value for key, (value, _) in live.items()} == {key: value for key, (value, _) in their_live.items()}
    if store == "windows":
        assert live == their_live
    else:  # a session is logged at its end; by Kafka Streams at the time of the record that came last
        assert [at for _, at in live.values()] == [int.from_bytes((key or b"")[-16:-8]) for _, key in live]
    topics = both.broker.topics()
    assert (topics[ours].partitions, topics[ours].compact) == (topics[theirs].partitions, topics[theirs].compact)
    assert topics[ours].retention_ms == topics[theirs].retention_ms


def test_the_console_consumer_reads_windowed_keys(both: Both, windowed: Windows) -> None:
    rows = both.settled(windowed.windows)

    lines = console_consumer(
        both.address,
        windowed.windows,
        len(rows),
        print_key="true",
        key_deserializer="org.apache.kafka.streams.kstream.TimeWindowedDeserializer",
        key_deserializer_window_size_ms=str(SIZE),
        key_deserializer_windowed_inner_deserializer_class="org.apache.kafka.common.serialization.Serdes$StringSerde",
        value_deserializer="org.apache.kafka.common.serialization.LongDeserializer",
    )

    windowed_keys = plain(both, windowed.windows, serdes.Windowed(serdes.String, SIZE))
    assert lines == sorted(f"[{key}@{start}/{end}]\t{count}" for (key, start, end), count, _ in windowed_keys)


# -- a join with a table of Java's -------------------------------------------------------------------------------------


def join(orders: str, table: str, out: str, store: Materialized | None = None) -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(orders, value_serde=serdes.String)
        .left_join(
            builder.table(table, value_serde=serdes.String, store=store),
            lambda order, customer: f"{order} {'null' if customer is None else customer}",
        )
        .to(out, value_serde=serdes.String)
    )
    return builder.build()


def test_a_stream_is_joined_with_a_table_that_java_writes_meanwhile(both: Both) -> None:
    names, table, orders = both.topic("names"), both.topic("table"), both.topic("orders")
    ours, theirs = both.topic("ours"), both.topic("theirs")
    customers = [f"customer-{number}" for number in range(20)]

    with both.headrace(join(orders, table, ours), unique("join")) as app:
        app.start()
        both.produce(names, *((customer, f"name of {customer}", 1000) for customer in customers))
        both.produce(names, (customers[4], None, 2000), (customers[7], "renamed", 2000))
        both.java.run("upper", unique("java-upper"), **{"in": names, "out": table})
        assert {partition for partition, *_ in both.rows(table)} == set(range(PARTITIONS))
        wait_for(lambda: caught_up(app), "Headrace to have read the table of Java")
        both.produce(orders, *((customer, f"order of {customer}", 3000) for customer in [*customers, "nobody"]))
        wait_for(lambda: len(list(both.broker.records(ours))) > len(customers), "what is joined", every=0.1)
    both.java.run("join", unique("java-join"), **{"in": orders, "table": table, "out": theirs})

    assert sorted(both.rows(ours)) == sorted(both.rows(theirs))
    joined = {(key or b"").decode(): (value or b"").decode() for _, key, value, _ in both.rows(ours)}
    assert joined["customer-3"] == "order of customer-3 NAME OF CUSTOMER-3"
    assert joined["customer-7"] == "order of customer-7 RENAMED"
    assert [key for key, value in joined.items() if value.endswith(" null")] == ["customer-4", "nobody"]


# -- versions of a table -----------------------------------------------------------------------------------------------

HISTORY = 10_000
PRICES: list[tuple[str, str | None, int]] = [
    ("tea", "3", 11_000),
    ("tea", "4", 15_000),
    ("tea", "3.5", 13_000),
    ("cake", "5", 12_000),
    ("cake", None, 14_000),
    ("cake", "6", 18_000),
    ("bun", "1", 12_000),
    ("bun", None, 16_000),
    ("tea", "5", 20_000),
    ("tea", "too old", 9_000),
]


def test_java_goes_on_with_the_versions_of_headrace(both: Both) -> None:
    table, orders, out = both.topic("prices"), both.topic("orders"), both.topic("priced")
    their_out = both.topic("their-priced")
    application, neighbour = unique("versions"), unique("java-versions")
    java: dict[str, Any] = {"table": table, "in": orders, "history": HISTORY}
    both.produce(table, *((item, price, LATELY + at) for item, price, at in PRICES))
    both.java.run("versions", neighbour, out=their_out, **java)
    store = Materialized("versions", history_retention=HISTORY)
    both.headrace(join(orders, table, out, store), application).run(until_caught_up=True)

    ours, theirs = (f"{app}-versions-changelog" for app in (application, neighbour))
    both.settled(ours)
    by_key = itemgetter(0, 1)
    assert sorted(both.rows(ours), key=by_key) == sorted(both.rows(theirs), key=by_key)
    infos = both.broker.topics()
    assert infos[ours].min_compaction_lag_ms == infos[theirs].min_compaction_lag_ms == HISTORY + 86_400_000
    assert (infos[ours].compact, infos[ours].retention_ms) == (True, None)

    both.produce(orders, *(("tea", "tea", LATELY + at) for at in (10_999, 11_000, 13_500, 15_000, 20_500)))
    both.produce(
        orders, *((item, item, LATELY + at) for item in ("cake", "bun") for at in (13_999, 14_000, 16_000, 19_000))
    )
    wait_until(lambda: not has_member(both.address, application), "Headrace is still in the group")
    both.java.run("versions", application, out=out, **java)

    found = [((value or b"").decode(), at - LATELY) for _, _, value, at in both.rows(out)]
    assert sorted(found) == [
        ("bun 1", 13_999),
        ("bun 1", 14_000),
        ("bun null", 16_000),
        ("bun null", 19_000),
        ("cake 5", 13_999),
        ("cake 6", 19_000),
        ("cake null", 14_000),
        ("cake null", 16_000),
        ("tea 3", 11_000),
        ("tea 3.5", 13_500),
        ("tea 4", 15_000),
        ("tea 5", 20_500),
        ("tea null", 10_999),
    ]


# -- Avro and a schema registry ----------------------------------------------------------------------------------------

ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "item", "type": "string"}, {"name": "count", "type": "long"}],
}
NEWER_ORDER = {
    **ORDER,
    "fields": [
        {"name": "price", "type": "long", "default": 2},
        {"name": "count", "type": "long"},
        {"name": "item", "type": "string"},
    ],
}
REVENUE = {
    "type": "record",
    "name": "shop.Revenue",
    "fields": [{"name": "item", "type": "string"}, {"name": "total", "type": "long"}],
}


def revenue(orders: str, out: str, registry: str) -> Topology:
    builder = StreamsBuilder()
    order, total = serdes.Avro(NEWER_ORDER, registry), serdes.Avro(REVENUE, registry)
    (
        builder.stream(orders, value_serde=order)
        .group_by(lambda key, value: value["item"], value_serde=order)
        .aggregate(lambda: 0, lambda key, value, sum: sum + value["count"] * value["price"])
        .to_stream()
        .map_values(lambda item, sum: {"item": item, "total": sum}, with_key=True)
        .to(out, value_serde=total)
    )
    return builder.build()


def test_avro_with_a_registry_is_read_both_ways(both: Both, schema_registry: SchemaRegistry) -> None:
    texts, orders, out, url = both.topic("texts"), both.topic("orders"), both.topic("revenue"), schema_registry.url
    both.produce(texts, ("1", "tea 3", 1000), ("2", "cake 1", 1001), ("3", "tea 4", 1002))

    both.java.run("orders", unique("java-orders"), **{"in": texts, "out": orders, "schema": ORDER, "registry": url})
    assert len(both.settled(orders)) == 3
    both.headrace(revenue(orders, out, url), unique("revenue")).run(until_caught_up=True)
    told = both.texts((out, "string", "avro"), registry=url)[out]

    assert sorted(told, key=str) == [
        ("cake", {"item": "cake", "total": 2}, 1001),
        ("tea", {"item": "tea", "total": 14}, 1002),
        ("tea", {"item": "tea", "total": 6}, 1000),
    ]
