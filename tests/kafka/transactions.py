"""Write transactions of others, and wait until none is open."""

import time
from collections.abc import Callable
from multiprocessing.synchronize import Event

from confluent_kafka import Producer

from headrace.brokers.kafka.broker import KafkaBroker
from headrace.brokers.kafka.connection import Connection

PATIENCE_SECONDS = 60


def transactional(address: str, transactional_id: str) -> Producer:
    """Return a producer of transactions that can begin one."""
    producer = Connection(address).producer(**{"transactional.id": transactional_id})
    producer.init_transactions(30)
    return producer


def write(producer: Producer, topic: str, *values: bytes, commit: bool | None, key: bytes | None = None) -> None:
    """Write records to the first partition in a transaction, and commit, abort, or leave it open."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, key, 0)
    producer.flush()
    if commit is not None:
        (producer.commit_transaction if commit else producer.abort_transaction)(30)


def write_and_wait(address: str, application_id: str, topic: str, written: Event) -> None:
    """Leave a transaction of an application open until this process is killed."""
    write(transactional(address, application_id), topic, *[b"open"] * 1_000, commit=None)
    written.set()
    time.sleep(PATIENCE_SECONDS)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def settled(broker: KafkaBroker, topic: str) -> dict[int, int]:
    """Wait until no transaction is open in a topic, and return where it ends: a commit shows a moment later."""
    start = {topic: dict.fromkeys(broker.end_offsets(topic), 0)}
    wait_until(
        lambda: broker.plan_batch(start, None)[topic] == broker.end_offsets(topic), f"'{topic}' has an open transaction"
    )
    return broker.end_offsets(topic)


def has_member(address: str, group: str) -> bool:
    """Tell whether a group has a member whose session is not over."""
    client = Connection(address).admin()  # which must live until it has answered
    return bool(client.describe_consumer_groups([group])[group].result(PATIENCE_SECONDS).members)
