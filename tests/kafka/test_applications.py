"""`headrace/application` and `headrace/spark`: applications on a real broker."""

import os
import re
import signal
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from headrace import (
    Streams,
    StreamsBuilder,
    StreamsError,
    StreamsState,
    StreamThreadExceptionResponse,
    TumblingWindows,
    serdes,
)
from headrace.brokers.kafka.broker import KafkaBroker
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import RecordsGoneError, TaskError, UnavailableError
from headrace.partitioning import partition_of
from headrace.topology.names import commits_topic
from tests.kafka.transactions import settled
from tests.kafka.workspaces import OnKafka, delete_records
from tests.spark.applications import caught_up, still_runs, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]


def test_records_are_processed_once_over_several_starts(workspace: OnKafka) -> None:
    workspace.create(workspace.lines, partitions=3)
    for number, text in enumerate(["to be", "or not", "to be"]):
        workspace.produce(workspace.lines, (f"k{number}", text, 1000 + number))
        app = workspace.word_count()
        app.run(until_caught_up=True)

    workspace.wait_for_counts({"to": 2, "be": 2, "or": 1, "not": 1})
    assert sorted(workspace.read(workspace.counts, serdes.Long)) == sorted(
        [("to", 1, 1000), ("be", 1, 1000), ("or", 1, 1001), ("not", 1, 1001), ("to", 2, 1002), ("be", 2, 1002)]
    )
    assert app.metrics()["lag"] == {workspace.lines: {0: 0, 1: 0, 2: 0}}


def test_the_group_shows_how_far_the_application_has_read(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, *((None, "a", 1000 + number) for number in range(5)))
    workspace.word_count().run(until_caught_up=True)

    consumer = Consumer({"bootstrap.servers": workspace.config.bootstrap_servers, "group.id": workspace.name})
    try:
        (committed,) = consumer.committed([TopicPartition(workspace.lines, 0)], timeout=30)
    finally:
        consumer.close()
    assert committed.offset == 5


def test_a_named_store_has_a_changelog_as_kafka_streams_writes_it(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, (None, "tea tea", 1000), (None, "cake", 2000))
    app = workspace.word_count(statestore_cache_max_bytes=1 << 20)
    app.run(until_caught_up=True)
    workspace.wait_for_counts({"tea": 2, "cake": 1})

    topic = f"{workspace.name}-words-changelog"
    assert sorted(workspace.read(topic, serdes.Long)) == [("cake", 1, 2000), ("tea", 2, 1000)]
    with workspace.broker() as broker:
        assert broker.topics()[topic].compact
    metrics = app.metrics()
    assert (metrics["records_in_total"], metrics["records_out_total"]) == (2, 2)  # the changelog is not a result


def test_clean_up_deletes_internal_topics_and_begins_at_the_beginning(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, (None, "a", 1000))
    app = workspace.word_count()
    app.run(until_caught_up=True)
    app.clean_up()

    with workspace.broker() as broker:
        assert sorted(name for name in broker.topics() if name.startswith(workspace.name)) == [
            workspace.counts,
            workspace.lines,
        ]
    workspace.word_count().run(until_caught_up=True)
    wait_for(lambda: len(workspace.read(workspace.counts, serdes.Long)) == 2, "the result to come again", 20, every=0.1)


def test_a_step_that_fails_leaves_nothing_of_its_task_and_nothing_twice(workspace: OnKafka) -> None:
    workspace.create(workspace.lines, workspace.counts)
    workspace.produce(workspace.lines, ("k", "1", 1000), ("k", "x", 1001), ("k", "3", 1002))

    def app(parse: Callable[[str], int]) -> Streams:
        builder = StreamsBuilder()
        builder.stream(workspace.lines, value_serde=serdes.String).map_values(parse).to(
            workspace.counts, value_serde=serdes.Long
        )
        return Streams(builder.build(), workspace.config)

    with pytest.raises(TaskError, match="invalid literal for int"):
        app(int).run(until_caught_up=True)
    assert workspace.read(workspace.counts, serdes.Long) == []

    app(lambda text: int(text.replace("x", "2"))).run(until_caught_up=True)

    written = [("k", 1, 1000), ("k", 2, 1001), ("k", 3, 1002)]
    wait_for(lambda: workspace.read(workspace.counts, serdes.Long) == written, "the numbers", 20, every=0.1)


