"""`task_transactions` and `batch_producer`: tasks write in place, once, and only for the latest run."""

import multiprocessing
import pickle
import threading
import time
from multiprocessing.synchronize import Event

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from headrace.brokers.kafka import batch_producer
from headrace.brokers.kafka.batch_producer import BatchProducer
from headrace.brokers.kafka.broker import KafkaBroker
from headrace.brokers.kafka.patience import returns_in_time
from headrace.brokers.kafka.task_transactions import KafkaPermit, KafkaTaskTransaction
from headrace.brokers.runs import Run
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import SupersededError, TopicError, UnavailableError
from headrace.partitioning import partition_of
from tests.kafka.naming import unique
from tests.kafka.transactions import PATIENCE_SECONDS, has_member, settled, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]


@pytest.fixture
def out(broker: KafkaBroker) -> str:
    return broker.create_topic(unique("out"), 2).name


def write(broker: KafkaBroker, permit: KafkaPermit, batch: int, topic: str, **by_task: bytes) -> int:
    """Let each task write a record, all in one transaction. Return how many were written."""
    with broker.begin_task_transaction(permit, batch) as writing:
        written = [writing.send(task, topic, 0, [(b"k", value, 5, None)]) for task, value in by_task.items()]
        writing.commit()
        return sum(written)


def values(broker: KafkaBroker, topic: str) -> list[bytes | None]:
    """Return the committed values once no transaction is open."""
    settled(broker, topic)
    return [record.value for record in broker.records(topic)]


def test_records_of_tasks_show_once_they_are_committed(broker: KafkaBroker, app: str, out: str) -> None:
    permit = broker.permit(broker.begin_run(app, "x"))

    assert write(broker, permit, 0, out, a=b"a0", b=b"b0") == 2
    assert write(broker, permit, 1, out, a=b"a1") == 1

    assert values(broker, out) == [b"a0", b"b0", b"a1"]


def test_records_without_a_key_take_the_partitions_in_turn(broker: KafkaBroker, app: str, out: str) -> None:
    permit = broker.permit(broker.begin_run(app, "x"))
    keys = [None, b"ann", None, b"zoe", None]

    with broker.begin_task_transaction(permit, 0) as writing:
        writing.send("a", out, None, [(key, b"%d" % number, 5, None) for number, key in enumerate(keys)])
        writing.commit()

    settled(broker, out)
    found = {record.value: record.partition for record in broker.records(out)}
    assert found == {b"0": 0, b"1": partition_of(b"ann", 2), b"2": 1, b"3": partition_of(b"zoe", 2), b"4": 0}


@pytest.mark.parametrize("exactly_once", [True, False])
def test_nothing_of_a_batch_with_a_timestamp_of_0_is_written(
    broker: KafkaBroker, app: str, out: str, exactly_once: bool
) -> None:
    permit = broker.permit(broker.begin_run(app, "x", exactly_once=exactly_once))

    with (
        pytest.raises(TopicError, match="records with the timestamp 0 cannot be written"),
        broker.begin_task_transaction(permit, 0) as writing,
    ):
        writing.send("a", out, 0, [(b"k", b"good", 5, None), (b"k", b"bad", 0, None)])

    assert values(broker, out) == []


def test_a_process_keeps_its_producer_open(broker: KafkaBroker, app: str, out: str) -> None:
    permit = broker.permit(broker.begin_run(app, "x"))
    write(broker, permit, 0, out, a=b"0")
    first = broker._task_producers._idle[permit.run]

    write(broker, permit, 1, out, a=b"1")

    assert len(first) == 1
    assert broker._task_producers._idle[permit.run] == first


def test_a_permit_goes_to_other_processes(kafka: DevBroker, broker: KafkaBroker, app: str, out: str) -> None:
    permit = pickle.loads(pickle.dumps(broker.permit(broker.begin_run(app, "x"))))

    with KafkaBroker(kafka.address) as worker:
        write(worker, permit, 0, out, a=b"0")

    assert values(broker, out) == [b"0"]


