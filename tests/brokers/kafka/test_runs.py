"""`runs`, `markers`, `membership`, `batch_producer` and `producer_errors`: each batch is written once."""

import multiprocessing
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from headrace.brokers import TopicInfo
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.broker import KafkaBroker
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.markers import Marker
from headrace.brokers.kafka.runs import OpenRun, Runs
from headrace.brokers.kafka.topics import create_topic
from headrace.brokers.runs import Run
from headrace.brokers.writing import PartitionRecords
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import StreamsError, SupersededError, TopicError
from headrace.partitioning import partition_of
from headrace.raw_records import RecordToWrite
from tests.kafka.naming import unique
from tests.kafka.transactions import has_member, settled, wait_until, write_and_wait

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

MANY = 20_000


@pytest.fixture
def lines(broker: KafkaBroker) -> str:
    """Create a topic to read. Only offsets of an existing topic can be committed."""
    return broker.create_topic(unique("lines"), 2).name


@pytest.fixture
def out(broker: KafkaBroker) -> str:
    return broker.create_topic(unique("out"), 3).name


@pytest.fixture
def small(kafka: DevBroker) -> str:
    """Create a topic that accepts small records only."""
    settings = {"max.message.bytes": "1000"}
    return create_topic(Admin(Connection(kafka.address)), TopicInfo(unique("small"), 1), settings=settings).name


def row(topic: str, value: bytes | None, partition: int | None = None, times: int = 1) -> PartitionRecords:
    return topic, partition, [(b"k", value, 5, None)] * times


def values(broker: KafkaBroker, topic: str) -> list[bytes | None]:
    """Return the committed values once no transaction is open."""
    settled(broker, topic)
    return [record.value for record in broker.records(topic)]


def committed(kafka: DevBroker, group: str, topic: str) -> list[int]:
    """Return the offsets of a group in both partitions of a topic."""
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": group})
    try:
        return [place.offset for place in consumer.committed([TopicPartition(topic, n) for n in (0, 1)], 30)]
    finally:
        consumer.close()


def in_the_middle(patch: pytest.MonkeyPatch, step: Callable[[OpenRun], object]) -> None:
    """Do something after the records of a batch are written, and before its marker is."""
    mark = Runs._mark

    def first(runs: Runs, open_run: OpenRun, marker: Marker) -> None:
        patch.setattr(Runs, "_mark", mark)
        open_run.producer.flush()
        step(open_run)
        mark(runs, open_run, marker)

    patch.setattr(Runs, "_mark", first)


# -- counting ----------------------------------------------------------------------------------------------------------


def test_runs_are_counted_for_each_application(broker: KafkaBroker, app: str) -> None:
    other = unique("other")
    assert broker.run_number(app) == 0

    assert broker.begin_run(app, "x") == Run(app, 1, "x")
    assert broker.begin_run(app, "x") == Run(app, 2, "x")
    assert broker.begin_run(other, "y") == Run(other, 1, "y")

    assert (broker.run_number(app), broker.run_number(other)) == (2, 1)


def test_an_application_that_never_ran_has_no_batch_and_no_positions(broker: KafkaBroker, app: str) -> None:
    assert (broker.run_number(app), broker.last_batch(app), broker.positions(app)) == (0, None, {})


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_a_batch_is_written_once(broker: KafkaBroker, app: str, lines: str, out: str, exactly_once: bool) -> None:
    run = broker.begin_run(app, "x", exactly_once=exactly_once)

    assert broker.write_batch(run, 0, [row(out, b"0")], {lines: {0: 5}}) is True
    assert broker.write_batch(run, 0, [row(out, b"again")], {lines: {0: 6}}) is False

    assert values(broker, out) == [b"0"]
    assert broker.last_batch(app) == ("x", 0)
    assert broker.positions(app) == {lines: {0: 5}}


