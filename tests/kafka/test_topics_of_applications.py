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
from tests.kafka.transactions import transactional, write
from tests.kafka.workspaces import OnKafka
from tests.spark.applications import caught_up, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]


# -- what is read ------------------------------------------------------------------------------------------------------


def test_several_topics_are_one_stream(workspace: OnKafka) -> None:
    more = f"{workspace.name}-more"
    workspace.create(workspace.lines, more, partitions=2)
    workspace.produce(workspace.lines, ("a", "1", 1000), ("b", "2", 1002))
    workspace.produce(more, ("a", "3", 1001))
    builder = StreamsBuilder()
    builder.stream([workspace.lines, more], value_serde=serdes.String).to(workspace.counts, value_serde=serdes.String)
    app = workspace.streams(builder.build())

    app.run(until_caught_up=True)

    wait_for(
        lambda: {value for _, value, _ in workspace.read(workspace.counts)} == {"1", "2", "3"}, "all", 20, every=0.1
    )
    assert app.metrics()["lag"] == {workspace.lines: {0: 0, 1: 0}, more: {0: 0, 1: 0}}


def test_latest_begins_at_the_end_and_loses_no_later_record(workspace: OnKafka) -> None:
    workspace.settings["auto_offset_reset"] = "latest"
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, ("a", "before", 1000))
    builder = StreamsBuilder()
    pattern = re.compile(f"{workspace.name}-(lines|more)")
    builder.stream(pattern, value_serde=serdes.String).to(workspace.counts, value_serde=serdes.String)

    def values() -> list[str]:
        return [value for _, value, _ in workspace.read(workspace.counts) if value != "begun?"]

    def has_begun(topic: str) -> bool:
        workspace.produce(topic, (topic, "begun?", 1999))
        return any(key == topic for key, _, _ in workspace.read(workspace.counts))

    with workspace.streams(builder.build()) as app:
        app.start()
        wait_for(lambda: has_begun(workspace.lines), "the first record that came later", every=0.5)
        workspace.produce(workspace.lines, ("a", "1", 2000))
        wait_for(lambda: values() == ["1"], "the topic that was there", every=0.1)
        workspace.create(f"{workspace.name}-more")
        workspace.produce(f"{workspace.name}-more", ("a", "before it was found", 2001))
        wait_for(lambda: has_begun(f"{workspace.name}-more"), "the topic that came", every=0.5)
        workspace.produce(f"{workspace.name}-more", ("a", "2", 2002))
        wait_for(lambda: values() == ["1", "2"], "what came into the new topic", every=0.1)
        workspace.add_partitions(workspace.lines, 2)
        with workspace.broker() as broker:
            broker.produce(workspace.lines, [(b"a", b"3", 3000)], partition=1)
        wait_for(lambda: values() == ["1", "2", "3"], "the partition that came", every=0.1)


def test_a_global_table_is_read_from_its_beginning(workspace: OnKafka) -> None:
    workspace.settings["auto_offset_reset"] = "latest"
    table = f"{workspace.name}-table"
    workspace.create(workspace.lines, table)
    workspace.produce(table, ("a", "apple", 1000))
    builder = StreamsBuilder()
    names = builder.global_table(table, value_serde=serdes.String)
    (
        builder.stream(workspace.lines, value_serde=serdes.String)
        .join(names, lambda line, name: f"{line} {name}", key=lambda key, line: key)
        .to(workspace.counts, value_serde=serdes.String)
    )

    with workspace.streams(builder.build()) as app:
        app.start()
        wait_for(lambda: caught_up(app), "the table")
        workspace.produce(workspace.lines, ("a", "one", 2000))
        wait_for(lambda: workspace.read(workspace.counts) == [("a", "one apple", 2000)], "what is joined", every=0.1)


def test_a_pattern_does_not_match_internal_topics(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, ("a", "x", 1000))
    builder = StreamsBuilder()
    stream = builder.stream(re.compile(f"{workspace.name}-(?!counts).*"), value_serde=serdes.String)
    stream.group_by_key().count(store="kept").to_stream().to(workspace.counts, value_serde=serdes.Long)

    for number in range(2):
        app = workspace.streams(builder.build())
        app.run(until_caught_up=True)
        assert list(app.metrics()["lag"]) == [workspace.lines], f"start {number + 1}"
    with workspace.broker() as broker:
        assert f"{workspace.name}-kept-changelog" in broker.topics()


# -- records that are gone ---------------------------------------------------------------------------------------------


@pytest.fixture
def query(workspace: OnKafka, broker: KafkaBroker) -> Query:
    """Have a reader of the lines."""
    workspace.create(workspace.lines)
    return Query(read_plan({workspace.lines: [[0]]}), broker)


def test_records_that_go_between_two_attempts_at_a_batch_are_an_error(workspace: OnKafka, query: Query) -> None:
    query.add(workspace.lines, 5)
    end = query.planned()
    workspace.delete_records(3)
    query.restart()

    with pytest.raises(TopicError, match=f"topic '{workspace.lines}', partition 0: offsets 0 to 2 are gone"):
        query.read(end)