def test_a_task_that_has_written_its_part_of_a_batch_does_not_write_it_again(
    broker: KafkaBroker, elsewhere: KafkaBroker, app: str, out: str
) -> None:
    run = broker.begin_run(app, "x")
    permit = broker.permit(run)
    write(broker, permit, 0, out, a=b"a0", b=b"b0")
    broker.write_batch(run, 0, [], {})
    write(broker, permit, 1, out, a=b"a1")  # then the application died, before b wrote

    elsewhere.begin_run(app, "x")  # this run died, too
    again = elsewhere.begin_run(app, "x")
    permit = elsewhere.permit(again)

    assert write(elsewhere, permit, 0, out, a=b"a0 again", b=b"b0 again") == 0
    assert write(elsewhere, permit, 1, out, a=b"a1 again", b=b"b1") == 1
    assert elsewhere.write_batch(again, 1, [], {}) is True
    assert write(elsewhere, permit, 2, out, a=b"a2", b=b"b2") == 2
    assert values(broker, out) == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]


def test_no_tool_shows_a_lag_for_the_offsets_that_fence_older_runs(
    kafka: DevBroker, broker: KafkaBroker, app: str, out: str
) -> None:
    run = broker.begin_run(app, "x")
    permit = broker.permit(run)
    for batch in range(3):
        write(broker, permit, batch, out, a=b"%d" % batch)
        broker.write_batch(run, batch, [], {out: {0: 5}})

    with KafkaBroker(kafka.address) as other:
        groups = other._admin().client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(app)])
        offsets = {(at.topic, at.partition): at.offset for at in groups[app].result().topic_partitions}
    assert offsets == {(out, 0): 5, (f"{app}-commits", 1): 0}
    assert broker.end_offsets(f"{app}-commits")[1] == 0


def test_in_another_lineage_the_same_batch_is_another_one(broker: KafkaBroker, app: str, out: str) -> None:
    write(broker, broker.permit(broker.begin_run(app, "x")), 0, out, a=b"x")

    write(broker, broker.permit(broker.begin_run(app, "y")), 0, out, a=b"y")

    assert values(broker, out) == [b"x", b"y"]


def test_markers_of_many_batches_are_found(broker: KafkaBroker, app: str, out: str) -> None:
    run = broker.begin_run(app, "x")
    permit = broker.permit(run)
    names = [f"task{number}" for number in range(150)]

    write(broker, permit, 0, out, **dict.fromkeys(names, b"0"))

    assert broker.last_batch(app) == ("x", -1)
    assert set(broker.permit(broker.begin_run(app, "x")).done) == set(names)


# -- other runs --------------------------------------------------------------------------------------------------------


def test_tasks_of_an_older_run_are_refused(broker: KafkaBroker, elsewhere: KafkaBroker, app: str, out: str) -> None:
    older = broker.permit(broker.begin_run(app, "x"))
    write(broker, older, 0, out, a=b"0")
    newer = elsewhere.permit(elsewhere.begin_run(app, "x"))

    with pytest.raises(SupersededError, match="was started again elsewhere"):
        write(broker, older, 1, out, a=b"older")

    assert write(elsewhere, newer, 1, out, a=b"newer") == 1
    assert values(broker, out) == [b"0", b"newer"]


def test_a_run_that_begins_in_the_middle_of_a_transaction_takes_it_back(
    broker: KafkaBroker, elsewhere: KafkaBroker, app: str, out: str
) -> None:
    older = broker.permit(broker.begin_run(app, "x"))

    def write_slowly() -> Run:
        with broker.begin_task_transaction(older, 0) as writing:
            writing.send("a", out, 0, [(b"k", b"older", 5, None)])
            began = flushed_and_then(writing, elsewhere, app)
            with pytest.raises(SupersededError, match="was started again elsewhere"):
                writing.commit()
        return began

    newer = elsewhere.permit(write_slowly())

    assert write(elsewhere, newer, 0, out, a=b"newer") == 1
    assert values(broker, out) == [b"newer"]


def flushed_and_then(writing: KafkaTaskTransaction, elsewhere: KafkaBroker, app: str) -> Run:
    """Begin another run while a transaction is open at the broker."""
    assert writing._producer is not None
    writing._producer.flush()
    return elsewhere.begin_run(app, "x")