def test_an_earlier_batch_is_left_alone_and_a_later_one_written(broker: KafkaBroker, app: str, out: str) -> None:
    run = broker.begin_run(app, "x")

    done = [broker.write_batch(run, batch, [row(out, b"%d" % batch)], {}) for batch in (3, 1, 2, 7)]

    assert done == [True, False, False, True]
    assert values(broker, out) == [b"3", b"7"]


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_the_next_run_of_a_lineage_goes_on_with_its_batches(
    kafka: DevBroker, app: str, lines: str, out: str, exactly_once: bool
) -> None:
    with KafkaBroker(kafka.address) as broker:
        run = broker.begin_run(app, "x", exactly_once=exactly_once)
        broker.write_batch(run, 4, [row(out, b"4")], {lines: {0: 5}})
    with KafkaBroker(kafka.address) as broker:
        assert broker.last_batch(app) == ("x", 4)

        run = broker.begin_run(app, "x", exactly_once=exactly_once)

        assert broker.last_batch(app) == ("x", 4)
        assert broker.write_batch(run, 3, [row(out, b"older")], {}) is False
        assert broker.write_batch(run, 4, [row(out, b"replayed")], {}) is False
        assert broker.write_batch(run, 5, [row(out, b"5")], {lines: {1: 6}}) is True
        assert values(broker, out) == [b"4", b"5"]
        assert broker.positions(app) == {lines: {0: 5, 1: 6}}


def test_another_lineage_counts_anew(broker: KafkaBroker, app: str, lines: str, out: str) -> None:
    broker.write_batch(broker.begin_run(app, "x"), 4, [row(out, b"4")], {lines: {0: 5}})

    run = broker.begin_run(app, "y")

    assert run == Run(app, 2, "y")
    assert broker.last_batch(app) == ("y", -1)
    assert broker.positions(app) == {lines: {0: 5}}
    assert broker.write_batch(run, 0, [row(out, b"0")], {}) is True
    assert broker.last_batch(app) == ("y", 0)


def test_applications_do_not_see_each_other(broker: KafkaBroker, app: str, lines: str, out: str) -> None:
    longer = f"{app}-b"
    one, other = broker.begin_run(app, "x"), broker.begin_run(longer, "x")
    broker.write_batch(one, 3, [row(out, b"one")], {lines: {0: 1}})

    assert (broker.last_batch(longer), broker.positions(longer)) == (("x", -1), {})
    assert broker.write_batch(other, 0, [row(out, b"other")], {lines: {0: 7}}) is True
    assert broker.positions(app) == {lines: {0: 1}}


def test_a_batch_may_have_no_records(broker: KafkaBroker, app: str, lines: str) -> None:
    run = broker.begin_run(app, "")

    assert broker.write_batch(run, 0, iter(()), {lines: {0: 5}}) is True
    assert broker.write_batch(run, 0, iter(()), {lines: {0: 9}}) is False
    assert broker.positions(app) == {lines: {0: 5}}


def test_positions_are_kept_by_topic_and_partition(broker: KafkaBroker, app: str, lines: str, out: str) -> None:
    run = broker.begin_run(app, "")
    broker.write_batch(run, 0, [], {lines: {1: 10, 0: 20}})
    broker.write_batch(run, 1, [], {lines: {1: 11}, out: {2: 0}})

    assert broker.positions(app) == {lines: {0: 20, 1: 11}, out: {2: 0}}


@pytest.mark.parametrize("batch", [-1, 1.0, None, True])
def test_a_batch_is_a_number(broker: KafkaBroker, app: str, batch: Any) -> None:
    with pytest.raises(StreamsError) as raised:
        broker.write_batch(broker.begin_run(app, ""), batch, [], {})
    assert str(raised.value) == f"application '{app}': expected a batch of at least 0, got {batch!r}"


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_record_has_all_its_parts(broker: KafkaBroker, app: str, out: str) -> None:
    headers = [("trace", b"\x00\xff"), ("trace", b""), ("", b"x")]
    records: list[RecordToWrite] = [
        (b"k", b"v", 1234, headers),
        (None, None, 5, None),
        (b"", b"", 6, []),
        (b"k", None, 7, None),
        (None, b"v", 8, None),
    ]

    broker.write_batch(broker.begin_run(app, ""), 0, [(out, 1, records)], {})

    settled(broker, out)
    assert [(r.partition, r.offset, r.key, r.value, r.timestamp, r.headers) for r in broker.records(out)] == [
        (1, offset, key, value, timestamp, said or []) for offset, (key, value, timestamp, said) in enumerate(records)
    ]


