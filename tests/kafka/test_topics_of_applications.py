"""`headrace/engine/topics.py` and `batches.py`: which topics applications on Kafka use, and where they begin."""

import re

import pytest

from headrace import HeadraceError, StreamsBuilder, TumblingWindows, serdes
from headrace.brokers.kafka.broker import KafkaBroker
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import TopicError
from headrace.partitioning import partition_of
from tests.engine.planning import Query, read_plan
from tests.kafka.naming import unique
from tests.kafka.places import OnKafka
from tests.kafka.transactions import transactional, write
from tests.spark.applications import caught_up, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]


# -- what is read ------------------------------------------------------------------------------------------------------


def test_several_topics_are_one_stream(place: OnKafka) -> None:
    more = f"{place.name}-more"
    place.create(place.lines, more, partitions=2)
    place.produce(place.lines, ("a", "1", 1000), ("b", "2", 1002))
    place.produce(more, ("a", "3", 1001))
    builder = StreamsBuilder()
    builder.stream([place.lines, more], value_serde=serdes.String).to(place.counts, value_serde=serdes.String)
    app = place.streams(builder.build())

    app.run(until_caught_up=True)

    wait_for(lambda: {value for _, value, _ in place.read(place.counts)} == {"1", "2", "3"}, "all", 20, every=0.1)
    assert app.metrics()["lag"] == {place.lines: {0: 0, 1: 0}, more: {0: 0, 1: 0}}


def test_latest_begins_at_the_end_and_loses_no_later_record(place: OnKafka) -> None:
    place.settings["auto_offset_reset"] = "latest"
    place.create(place.lines)
    place.produce(place.lines, ("a", "before", 1000))
    builder = StreamsBuilder()
    pattern = re.compile(f"{place.name}-(lines|more)")
    builder.stream(pattern, value_serde=serdes.String).to(place.counts, value_serde=serdes.String)

    def values() -> list[str]:
        return [value for _, value, _ in place.read(place.counts) if value != "begun?"]

    def has_begun(topic: str) -> bool:
        place.produce(topic, (topic, "begun?", 1999))
        return any(key == topic for key, _, _ in place.read(place.counts))

    with place.streams(builder.build()) as app:
        app.start()
        wait_for(lambda: has_begun(place.lines), "the first record that came later", every=0.5)
        place.produce(place.lines, ("a", "1", 2000))
        wait_for(lambda: values() == ["1"], "the topic that was there", every=0.1)
        place.create(f"{place.name}-more")
        place.produce(f"{place.name}-more", ("a", "before it was found", 2001))
        wait_for(lambda: has_begun(f"{place.name}-more"), "the topic that came", every=0.5)
        place.produce(f"{place.name}-more", ("a", "2", 2002))
        wait_for(lambda: values() == ["1", "2"], "what came into the new topic", every=0.1)
        place.add_partitions(place.lines, 2)
        with place.broker() as broker:
            broker.produce(place.lines, [(b"a", b"3", 3000)], partition=1)
        wait_for(lambda: values() == ["1", "2", "3"], "the partition that came", every=0.1)


def test_a_global_table_is_read_from_its_beginning(place: OnKafka) -> None:
    place.settings["auto_offset_reset"] = "latest"
    table = f"{place.name}-table"
    place.create(place.lines, table)
    place.produce(table, ("a", "apple", 1000))
    builder = StreamsBuilder()
    names = builder.global_table(table, value_serde=serdes.String)
    (
        builder.stream(place.lines, value_serde=serdes.String)
        .join(names, lambda line, name: f"{line} {name}", key=lambda key, line: key)
        .to(place.counts, value_serde=serdes.String)
    )

    with place.streams(builder.build()) as app:
        app.start()
        wait_for(lambda: caught_up(app), "the table")
        place.produce(place.lines, ("a", "one", 2000))
        wait_for(lambda: place.read(place.counts) == [("a", "one apple", 2000)], "what is joined", every=0.1)


def test_a_pattern_does_not_match_internal_topics(place: OnKafka) -> None:
    place.create(place.lines)
    place.produce(place.lines, ("a", "x", 1000))
    builder = StreamsBuilder()
    stream = builder.stream(re.compile(f"{place.name}-(?!counts).*"), value_serde=serdes.String)
    stream.group_by_key().count(store="kept").to_stream().to(place.counts, value_serde=serdes.Long)

    for number in range(2):
        app = place.streams(builder.build())
        app.run(until_caught_up=True)
        assert list(app.metrics()["lag"]) == [place.lines], f"start {number + 1}"
    with place.broker() as broker:
        assert f"{place.name}-kept-changelog" in broker.topics()


# -- records that are gone ---------------------------------------------------------------------------------------------


@pytest.fixture
def query(place: OnKafka, broker: KafkaBroker) -> Query:
    """Have a reader of the lines."""
    place.create(place.lines)
    return Query(read_plan({place.lines: [[0]]}), broker)


def test_records_that_go_between_two_attempts_at_a_batch_are_an_error(place: OnKafka, query: Query) -> None:
    query.add(place.lines, 5)
    end = query.planned()
    place.delete_records(3)
    query.restart()

    with pytest.raises(TopicError, match=f"topic '{place.lines}', partition 0: offsets 0 to 2 are gone"):
        query.read(end)