def test_a_commit_that_the_broker_has_accepted_is_waited_for(
    broker: KafkaBroker, elsewhere: KafkaBroker, app: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task commits while the next run begins. The first one wins, and both agree on which that was."""
    older = broker.permit(broker.begin_run(app, "x"))
    commit = BatchProducer.commit
    began: list[Run] = []

    def late(producer: BatchProducer) -> None:
        if producer.id is not None and producer.id != app and not began:
            began.append(elsewhere.begin_run(app, "x"))  # its offsets are written, only the commit is missing
        commit(producer)

    monkeypatch.setattr(BatchProducer, "commit", late)

    with pytest.raises(SupersededError):
        write(broker, older, 0, out, a=b"older")

    newer = elsewhere.permit(began[0])
    assert write(elsewhere, newer, 0, out, a=b"newer") == 1
    assert values(broker, out) == [b"newer"]


def leave_open(address: str, permit: KafkaPermit, topic: str, written: Event) -> None:
    """Simulate a worker that is killed in the middle of its transaction."""
    with KafkaBroker(address) as broker, broker.begin_task_transaction(permit, 0) as writing:
        writing.send("a", topic, 0, [(b"k", b"open", 5, None)] * 1_000)
        assert writing._producer is not None
        writing._producer.flush()
        written.set()
        time.sleep(PATIENCE_SECONDS)


def test_the_next_run_aborts_transactions_of_a_killed_worker(
    kafka: DevBroker, broker: KafkaBroker, app: str, out: str
) -> None:
    permit = broker.permit(broker.begin_run(app, "x"))
    processes = multiprocessing.get_context("spawn")
    written = processes.Event()
    process = processes.Process(target=leave_open, args=(kafka.address, permit, out, written))
    process.start()
    assert written.wait(PATIENCE_SECONDS)
    process.kill()
    process.join()
    end = broker.end_offsets(out)[0]
    assert broker.plan_batch({out: {0: 0}}, None)[out][0] < end  # it is open

    again = broker.permit(broker.begin_run(app, "x"))

    assert settled(broker, out)[0] > end  # the marker of the abort follows
    assert write(broker, again, 0, out, a=b"0") == 1
    assert values(broker, out) == [b"0"]


def test_a_run_that_the_broker_has_not_heard_of_can_be_begun_again(
    kafka: DevBroker, broker: KafkaBroker, app: str, out: str
) -> None:
    with KafkaBroker(kafka.address, **{"session.timeout.ms": 6_000}) as silent:
        permit = silent.permit(silent.begin_run(app, "x"))
        silent._runs.end(app)  # as if asleep
        wait_until(lambda: not has_member(kafka.address, app), "the member is still there")

    with pytest.raises(UnavailableError, match=r"has not heard from it for longer than session\.timeout\.ms"):
        write(broker, permit, 0, out, a=b"0")

    assert write(broker, broker.permit(broker.begin_run(app, "x")), 0, out, a=b"0") == 1
    assert values(broker, out) == [b"0"]


# -- what fails --------------------------------------------------------------------------------------------------------


def test_a_transaction_without_a_commit_is_aborted(broker: KafkaBroker, app: str, out: str) -> None:
    permit = broker.permit(broker.begin_run(app, "x"))

    with broker.begin_task_transaction(permit, 0) as writing:
        writing.send("a", out, 0, [(b"k", b"half", 5, None)])

    assert write(broker, permit, 0, out, a=b"whole") == 1
    assert values(broker, out) == [b"whole"]


def test_a_record_that_is_refused_is_told_and_none_of_the_transaction_is_there(
    broker: KafkaBroker, app: str, out: str
) -> None:
    permit = broker.permit(broker.begin_run(app, "x"))

    with pytest.raises(TopicError, match=f"cannot write to topic '{out}'.*Message size too large"):
        write(broker, permit, 0, out, a=b"a", b=bytes(2_000_000))

    assert write(broker, permit, 0, out, a=b"a", b=b"b") == 2
    assert values(broker, out) == [b"a", b"b"]


def test_a_client_that_does_not_come_back_is_given_up(
    broker: KafkaBroker, app: str, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    permit = broker.permit(broker.begin_run(app, "x"))
    write(broker, permit, 0, out, a=b"0")
    released = threading.Event()
    monkeypatch.setattr(batch_producer, "returns_in_time", lambda call, seconds: returns_in_time(released.wait, 0.1))

    with pytest.raises(UnavailableError, match="cannot commit the offsets: no answer from localhost:"):
        write(broker, permit, 1, out, a=b"1")

    released.set()
    monkeypatch.undo()
    again = broker.permit(broker.begin_run(app, "x"))
    assert write(broker, again, 1, out, a=b"1 again") == 1
    assert values(broker, out) == [b"0", b"1 again"]


def test_without_transactions_records_are_there_at_once(broker: KafkaBroker, app: str, out: str) -> None:
    permit = broker.permit(broker.begin_run(app, "x", exactly_once=False))

    assert write(broker, permit, 0, out, a=b"0") == 1

    assert [record.value for record in broker.records(out)] == [b"0"]
    assert [offset for offset in broker.end_offsets(out).values() if offset] == [1]  # no marker of a transaction