def test_without_a_partition_the_key_decides_as_for_a_java_client(broker: KafkaBroker, app: str, out: str) -> None:
    keys = [b"", *(b"%d" % number for number in range(1_000)), *(bytes([255]) * length for length in range(1, 10))]

    broker.write_batch(broker.begin_run(app, ""), 0, [(out, None, [(key, b"", 5, None) for key in keys])], {})

    settled(broker, out)
    found = [(record.partition, record.key) for record in broker.records(out)]
    assert sorted(found) == sorted((partition_of(key, 3), key) for key in keys)
    for partition in range(3):
        assert [key for place, key in found if place == partition] == [
            k for k in keys if partition_of(k, 3) == partition
        ]


def test_records_without_a_key_go_to_the_partitions_in_turn(broker: KafkaBroker, app: str, out: str) -> None:
    run = broker.begin_run(app, "")
    for batch in range(6):
        broker.write_batch(run, batch, [(out, None, [(None, b"%d" % batch, 5, None)])], {})

    settled(broker, out)
    assert sorted((record.value, record.partition) for record in broker.records(out)) == [
        (b"%d" % batch, batch % 3) for batch in range(6)
    ]


def test_records_of_several_topics_and_many_of_them_keep_their_order(broker: KafkaBroker, app: str, out: str) -> None:
    other = broker.create_topic(unique("other")).name
    work: list[PartitionRecords] = [
        ((out, other)[n % 2], 0, [(None, b"%d" % number, 5, None) for number in range(n * MANY, (n + 1) * MANY)])
        for n in range(6)
    ]

    broker.write_batch(broker.begin_run(app, ""), 0, work, {})

    for place, topic in enumerate((out, other)):
        expected = [b"%d" % number for n in (0, 2, 4) for number in range((n + place) * MANY, (n + place + 1) * MANY)]
        assert values(broker, topic) == expected


def test_a_batch_may_be_larger_than_the_queue_of_the_client(
    kafka: DevBroker, app: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Connection.producer
    monkeypatch.setattr(
        Connection, "producer", lambda self, **said: make(self, **{**said, "queue.buffering.max.messages": 50})
    )
    with KafkaBroker(kafka.address) as broker:
        run = broker.begin_run(app, "")
        broker._runs._open_runs[app].producer._patience._begin -= 3600  # as if the last batch was long ago

        numbers = [b"%d" % number for number in range(20_000)]

        broker.write_batch(run, 0, [(out, 0, [(None, number, 1, None) for number in numbers])], {})

        assert values(broker, out) == numbers


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_positions_are_committed_for_the_group_of_the_application(
    kafka: DevBroker, broker: KafkaBroker, app: str, lines: str, exactly_once: bool
) -> None:
    run = broker.begin_run(app, "", exactly_once=exactly_once)

    broker.write_batch(run, 0, [], {lines: {0: 5, 1: 7}})
    broker.write_batch(run, 1, [], {lines: {0: 6}})

    wait_until(lambda: committed(kafka, app, lines) == [6, 7], "the offsets were not committed")


def test_at_least_once_uses_no_transaction(broker: KafkaBroker, app: str, out: str) -> None:
    run = broker.begin_run(app, "x", exactly_once=False)

    broker.write_batch(run, 0, [row(out, b"0", 0), row(out, b"1", 0)], {})
    broker.write_batch(run, 1, [row(out, b"2", 0)], {})

    # A transaction would leave records of its own, and its records would show only a moment later.
    assert [(record.offset, record.value) for record in broker.records(out)] == [(0, b"0"), (1, b"1"), (2, b"2")]
    assert broker.end_offsets(out)[0] == 3
    assert broker.last_batch(app) == ("x", 1)


# -- other runs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_an_older_run_is_refused(
    broker: KafkaBroker, elsewhere: KafkaBroker, app: str, out: str, exactly_once: bool
) -> None:
    older = broker.begin_run(app, "x", exactly_once=exactly_once)
    newer = elsewhere.begin_run(app, "x", exactly_once=exactly_once)

    with pytest.raises(SupersededError) as raised:
        broker.write_batch(older, 0, [row(out, b"older", times=MANY)], {})

    assert str(raised.value) == f"application '{app}' was started again elsewhere: this one stops"
    assert values(broker, out) == []
    assert broker.last_batch(app) == ("x", -1)
    assert elsewhere.write_batch(newer, 0, [row(out, b"newer")], {}) is True
    assert values(broker, out) == [b"newer"]