@pytest.mark.parametrize("counts", [True, False], ids=["with state behind it", "without"])
def test_tasks_after_a_failed_step_write_nothing_either(workspace: OnKafka, counts: bool) -> None:
    """It has a part of its records only: written, that would count as done when the batch is run again."""
    workspace.create(workspace.lines, partitions=2)
    many = 10_050  # more than a page: the first has been sent on when the last record fails
    workspace.produce(
        workspace.lines, (key_of(0), "a b", 1000), *[(key_of(1), "a", 1001)] * many, (key_of(1), "x", 1002)
    )

    def app(check: Callable[[str], str]) -> Streams:
        builder = StreamsBuilder()
        words = builder.stream(workspace.lines, value_serde=serdes.String).map_values(check).flat_map_values(str.split)
        by_word = words.select_key(lambda key, word: word)
        if counts:
            grouped = by_word.group_by_key(value_serde=serdes.String)
            grouped.count(store="words").to_stream().map_values(str).to(workspace.counts, value_serde=serdes.String)
        else:
            again = by_word.repartition(value_serde=serdes.String, partitions=2)
            again.map_values(str.upper).to(workspace.counts, value_serde=serdes.String)
        return Streams(builder.build(), workspace.config)

    def refuse(text: str) -> str:
        if text == "x":
            raise ValueError("an x")
        return text

    with pytest.raises(TaskError, match="an x"):
        app(refuse).run(until_caught_up=True)
    app(str).run(until_caught_up=True)

    of_a = [("a", str(number + 1) if counts else "A") for number in range(many + 1)]
    others = [("b", "1"), ("x", "1")] if counts else [("b", "B"), ("x", "X")]
    wait_for(lambda: len(workspace.read(workspace.counts)) >= len(of_a) + 2, "all words", 20, every=0.1)
    assert sorted((word, value) for word, value, _ in workspace.read(workspace.counts)) == sorted([*of_a, *others])


def test_outputs_after_a_worker_that_dies_are_written_once(workspace: OnKafka, tmp_path: Path) -> None:
    """Spark hands on what the worker has made so far, and to the next stage its death looks like the end."""
    workspace.settings["spark"] = {"spark.sql.execution.arrow.maxRecordsPerBatch": 1}  # it is handed on at once
    workspace.create(workspace.lines, workspace.counts)
    many, trap = 50_000, tmp_path / "trap"  # more than some pages, and more than a socket's buffer
    keys = [sha256(str(number).encode()).hexdigest() for number in range(many)]
    workspace.produce(workspace.lines, *((key, "a", 1000) for key in keys), ("last", "x", 1001))

    def die_once(key: str, value: str) -> None:
        if key == "last" and not trap.exists():
            trap.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    builder = StreamsBuilder()
    lines = builder.stream(workspace.lines, value_serde=serdes.String)
    again = lines.peek(die_once).repartition(value_serde=serdes.String, partitions=2)
    again.map_values(str.upper).to(workspace.counts, value_serde=serdes.String)
    app = Streams(builder.build(), workspace.config)
    seen: list[str] = []

    def replace(error: BaseException) -> StreamThreadExceptionResponse:
        seen.append(str(error))
        return StreamThreadExceptionResponse.REPLACE_THREAD

    app.set_uncaught_exception_handler(replace)
    app.run(until_caught_up=True)

    wait_for(lambda: len(workspace.read(workspace.counts)) >= many + 1, "all keys", 20, every=0.5)
    assert (
        len({key for key, _, _ in workspace.read(workspace.counts)})
        == len(workspace.read(workspace.counts))
        == many + 1
    )
    assert [text.partition(" (")[0] for text in seen] == ["a Python worker died"]


