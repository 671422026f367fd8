"""`topics`, `admin`, `patience` and `error_messages`: topics are created, listed, described and deleted."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import ConfigResource, ResourceType

from headrace.brokers import Broker, TopicInfo, connect
from headrace.brokers.kafka import KafkaBroker
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import readable_error
from headrace.brokers.kafka.topics import create_topic, end_offsets, find_topic
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import TopicError, UnavailableError
from tests.kafka.naming import unique

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]


def test_connect_opens_a_cluster(kafka: DevBroker) -> None:
    broker: Broker
    with connect(f"{kafka.address},localhost:1") as broker:
        assert isinstance(broker, KafkaBroker)
        broker.topics()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, (False, None)),
        ({"retention_ms": 1000}, (False, 1000)),
        ({"compact": True}, (True, None)),
        ({"compact": True, "retention_ms": 1000}, (True, 1000)),
    ],
    ids=["broker's own", "retention", "compacted", "both"],
)
def test_a_topic_is_what_it_was_created_as(broker: Broker, rules: Any, expected: tuple[bool, int | None]) -> None:
    name = unique("table")

    made = broker.create_topic(name, 3, **rules)

    assert made == TopicInfo(name, 3, *expected)
    assert broker.topics()[name] == made


def test_a_topic_can_be_used_at_once(broker: Broker) -> None:
    for _ in range(5):
        name = unique("lines")
        broker.create_topic(name, 2)
        assert broker.produce(name, [(None, b"v")]) == 1
        assert [record.value for record in broker.records(name)] == [b"v"]


def test_topics_are_listed_by_name_without_those_of_kafka(broker: Broker) -> None:
    names = [unique(letter) for letter in "bca"]
    for name in names:
        broker.create_topic(name)
    broker.produce(names[0], [(None, b"")])  # creates the topic of transactions

    listed = list(broker.topics())

    assert listed == sorted(listed)
    assert set(names) < set(listed)
    assert not [name for name in listed if name.startswith("__")]


def test_replicas_and_settings_may_be_given(kafka: DevBroker) -> None:
    name = unique("internal")
    admin = Admin(Connection(kafka.address))
    settings = {"segment.bytes": "1048576"}

    create_topic(admin, TopicInfo(name, 1, compact=True), replication_factor=1, settings=settings)

    resource = ConfigResource(ResourceType.TOPIC, name)
    found = admin.client.describe_configs([resource])[resource].result()
    assert (found["segment.bytes"].value, found["cleanup.policy"].value) == ("1048576", "compact")
    with pytest.raises(TopicError, match=r"cannot create topic '.*' at localhost:\d+: .*replication factor"):
        create_topic(admin, TopicInfo(unique("internal"), 1), replication_factor=3)


def test_a_deleted_topic_is_gone_and_made_anew_it_is_empty(broker: Broker) -> None:
    name = unique("lines")
    broker.create_topic(name, 2)
    broker.produce(name, [(None, b"old")])

    broker.delete_topic(name)
    assert name not in broker.topics()
    broker.create_topic(name)

    assert broker.end_offsets(name) == {0: 0}
    assert list(broker.records(name)) == []


def test_a_second_topic_of_a_name_is_refused(broker: Broker) -> None:
    name = unique("lines")
    broker.create_topic(name, 2)

    with pytest.raises(TopicError, match=f"topic '{name}' already exists at localhost:"):
        broker.create_topic(name, 5)
    assert broker.topics()[name].partitions == 2


@pytest.mark.parametrize("name", ["", "a b", "ü", "..", "x" * 250, None])
def test_a_name_that_kafka_would_refuse_is_refused(broker: Broker, name: Any) -> None:
    with pytest.raises(TopicError, match="expected a name of up to 249 letters, digits"):
        broker.create_topic(name)


def test_partitions_and_retention_are_checked(broker: Broker) -> None:
    with pytest.raises(TopicError, match="topic 'lines': expected at least 1 partition, got 0"):
        broker.create_topic("lines", 0)
    with pytest.raises(TopicError, match="topic 'lines': expected retention_ms of at least 0, got -1"):
        broker.create_topic("lines", retention_ms=-1)


@pytest.mark.parametrize(
    "call",
    [
        lambda broker, name: broker.delete_topic(name),
        lambda broker, name: broker.end_offsets(name),
        lambda broker, name: broker.produce(name, [(None, b"")]),
        lambda broker, name: broker.produce(name, []),
        lambda broker, name: broker.records(name),
    ],
    ids=["delete", "end offsets", "produce", "produce nothing", "records"],
)
@pytest.mark.parametrize("name", ["nope", "", "no name"])
def test_an_unknown_topic_is_an_error_that_names_some(broker: Broker, call: Any, name: str) -> None:
    broker.create_topic(unique("there"))

    with pytest.raises(TopicError, match=rf"there is no topic '{name}' at localhost:\d+ \(topics: \S+"):
        call(broker, name)
    assert "nope" not in broker.topics()  # asking for a topic does not create it


def test_a_closed_broker_says_so(kafka: DevBroker) -> None:
    broker = connect(kafka.address)
    broker.topics()
    broker.close()
    broker.close()

    with pytest.raises(TopicError, match=f"the broker at {kafka.address} was closed"):
        broker.topics()


def test_a_forked_process_is_told_to_open_its_own(broker: Broker) -> None:
    broker.topics()
    reading, writing = os.pipe()

    child = os.fork()
    if child == 0:
        try:
            broker.topics()
        except TopicError as error:
            os.write(writing, str(error).encode())
        broker.close()
        os._exit(0)
    os.close(writing)
    assert os.waitpid(child, 0) == (child, 0)

    with os.fdopen(reading, "rb") as said:
        assert said.read().endswith(b"was opened by another process. Call connect() in this one.")


def test_a_broker_that_dies_over_a_question_gives_no_offsets(kafka: DevBroker, broker: KafkaBroker) -> None:
    """Kafka's client then answers without an error, with an offset that is not valid."""
    name = unique("lines")
    broker.create_topic(name)
    broker.produce(name, [(None, b"")] * 3)
    admin = Admin(Connection(kafka.address, {"socket.timeout.ms": 2000}))
    topic, answers, asked, stop = find_topic(admin, name), set(), Event(), Event()

    def ask() -> None:
        while not stop.is_set():
            answers.add(end_offsets(admin, topic)[0])
            asked.set()

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]  # so that a request is always open
        try:
            assert asked.wait(30)
            kafka.kill()
            errors = [one.exception(60) for one in asking]
        finally:
            stop.set()
            kafka.start()  # other tests need the broker

    assert answers == {3}
    assert {type(error) for error in errors} == {UnavailableError}
    assert end_offsets(admin, topic) == {0: 3}


@pytest.mark.parametrize("code", [KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_ENOUGH_REPLICAS])
def test_a_cluster_that_is_not_ready_is_waited_for(code: int) -> None:
    error = readable_error(KafkaError(code), Connection("localhost:1"), "write a batch")

    assert isinstance(error, UnavailableError)
    assert "cannot write a batch at localhost:1: the cluster is not ready (Broker: " in str(error)