def test_such_records_are_skipped_and_reported_if_data_loss_is_accepted(workspace: OnKafka, query: Query) -> None:
    query.add(workspace.lines, 5)
    end = query.planned()
    workspace.delete_records(3)
    query.restart(goes_on_after_loss=True)

    assert query.read(end) == {(workspace.lines, 0): (3, 5)}
    assert query.notes == [f"topic '{workspace.lines}', partition 0: offsets 0 to 2 are gone"]
    query.end = end
    assert query.batch() is None


def test_latest_begins_before_open_transactions(workspace: OnKafka, query: Query) -> None:
    producer = transactional(workspace.config.bootstrap_servers, unique("writer"))
    query.add(workspace.lines, 2)
    write(producer, workspace.lines, b"open", commit=None)
    query.restart(resets={workspace.lines: "latest"})
    query.begin()
    producer.commit_transaction(30)

    def is_read() -> bool:
        return query.batch() == {(workspace.lines, 0): (2, 4)}

    wait_for(is_read, "the records of the transaction", 30, every=0.1)


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stateful", [False, True])
def test_a_function_may_name_topics_that_do_not_exist(workspace: OnKafka, broker: KafkaBroker, stateful: bool) -> None:
    workspace.settings["num_partitions"] = 2
    workspace.create(workspace.lines)
    broker.create_topic(f"{workspace.name}-wide", 5)
    workspace.produce(workspace.lines, *((topic, f"{n}", 1000 + n) for topic in ("wide", "new") for n in range(8)))
    told: set[tuple[str, int]] = {("wide", 5), ("new", 2)}

    def spread(topic: str, key: str, value: str, partitions: int) -> int:
        assert (key, partitions) in told
        return int(value) % partitions

    builder = StreamsBuilder()
    stream = builder.stream(workspace.lines, value_serde=serdes.String)
    if stateful:
        table = stream.group_by_key().reduce(lambda before, value: value)
        stream = table.to_stream()
    by_function = stream.map_values(lambda value: value)
    by_function.to(lambda key, value, context: f"{workspace.name}-{key}", value_serde=serdes.String, partitioner=spread)
    stream.to(lambda key, value, context: f"{workspace.name}-by-key-{key}", value_serde=serdes.String)

    workspace.streams(builder.build()).run(until_caught_up=True)

    def found(topic: str) -> dict[int, int]:
        return {int(record.value or b""): record.partition for record in broker.records(f"{workspace.name}-{topic}")}

    wait_for(lambda: len(found("wide")) == 8, "what is written", 20, every=0.1)
    assert found("wide") == {n: n % 5 for n in range(8)}
    assert found("new") == {n: n % 2 for n in range(8)}
    assert set(found("by-key-new").values()) == {partition_of(b"new", 2)}


def test_windowed_keys_are_spread_by_their_keys_alone(workspace: OnKafka, broker: KafkaBroker) -> None:
    workspace.settings["num_partitions"] = 4
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, *((f"k{n % 3}", "", 1000 + n * 10) for n in range(30)))
    builder = StreamsBuilder()
    counts = builder.stream(workspace.lines, value_serde=serdes.String).group_by_key().windowed_by(TumblingWindows(10))
    windows, keys = counts.count().to_stream(), serdes.Windowed(serdes.String, 10)
    windows.to(workspace.counts, key_serde=keys, value_serde=serdes.Long)
    windows.to(lambda key, value, context: f"{workspace.counts}-named", key_serde=keys, value_serde=serdes.Long)

    workspace.streams(builder.build()).run(until_caught_up=True)

    expected = {f"k{n}": partition_of(b"k%d" % n, 4) for n in range(3)}
    for topic in (workspace.counts, f"{workspace.counts}-named"):
        wait_for(lambda topic=topic: len(list(broker.records(topic))) == 30, "windows", 20, every=0.1)  # type: ignore[misc]
        found = {(record.partition, (record.key or b"")[:-8].decode()) for record in broker.records(topic)}
        assert found == {(partition, key) for key, partition in expected.items()}


def test_compressed_records_are_read_and_written(workspace: OnKafka, kafka: DevBroker) -> None:
    workspace.settings["kafka"] = {"compression.type": "zstd"}
    workspace.create(workspace.lines)
    for kind in ("gzip", "snappy", "lz4", "zstd"):
        with KafkaBroker(kafka.address, **{"compression.type": kind}) as broker:
            broker.produce(workspace.lines, [(b"k", f"{kind} ".encode() * 1_000, 1000)])

    workspace.word_count().run(until_caught_up=True)

    workspace.wait_for_counts(dict.fromkeys(("gzip", "snappy", "lz4", "zstd"), 1_000))
    segments = list((kafka.folder / "data").glob(f"{workspace.counts}-0/*.log"))
    assert segments
    assert sum(segment.stat().st_size for segment in segments) < 60_000  # 4,000 updates of some twenty bytes each


def test_internal_topics_have_as_many_replicas_as_configured(workspace: OnKafka) -> None:
    workspace.settings["replication_factor"] = 2
    workspace.create(workspace.lines, workspace.counts)

    with pytest.raises(HeadraceError, match=rf"create topic '{workspace.name}-commits'.*[Rr]eplication factor"):
        workspace.word_count().run(until_caught_up=True)