def test_a_step_may_take_longer_than_a_transaction(workspace: OnKafka) -> None:
    workspace.settings["kafka"] = {"transaction.timeout.ms": 3_000}
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, *((None, str(number), 1_000 + number) for number in range(10_002)))

    def slow(number: str) -> str:
        if number == "10001":  # of the second page
            time.sleep(5)
        return number

    builder = StreamsBuilder()
    builder.stream(workspace.lines, value_serde=serdes.String).map_values(slow).to(
        workspace.counts, value_serde=serdes.String
    )
    Streams(builder.build(), workspace.config).run(until_caught_up=True)

    assert [value for _, value, _ in workspace.read(workspace.counts)] == [str(number) for number in range(10_002)]


def test_at_least_once_writes_without_a_transaction(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    for number in range(2):
        workspace.produce(workspace.lines, (None, "a b", 1000 + number))
        workspace.word_count(processing_guarantee="at_least_once").run(until_caught_up=True)

    assert workspace.counted() == {"a": 2, "b": 2}
    with workspace.broker() as broker:
        # A transaction would leave a record of its own behind those of the batch.
        assert broker.end_offsets(workspace.counts) == {0: 4}


def test_records_that_were_deleted_unread_are_an_error(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, (None, "a", 1000))
    workspace.word_count().run(until_caught_up=True)
    workspace.produce(workspace.lines, (None, "b", 1001), (None, "c", 1002), (None, "d", 1003))
    workspace.delete_records(3)

    with pytest.raises(
        StreamsError, match=rf"topic '{workspace.lines}', partition 0: offsets 1 to 2 are gone.*on_data_loss"
    ):
        workspace.word_count().run(until_caught_up=True)


def test_deleted_records_are_skipped_and_reported_if_data_loss_is_accepted(
    workspace: OnKafka, caplog: pytest.LogCaptureFixture
) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, (None, "a", 1000))
    workspace.word_count().run(until_caught_up=True)
    workspace.produce(workspace.lines, (None, "b", 1001), (None, "c", 1002), (None, "d", 1003))
    workspace.delete_records(3)

    workspace.word_count(on_data_loss="continue").run(until_caught_up=True)

    workspace.wait_for_counts({"a": 1, "d": 1})
    assert f"topic '{workspace.lines}', partition 0: offsets 1 to 2 are gone" in caplog.text


@pytest.mark.parametrize("goes_on", [True, False])
def test_records_may_go_while_a_batch_is_read(
    workspace: OnKafka, caplog: pytest.LogCaptureFixture, goes_on: bool
) -> None:
    first = f"{workspace.name}-first"
    others = [f"{workspace.name}-other-{number}" for number in range(1, os.cpu_count() or 1)]
    workspace.create(first, workspace.lines, workspace.counts, *others)
    # So that one worker reads the lines, and before them the first topic.
    for topic, count in (*((other, 9) for other in others), (first, 4)):
        workspace.produce(topic, *((None, "x", 1000) for _ in range(count)))
    workspace.produce(workspace.lines, (None, "a", 1000), (None, "b", 1001), (None, "c", 1002))
    flag, address, lines, delete = (
        workspace.folder / "gone",
        workspace.config.bootstrap_servers,
        workspace.lines,
        delete_records,
    )

    def lose(value: str) -> str:
        """Delete some of what the batch is going to read next."""
        if not flag.exists():
            flag.touch()
            delete(address, lines, 2)
        return value

    builder = StreamsBuilder()
    builder.stream(first, value_serde=serdes.String).map_values(lose).to(workspace.counts, value_serde=serdes.String)
    for topic in (workspace.lines, *others):
        builder.stream(topic, value_serde=serdes.String).to(workspace.counts, value_serde=serdes.String)
    workspace.settings["on_data_loss"] = "continue" if goes_on else "fail"
    app = workspace.streams(builder.build())

    if not goes_on:
        with pytest.raises(
            RecordsGoneError, match=f"'{workspace.lines}', partition 0: the records from offset 0 to 3 are"
        ):
            app.run(until_caught_up=True)
        return
    app.run(until_caught_up=True)

    values = ["c", *"x" * (9 * len(others) + 4)]
    wait_for(
        lambda: sorted(value for _, value, _ in workspace.read(workspace.counts)) == values, "the others", 20, every=0.1
    )
    assert f"topic '{workspace.lines}', partition 0: offsets 0 to 1 are gone" in caplog.text