def test_an_older_run_in_the_same_process_is_refused(broker: KafkaBroker, app: str, out: str) -> None:
    older, newer = broker.begin_run(app, "x"), broker.begin_run(app, "x")

    with pytest.raises(SupersededError, match="was started again elsewhere"):
        broker.write_batch(older, 0, [row(out, b"older")], {})
    assert broker.write_batch(newer, 0, [row(out, b"newer")], {}) is True
    assert values(broker, out) == [b"newer"]


def test_a_run_that_is_superseded_in_the_middle_of_a_batch_leaves_nothing(
    broker: KafkaBroker, elsewhere: KafkaBroker, app: str, lines: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = broker.begin_run(app, "x")
    began: list[Run] = []
    in_the_middle(monkeypatch, lambda open_run: began.append(elsewhere.begin_run(app, "x")))

    with pytest.raises(SupersededError, match="was started again elsewhere"):
        broker.write_batch(older, 0, [row(out, b"older", times=100)], {lines: {0: 5}})

    assert elsewhere.write_batch(began[0], 0, [row(out, b"newer")], {lines: {0: 5}}) is True
    assert values(broker, out) == [b"newer"]
    assert broker.last_batch(app) == ("x", 0)


def test_the_next_run_aborts_transactions_of_a_killed_process(
    kafka: DevBroker, broker: KafkaBroker, app: str, out: str
) -> None:
    broker.write_batch(broker.begin_run(app, "x"), 0, [row(out, b"0", 0)], {})
    processes = multiprocessing.get_context("spawn")
    written = processes.Event()
    process = processes.Process(target=write_and_wait, args=(kafka.address, app, out, written))
    process.start()
    assert written.wait(60)
    process.kill()
    process.join()
    end = broker.end_offsets(out)[0]
    assert broker.plan_batch({out: {0: 0}}, None)[out][0] < end  # it is open

    run = broker.begin_run(app, "x")

    assert settled(broker, out)[0] > end  # the marker of the abort follows
    assert broker.write_batch(run, 1, [row(out, b"1", 0)], {}) is True
    assert values(broker, out) == [b"0", b"1"]


def test_a_batch_that_takes_too_long_is_not_taken_for_one_of_an_older_run(
    kafka: DevBroker, broker: KafkaBroker, app: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KafkaBroker(kafka.address, **{"transaction.timeout.ms": 3_000}) as hasty:
        run = hasty.begin_run(app, "x")
        in_the_middle(monkeypatch, lambda open_run: settled(broker, out))  # until the broker aborts it

        with pytest.raises(StreamsError) as raised:
            hasty.write_batch(run, 0, [row(out, b"slow")], {})

    assert not isinstance(raised.value, SupersededError)
    assert str(raised.value) == (
        f"application '{app}': the broker aborted a batch because it was not written within 3000 ms. To allow "
        "more time, set transaction.timeout.ms."
    )
    assert broker.write_batch(broker.begin_run(app, "x"), 0, [row(out, b"in time")], {}) is True
    assert values(broker, out) == [b"in time"]


# -- what fails --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5_000, 2_000_000], ids=["for the topic", "for the client"])
@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_a_record_that_is_too_large_is_told_and_its_batch_not_written(
    broker: KafkaBroker, app: str, lines: str, out: str, small: str, size: int, exactly_once: bool
) -> None:
    run = broker.begin_run(app, "x", exactly_once=exactly_once)
    broker.write_batch(run, 0, [row(out, b"0")], {lines: {0: 1}})

    with pytest.raises(TopicError) as raised:
        broker.write_batch(run, 1, [row(out, b"1"), row(small, bytes(size), 0), row(out, b"1")], {lines: {0: 2}})

    assert f"cannot write to topic '{small}' at localhost:" in str(raised.value)
    assert "Message size too large. The topic's max.message.bytes and the client's" in str(raised.value)
    assert broker.last_batch(app) == ("x", 0)
    assert broker.positions(app) == {lines: {0: 1}}
    assert values(broker, small) == []
    if exactly_once:
        assert values(broker, out) == [b"0"]
    again = broker.begin_run(app, "x", exactly_once=exactly_once)
    assert broker.write_batch(again, 1, [row(small, b"small enough")], {}) is True
    assert values(broker, small) == [b"small enough"]


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_the_timestamp_zero_is_refused_rather_than_changed(
    broker: KafkaBroker, app: str, out: str, exactly_once: bool
) -> None:
    run = broker.begin_run(app, "x", exactly_once=exactly_once)

    with pytest.raises(TopicError) as raised:
        broker.write_batch(run, 0, [row(out, b"v", times=MANY), (out, None, [(b"k", b"v", 0, None)])], {})

    assert str(raised.value) == (
        f"topic '{out}': records with the timestamp 0 cannot be written, because Kafka's client library "
        "takes 0 for 'now'"
    )
    assert broker.last_batch(app) == ("x", -1)
    if exactly_once:
        assert values(broker, out) == []


def test_a_topic_or_a_partition_that_is_not_there_is_told(broker: KafkaBroker, app: str, out: str) -> None:
    with pytest.raises(TopicError, match="there is no topic 'nope' at localhost:"):
        broker.write_batch(broker.begin_run(app, "x"), 0, [row(out, b"v"), row("nope", b"v")], {})
    with pytest.raises(
        TopicError, match=f"cannot write to topic '{out}' at localhost:.*: the partition does not exist"
    ):
        broker.write_batch(broker.begin_run(app, "x"), 0, [row(out, b"v"), row(out, b"v", 7)], {})
    assert values(broker, out) == []


def test_a_run_is_over_after_a_batch_that_failed(broker: KafkaBroker, app: str, out: str) -> None:
    run = broker.begin_run(app, "x")
    with pytest.raises(TopicError):
        broker.write_batch(run, 0, [row("nope", b"v")], {})

    with pytest.raises(StreamsError) as raised:
        broker.write_batch(run, 0, [row(out, b"v")], {})

    assert not isinstance(raised.value, SupersededError)
    assert str(raised.value) == f"run 1 of application '{app}' has ended because a batch failed"


def test_a_batch_that_is_interrupted_leaves_nothing(
    broker: KafkaBroker, app: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(open_run: OpenRun) -> None:
        raise KeyboardInterrupt

    run = broker.begin_run(app, "x")
    in_the_middle(monkeypatch, interrupt)

    with pytest.raises(KeyboardInterrupt):
        broker.write_batch(run, 0, [row(out, b"interrupted", times=MANY)], {})

    assert values(broker, out) == []
    assert broker.write_batch(broker.begin_run(app, "x"), 0, [row(out, b"again")], {}) is True
    assert values(broker, out) == [b"again"]


@pytest.mark.parametrize("moment", ["before", "in the middle"])
def test_a_batch_is_there_once_when_the_broker_is_killed_meanwhile(
    kafka: DevBroker, broker: KafkaBroker, app: str, out: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = broker.begin_run(app, "x")
    broker.write_batch(run, 0, [row(out, b"0", 0)], {})
    # A single broker that is killed right after a commit may skip the commit's markers when it comes back: it believes
    # that partitions that it does not lead yet were deleted. So it loses a commit that it has confirmed.
    settled(broker, out)
    starting = threading.Thread(target=kafka.start)

    def kill() -> None:
        kafka.kill()
        starting.start()

    if moment == "before":
        kill()
    else:
        in_the_middle(monkeypatch, lambda open_run: kill())
    try:
        with suppress(StreamsError):  # this may take longer than the wait
            broker.write_batch(run, 1, [row(out, b"1", 0, times=100)], {})
    finally:
        starting.join()

    again = broker.begin_run(app, "x")
    broker.write_batch(again, 1, [row(out, b"1", 0, times=100)], {})
    broker.write_batch(again, 2, [row(out, b"2", 0)], {})

    assert values(broker, out) == [b"0", *[b"1"] * 100, b"2"]
    assert broker.last_batch(app) == ("x", 2)


def test_a_run_that_cannot_begin_leaves_its_group(kafka: DevBroker, app: str) -> None:
    with KafkaBroker(kafka.address, **{"session.timeout.ms": 6_000}) as broker:
        with pytest.raises(TopicError, match="no name!"):
            broker.begin_run(app, "x", changelogs=[TopicInfo("no name!", 1)])

        wait_until(lambda: not has_member(kafka.address, app), "the group has a member")


# -- forgetting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_a_forgotten_application_begins_anew(
    kafka: DevBroker, broker: KafkaBroker, app: str, lines: str, out: str, exactly_once: bool
) -> None:
    changelog = TopicInfo(f"{app}-counts-changelog", 2, compact=True)
    with KafkaBroker(kafka.address, **{"socket.timeout.ms": 5_000}) as running:
        run = running.begin_run(app, "x", exactly_once=exactly_once, changelogs=[changelog])
        running.write_batch(run, 0, [row(out, b"0"), row(changelog.name, b"0")], {lines: {0: 5, 1: 6}})
        wait_until(lambda: committed(kafka, app, lines) == [5, 6], "the offsets were not committed")

        broker.forget_application(app)

        assert [name for name in broker.topics() if name.startswith(f"{app}-")] == []
        assert committed(kafka, app, lines) == [OFFSET_INVALID] * 2
        assert (broker.run_number(app), broker.last_batch(app), broker.positions(app)) == (0, None, {})
        with pytest.raises(SupersededError):
            running.write_batch(run, 1, [row(out, b"forgotten")], {})
        again = broker.begin_run(app, "x", exactly_once=exactly_once)
        assert broker.write_batch(again, 0, [row(out, b"anew")], {}) is True
        assert values(broker, out) == [b"0", b"anew"]


def test_topics_of_other_applications_are_left_alone(broker: KafkaBroker, app: str, out: str) -> None:
    longer = f"{app}-b"
    kept = [TopicInfo(f"{longer}-counts-changelog", 1, compact=True), TopicInfo(f"{longer}-commits", 2, compact=True)]
    broker.begin_run(app, "x", changelogs=[TopicInfo(f"{app}-counts-changelog", 1, compact=True)])
    other = broker.begin_run(longer, "x", changelogs=kept[:1])
    results = broker.create_topic(f"{app}-results")
    neighbours = broker.create_topic(f"{app}-java-sums-changelog", compact=True)  # of Kafka Streams' "<app>-java"

    broker.forget_application(app)
    broker.forget_application(unique("never-there"))

    left = {name: info for name, info in broker.topics().items() if name.startswith(f"{app}-")}
    assert left == {info.name: info for info in [*kept, results, neighbours]}
    assert broker.write_batch(other, 0, [row(out, b"other")], {}) is True
    assert broker.run_number(longer) == 1


def test_changelogs_of_former_stores_are_forgotten_too(broker: KafkaBroker, app: str) -> None:
    for run, store in enumerate(("sums", "counts"), start=1):
        broker.begin_run(app, "x", changelogs=[TopicInfo(f"{app}-{store}-changelog", 1, compact=True)])
        assert broker.run_number(app) == run

    broker.forget_application(app)

    assert [name for name in broker.topics() if name.startswith(f"{app}-")] == []