def test_such_records_are_skipped_and_reported_if_data_loss_is_accepted(place: OnKafka, query: Query) -> None:
    query.add(place.lines, 5)
    end = query.planned()
    place.delete_records(3)
    query.restart(goes_on_after_loss=True)

    assert query.read(end) == {(place.lines, 0): (3, 5)}
    assert query.notes == [f"topic '{place.lines}', partition 0: offsets 0 to 2 are gone"]
    query.end = end
    assert query.batch() is None


def test_latest_begins_before_open_transactions(place: OnKafka, query: Query) -> None:
    producer = transactional(place.config.bootstrap_servers, unique("writer"))
    query.add(place.lines, 2)
    write(producer, place.lines, b"open", commit=None)
    query.restart(resets={place.lines: "latest"})
    query.begin()
    producer.commit_transaction(30)

    def is_read() -> bool:
        return query.batch() == {(place.lines, 0): (2, 4)}

    wait_for(is_read, "the records of the transaction", 30, every=0.1)


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stateful", [False, True])
def test_a_function_may_name_topics_that_do_not_exist(place: OnKafka, broker: KafkaBroker, stateful: bool) -> None:
    place.settings["num_partitions"] = 2
    place.create(place.lines)
    broker.create_topic(f"{place.name}-wide", 5)
    place.produce(place.lines, *((topic, f"{n}", 1000 + n) for topic in ("wide", "new") for n in range(8)))
    told: set[tuple[str, int]] = {("wide", 5), ("new", 2)}

    def spread(topic: str, key: str, value: str, partitions: int) -> int:
        assert (key, partitions) in told
        return int(value) % partitions

    builder = StreamsBuilder()
    stream = builder.stream(place.lines, value_serde=serdes.String)
    if stateful:
        table = stream.group_by_key().reduce(lambda before, value: value)
        stream = table.to_stream()
    by_function = stream.map_values(lambda value: value)
    by_function.to(lambda key, value, context: f"{place.name}-{key}", value_serde=serdes.String, partitioner=spread)
    stream.to(lambda key, value, context: f"{place.name}-by-key-{key}", value_serde=serdes.String)

    place.streams(builder.build()).run(until_caught_up=True)

    def found(topic: str) -> dict[int, int]:
        return {int(record.value or b""): record.partition for record in broker.records(f"{place.name}-{topic}")}

    wait_for(lambda: len(found("wide")) == 8, "what is written", 20, every=0.1)
    assert found("wide") == {n: n % 5 for n in range(8)}
    assert found("new") == {n: n % 2 for n in range(8)}
    assert set(found("by-key-new").values()) == {partition_of(b"new", 2)}


def test_windowed_keys_are_spread_by_their_keys_alone(place: OnKafka, broker: KafkaBroker) -> None:
    place.settings["num_partitions"] = 4
    place.create(place.lines)
    place.produce(place.lines, *((f"k{n % 3}", "", 1000 + n * 10) for n in range(30)))
    builder = StreamsBuilder()
    counts = builder.stream(place.lines, value_serde=serdes.String).group_by_key().windowed_by(TumblingWindows(10))
    windows, keys = counts.count().to_stream(), serdes.Windowed(serdes.String, 10)
    windows.to(place.counts, key_serde=keys, value_serde=serdes.Long)
    windows.to(lambda key, value, context: f"{place.counts}-named", key_serde=keys, value_serde=serdes.Long)

    place.streams(builder.build()).run(until_caught_up=True)

    expected = {f"k{n}": partition_of(b"k%d" % n, 4) for n in range(3)}
    for topic in (place.counts, f"{place.counts}-named"):
        wait_for(lambda topic=topic: len(list(broker.records(topic))) == 30, "windows", 20, every=0.1)  # type: ignore[misc]
        found = {(record.partition, (record.key or b"")[:-8].decode()) for record in broker.records(topic)}
        assert found == {(partition, key) for key, partition in expected.items()}


def test_compressed_records_are_read_and_written(place: OnKafka, kafka: DevBroker) -> None:
    place.settings["kafka"] = {"compression.type": "zstd"}
    place.create(place.lines)
    for kind in ("gzip", "snappy", "lz4", "zstd"):
        with KafkaBroker(kafka.address, **{"compression.type": kind}) as broker:
            broker.produce(place.lines, [(b"k", f"{kind} ".encode() * 1_000, 1000)])

    place.word_count().run(until_caught_up=True)

    place.wait_for_counts(dict.fromkeys(("gzip", "snappy", "lz4", "zstd"), 1_000))
    segments = list((kafka.folder / "data").glob(f"{place.counts}-0/*.log"))
    assert segments
    assert sum(segment.stat().st_size for segment in segments) < 60_000  # 4,000 updates of some twenty bytes each


def test_internal_topics_have_as_many_replicas_as_configured(place: OnKafka) -> None:
    place.settings["replication_factor"] = 2
    place.create(place.lines, place.counts)

    with pytest.raises(HeadraceError, match=rf"create topic '{place.name}-commits'.*[Rr]eplication factor"):
        place.word_count().run(until_caught_up=True)