def test_a_recreated_topic_is_read_from_its_beginning_if_data_loss_is_accepted(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, (None, "a a", 1000), (None, "a", 1001))
    workspace.word_count().run(until_caught_up=True)
    with workspace.broker() as broker:
        broker.delete_topic(workspace.lines)
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, (None, "b", 1002))

    with pytest.raises(StreamsError, match=f"topic '{workspace.lines}' was deleted and created again"):
        workspace.word_count().run(until_caught_up=True)
    workspace.word_count(on_data_loss="continue").run(until_caught_up=True)

    workspace.wait_for_counts({"a": 3, "b": 1})


def test_without_a_broker_it_stops_after_a_while(workspace: OnKafka, kafka: DevBroker) -> None:
    workspace.create(workspace.lines)
    with workspace.word_count(kafka={"socket.timeout.ms": 5000}, task_timeout_ms=0) as app:
        app.start()
        try:
            kafka.kill()
            wait_for(lambda: app.state is StreamsState.ERROR, "the application to stop", 120)
        finally:
            kafka.start()
    assert isinstance(app.error, UnavailableError)
    assert f"no answer from {kafka.address}" in str(app.error)


def test_without_a_broker_it_can_be_closed_and_its_metrics_do_not_wait_again_and_again(
    workspace: OnKafka,
    kafka: DevBroker,
    broker: KafkaBroker,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = [workspace.lines, f"{workspace.lines}-more"]
    workspace.create(*topics)
    workspace.produce(workspace.lines, (None, "a", 1000))
    builder = StreamsBuilder()
    builder.stream(topics, value_serde=serdes.String).to(workspace.counts, value_serde=serdes.String)
    workspace.settings["kafka"] = {"socket.timeout.ms": 5000}
    app = workspace.streams(builder.build())
    asked: list[str] = []
    ask = KafkaBroker.end_offsets

    def noting(self: KafkaBroker, topic: str) -> dict[int, int]:
        asked.append(topic)
        return ask(self, topic)

    app.start()
    wait_for(lambda: caught_up(app), "the first record")
    settled(broker, commits_topic(workspace.name))
    kafka.kill()
    try:
        wait_for(lambda: "waiting for the broker" in caplog.text, "it to find out", 120)
        monkeypatch.setattr(KafkaBroker, "end_offsets", noting)
        assert app.metrics()["lag"] == app.metrics()["lag"] == {}
        assert len(asked) == 1

        assert app.close(timeout=120)
        assert (app.state, app.error) == (StreamsState.NOT_RUNNING, None)
    finally:
        kafka.start()  # other tests need it, too


def test_it_goes_on_when_the_broker_comes_back(
    workspace: OnKafka, kafka: DevBroker, broker: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, (None, "a", 1000))
    with workspace.word_count(kafka={"socket.timeout.ms": 5000}) as app:
        app.start()
        wait_for(lambda: caught_up(app), "the first record")
        settled(
            broker, commits_topic(workspace.name)
        )  # killed in a commit, a broker that stands alone forgets to end it
        kafka.kill()
        try:
            wait_for(lambda: still_runs(app) and "waiting for the broker" in caplog.text, "it to find out", 120)
        finally:
            kafka.start()  # other tests need it, too
        workspace.produce(workspace.lines, (None, "a", 1001))

        wait_for(lambda: still_runs(app) and workspace.counted() == {"a": 2}, "the second record", 400, every=0.2)
    assert workspace.read(workspace.counts, serdes.Long) == [("a", 1, 1000), ("a", 2, 1001)]


def test_catching_up_drops_nothing_that_live_processing_would_keep(workspace: OnKafka) -> None:
    """Two partitions of very different rates, cut into many batches: no window closes before its time."""
    workspace.create(workspace.lines, partitions=2)
    keys = {partition: key_of(partition) for partition in (0, 1)}
    often = [(keys[0], "x", 1_000_000 + number) for number in range(2000)]
    seldom = [(keys[1], "x", 1_000_000 + number * 100) for number in range(20)]
    workspace.produce(workspace.lines, *often)
    workspace.produce(workspace.lines, *seldom)
    builder = StreamsBuilder()
    everything = builder.stream(workspace.lines, value_serde=serdes.String).group_by(lambda key, value: "all")
    counts = everything.windowed_by(TumblingWindows(100, 0)).count(store="windows")
    counts.to_stream().map(lambda key, count: (str(key.window.start), count)).to(
        workspace.counts, value_serde=serdes.Long
    )
    workspace.settings |= {"max_records_per_batch": 100}

    app = workspace.streams(builder.build())
    app.run(until_caught_up=True)

    assert app.metrics()["dropped_records_total"] == 0
    workspace.wait_for_counts({str(1_000_000 + start): 101 for start in range(0, 2000, 100)})


def test_new_topics_and_partitions_are_found_while_it_runs(workspace: OnKafka) -> None:
    workspace.create(workspace.lines)
    workspace.produce(workspace.lines, ("a", "1", 1000))
    builder = StreamsBuilder()
    pattern = re.compile(f"{workspace.name}-(lines|more)")
    builder.stream(pattern, value_serde=serdes.String).to(workspace.counts, value_serde=serdes.String)

    def values() -> set[str]:
        return {value for _, value, _ in workspace.read(workspace.counts)}

    with workspace.streams(builder.build()) as app:
        app.start()
        wait_for(lambda: values() == {"1"}, "the topic that was there")
        workspace.create(f"{workspace.name}-more")
        workspace.produce(f"{workspace.name}-more", ("a", "2", 2000))
        wait_for(lambda: values() == {"1", "2"}, "the topic that came")
        workspace.add_partitions(workspace.lines, 2)
        with workspace.broker() as broker:
            broker.produce(workspace.lines, [(b"a", b"3", 3000)], partition=1)
        wait_for(lambda: values() == {"1", "2", "3"}, "the partition that came")


@pytest.mark.parametrize("beside", [None, "with-a-key"])
def test_a_topic_that_gets_more_partitions_while_it_is_written_gets_keys_there(
    workspace: OnKafka, beside: str | None
) -> None:
    workspace.create(workspace.lines, workspace.counts)
    builder = StreamsBuilder()
    builder.stream(workspace.lines, value_serde=serdes.String).to(workspace.counts, value_serde=serdes.String)

    def is_in_the_new_one() -> bool:
        workspace.produce(workspace.lines, (key_of(1), "1", 1000), (beside, "2", 1000))
        with workspace.broker() as broker:
            return any(record.value == b"1" for record in broker.records(workspace.counts) if record.partition == 1)

    with workspace.streams(builder.build()) as app:
        app.start()
        workspace.produce(workspace.lines, (key_of(1), "0", 1000))
        wait_for(lambda: bool(workspace.read(workspace.counts)), "the only partition", every=0.1)
        workspace.add_partitions(workspace.counts, 2)
        wait_for(is_in_the_new_one, "the partition that came", 60, every=0.5)


def key_of(partition: int) -> str:
    """Return a key that goes to a partition of two."""
    return next(key for key in map(str, range(100)) if partition_of(key.encode(), 2) == partition)
