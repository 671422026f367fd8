"""`batch_ends` and `record_times`: a batch that cannot hold all waiting records ends at one time in all partitions."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from confluent_kafka import TopicPartition

from headrace.brokers.kafka.batch_ends import BatchEndFinder
from headrace.brokers.kafka.broker import KafkaBroker
from headrace.brokers.kafka.connection import Connection
from headrace.dev.kafka_broker import DevBroker
from headrace.errors import TopicError, UnavailableError
from tests.kafka.naming import unique
from tests.kafka.transactions import settled, transactional, write

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

Ends = dict[str, dict[int, int]]
BEGIN = 1_700_000_000_000
HOUR = 3_600_000


@pytest.fixture
def lines(broker: KafkaBroker) -> str:
    return broker.create_topic(unique("lines"), 2).name


def filled(broker: KafkaBroker, *partitions: Sequence[int]) -> str:
    """Create a topic whose partitions have records with these timestamps."""
    topic = broker.create_topic(unique("times"), len(partitions)).name
    for number, times in enumerate(partitions):
        broker.produce(topic, [(None, b"", time) for time in times], number)
    return topic


def spread(count: int, begin: int, end: int) -> list[int]:
    """Return this many times between two times, in order."""
    rng = random.Random(count)
    return sorted(rng.randrange(begin, end) for _ in range(count))


def delete_before(kafka: DevBroker, topic: str, partition: int, offset: int) -> None:
    admin = Connection(kafka.address).admin()
    for done in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        done.result()


@dataclass(frozen=True)
class Batches:
    """The sizes of all batches that were planned."""

    sizes: list[int]
    requests: list[int]
    """How many requests each batch took."""


def planned(broker: KafkaBroker, times: Mapping[str, Sequence[Sequence[int]]], limit: int) -> Batches:
    """Plan batches until the end. Check that each one advances, and that no record belongs to an earlier batch.

    The times of a partition's records only grow, or count as what they would be if they did.
    """
    at: Ends = {topic: dict.fromkeys(range(len(parts)), 0) for topic, parts in times.items()}
    result = Batches([], [])
    reached = 0
    while True:
        with patch.object(BatchEndFinder, "_plan", counting(result.requests)):
            ends = broker.plan_batch(at, limit)
            if broker._planner._planned_ahead is not None:
                broker._planner._planned_ahead[1].result()
        taken: list[int] = []
        left: list[int] = []
        for topic, places in at.items():
            assert ends[topic].keys() == places.keys()
            for partition, begin in places.items():
                known = running_highest(times[topic][partition])
                assert begin <= ends[topic][partition] <= len(known)
                taken += known[begin : ends[topic][partition]]
                left += known[ends[topic][partition] :]
        if not taken:
            assert not left
            return result
        assert len(taken) <= limit
        assert max(taken) <= min(left, default=max(taken))
        assert max(taken) >= reached
        reached = max(taken)
        result.sizes.append(len(taken))
        at = ends


def counting(requests: list[int]) -> Callable[..., Ends]:
    """Return a `_plan` that counts its requests."""
    plan, ask = BatchEndFinder._plan, BatchEndFinder._ask

    def counted(planner: BatchEndFinder, *given: Any) -> Any:
        with patch.object(BatchEndFinder, "_ask", autospec=True, side_effect=ask) as asked:
            ends = plan(planner, *given)
        requests.append(asked.call_count)
        return ends

    return counted


def running_highest(times: Sequence[int]) -> list[int]:
    highest = 0
    return [highest := max(highest, time) for time in times]


# -- without a limit ---------------------------------------------------------------------------------------------------


def test_without_a_limit_a_batch_is_all_that_is_committed(broker: KafkaBroker) -> None:
    one, other = filled(broker, [5, 6], [1]), filled(broker, [9])
    empty = broker.create_topic(unique("empty"), 2).name

    assert broker.plan_batch({one: {0: 0, 1: 0}, other: {0: 0}}, None) == {one: {0: 2, 1: 1}, other: {0: 1}}
    assert broker.plan_batch({one: {0: 1}, empty: {0: 0, 1: 0}}, None) == {one: {0: 2}, empty: {0: 0, 1: 0}}
    assert broker.plan_batch({}, None) == {}


@pytest.mark.parametrize("limit", [None, 100, 2])
def test_an_open_transaction_is_not_passed(
    kafka: DevBroker, broker: KafkaBroker, lines: str, limit: int | None
) -> None:
    transactions = transactional(kafka.address, unique("test"))
    broker.produce(lines, [(None, b"before", 1)] * 2, 0)
    write(transactions, lines, b"open", b"open", commit=None)
    broker.produce(lines, [(None, b"after", 1)] * 2, 0)
    start = {lines: {0: 0, 1: 0}}

    assert broker.plan_batch(start, limit) == {lines: {0: 2, 1: 0}}
    transactions.commit_transaction(30)
    settled(broker, lines)
    assert broker.plan_batch(start, None) == {lines: {0: 7, 1: 0}}


@pytest.mark.parametrize("limit", [None, 1])
def test_an_offset_after_the_end_stays(broker: KafkaBroker, limit: int | None) -> None:
    topic = filled(broker, [1], [1])

    assert broker.plan_batch({topic: {0: 7, 1: 0}}, limit) == {topic: {0: 7, 1: 1}}


def test_a_topic_that_is_not_there_is_told(broker: KafkaBroker) -> None:
    topic = filled(broker, [1])

    for start in ({"nope": {0: 0}}, {"nope": {0: 0}, topic: {0: 0}}):
        with pytest.raises(TopicError, match="there is no topic 'nope' at localhost:"):
            broker.plan_batch(start, 10)


# -- with a limit ------------------------------------------------------------------------------------------------------


def test_partitions_of_uneven_rates_are_cut_at_one_time(broker: KafkaBroker) -> None:
    one = [
        spread(30_000, BEGIN, BEGIN + 10 * HOUR),
        spread(300, BEGIN, BEGIN + 10 * HOUR),
        spread(3, BEGIN, BEGIN + 10 * HOUR),
        [],
    ]
    other = [spread(10_000, BEGIN + 5 * HOUR, BEGIN + 6 * HOUR)]
    times = {filled(broker, *one): one, filled(broker, *other): other}

    found = planned(broker, times, 4_000)

    assert sum(found.sizes) == 40_303
    assert len(found.sizes) < 20  # batches are not too small
    assert found.requests[0] < 10
    assert sum(found.requests) / len(found.requests) < 5


def test_records_that_come_evenly_take_one_request_more_than_to_see_how_many_there_are(broker: KafkaBroker) -> None:
    parts = [spread(20_000, BEGIN, BEGIN + HOUR) for _ in range(3)]

    found = planned(broker, {filled(broker, *parts): parts}, 3_000)

    assert found.requests[0] <= 5
    assert sum(found.requests) / len(found.requests) < 3


CASES: dict[str, tuple[list[list[int]], int]] = {
    "all of one time": ([[BEGIN] * 1_000, [BEGIN] * 10, []], 300),
    "many of one time among others": (
        [[*spread(500, BEGIN, BEGIN + HOUR), *[BEGIN + HOUR] * 2_000, *spread(500, BEGIN + HOUR, BEGIN + 2 * HOUR)]]
        * 2,
        300,
    ),
    "whole seconds": ([[time // 1000 * 1000 for time in spread(3_000, BEGIN, BEGIN + HOUR // 60)]] * 2, 250),
    "one of the future at the beginning": (
        [[BEGIN + 2 * HOUR, *spread(3_000, BEGIN, BEGIN + HOUR)], spread(3_000, BEGIN, BEGIN + HOUR)],
        500,
    ),
    "one of the future at the end": ([[*spread(3_000, BEGIN, BEGIN + HOUR), BEGIN + 10_000 * HOUR]] * 2, 500),
    "one of long ago at the beginning": ([[1, *spread(3_000, BEGIN, BEGIN + HOUR)]] * 2, 500),
    "in any order": ([[*reversed(spread(1_000, BEGIN, BEGIN + HOUR))], spread(1_000, BEGIN, BEGIN + HOUR)], 100),
    "in bursts": ([[BEGIN + hour * HOUR + n for hour in range(5) for n in range(300)]] * 3, 400),
    "a limit of one": ([spread(15, BEGIN, BEGIN + HOUR), [BEGIN] * 5, spread(5, BEGIN + HOUR, BEGIN + 2 * HOUR)], 1),
    "more partitions than the limit": ([[BEGIN, BEGIN + 1]] * 6, 2),
}


@pytest.mark.parametrize(("parts", "limit"), CASES.values(), ids=CASES)
def test_batches_advance_and_end_at_one_time(broker: KafkaBroker, parts: list[list[int]], limit: int) -> None:
    topic = filled(broker, *parts)

    found = planned(broker, {topic: parts, broker.create_topic(unique("empty")).name: [[]]}, limit)

    assert sum(found.sizes) == sum(map(len, parts))
    assert max(found.requests) < 20


def test_records_that_arrive_during_a_batch_are_in_the_next_one_even_if_planned_ahead(broker: KafkaBroker) -> None:
    topic = filled(broker, [1, 2, 3, 4])
    first = broker.plan_batch({topic: {0: 0}}, 3)
    assert broker._planner._planned_ahead is not None
    broker._planner._planned_ahead[1].result()  # it has seen one more record
    broker.produce(topic, [(None, b"", time) for time in (5, 6)])

    assert first == {topic: {0: 3}}
    assert broker.plan_batch(first, 3) == {topic: {0: 6}}


def test_a_plan_ahead_that_failed_is_made_again(broker: KafkaBroker) -> None:
    topic = filled(broker, [1, 2, 3, 4, 5, 6, 7])
    with patch.object(BatchEndFinder, "_plan", side_effect=[{(topic, 0): 3}, UnavailableError("away")]):
        broker._planner._last = {(topic, 0): 3}
        first = broker.plan_batch({topic: {0: 0}}, 3)
        assert broker._planner._planned_ahead is not None
        broker._planner._planned_ahead[1].exception()

    assert broker.plan_batch(first, 3) == {topic: {0: 6}}


def test_a_time_that_a_batch_can_hold_is_not_divided(broker: KafkaBroker) -> None:
    topic = filled(broker, [1, 2, 2, 2, 3], [2, 2, 4])

    ends = [broker.plan_batch({topic: {0: 0, 1: 0}}, limit)[topic] for limit in (1, 2, 5, 6, 7)]

    assert ends == [{0: 1, 1: 0}, {0: 1, 1: 0}, {0: 1, 1: 0}, {0: 4, 1: 2}, {0: 4, 1: 2}]


def test_where_one_time_has_too_much_each_partition_gives_its_share(broker: KafkaBroker) -> None:
    topic = filled(broker, [5] * 300, [5] * 100)

    assert broker.plan_batch({topic: {0: 0, 1: 0}}, 40) == {topic: {0: 30, 1: 10}}


def test_planning_goes_on_in_the_middle_of_what_there_is(kafka: DevBroker, broker: KafkaBroker) -> None:
    times = [spread(30_000, BEGIN, BEGIN + 100 * HOUR), spread(10_000, BEGIN, BEGIN + 100 * HOUR)]
    topic = filled(broker, *times)
    half = broker.plan_batch({topic: {0: 0, 1: 0}}, 20_000)
    ask = BatchEndFinder._ask

    with (
        KafkaBroker(kafka.address) as fresh,
        patch.object(BatchEndFinder, "_ask", autospec=True, side_effect=ask) as asked,
    ):
        ends = fresh.plan_batch(half, 1_000)[topic]

    assert 500 < sum(ends.values()) - sum(half[topic].values()) <= 1_000
    assert asked.call_count < 10
    assert max(times[number][end - 1] for number, end in ends.items()) <= min(
        times[number][end] for number, end in ends.items()
    )


def test_applications_may_plan_over_one_connection(broker: KafkaBroker) -> None:
    times = spread(2_000, BEGIN, BEGIN + HOUR)
    topics = filled(broker, times), filled(broker, [time + 50 * HOUR for time in times])
    at = dict.fromkeys(topics, 0)

    while min(at.values()) < 2_000:
        for topic in topics:
            end = broker.plan_batch({topic: {0: at[topic]}}, 300)[topic][0]
            assert at[topic] < end <= at[topic] + 300 or end == 2_000
            at[topic] = end


def test_old_records_of_transactions_advance(kafka: DevBroker, broker: KafkaBroker) -> None:
    # Kafka counts the end of a transaction as a record with the time of the commit.
    topic = broker.create_topic(unique("old"), 2).name
    transactions = transactional(kafka.address, unique("test"))
    for begin in range(BEGIN, BEGIN + 500, 50):
        transactions.begin_transaction()
        for time in range(begin, begin + 50):
            transactions.produce(topic, b"", partition=time % 2, timestamp=time)
        transactions.commit_transaction(30)
    end = settled(broker, topic)
    at: Ends = {topic: {0: 0, 1: 0}}
    batches = 0
    while at[topic] != end:
        ends = broker.plan_batch(at, 100)
        assert 0 < sum(ends[topic].values()) - sum(at[topic].values()) <= 100
        at, batches = ends, batches + 1

    assert batches < 15


def test_old_records_after_transactions_that_ended_in_turn_are_cut_at_one_time(
    kafka: DevBroker, broker: KafkaBroker
) -> None:
    # Kafka finds every earlier time at the end of these transactions, in one partition some milliseconds later.
    topic = broker.create_topic(unique("old"), 2).name
    transactions = transactional(kafka.address, unique("test"))
    for number in (0, 1):
        transactions.begin_transaction()
        transactions.produce(topic, b"", partition=number, timestamp=BEGIN - 1)
        transactions.commit_transaction(30)
        settled(broker, topic)
    begin = broker.end_offsets(topic)
    transactions.begin_transaction()
    for time in range(BEGIN, BEGIN + 4_000):
        transactions.produce(topic, b"", partition=time % 2, timestamp=time)
    transactions.commit_transaction(30)
    end = settled(broker, topic)
    at: Ends = {topic: begin}
    taken = []
    while at[topic] != end:
        ends = broker.plan_batch(at, 1_000)
        taken.append([ends[topic][number] - at[topic][number] for number in (0, 1)])
        at = ends

    assert len(taken) < 8
    assert all(abs(first - second) < 5 for first, second in taken)


@pytest.mark.parametrize("aborts", [False, True], ids=["all committed", "some aborted"])
def test_old_records_of_transactions_are_cut_at_one_time(kafka: DevBroker, broker: KafkaBroker, aborts: bool) -> None:
    rng = random.Random(5)
    parts = [spread(6_000, BEGIN, BEGIN + HOUR), spread(2_000, BEGIN, BEGIN + HOUR)]
    topic = broker.create_topic(unique("old"), 2).name
    transactions = transactional(kafka.address, unique("test"))
    waiting = [list(times) for times in parts]
    while any(waiting):
        transactions.begin_transaction()
        for number, times in enumerate(waiting):
            for time in times[: rng.randrange(1, 2_000)]:
                transactions.produce(topic, b"", partition=number, timestamp=time)
                times.remove(time)
        (transactions.abort_transaction if aborts and rng.random() < 0.4 else transactions.commit_transaction)(30)
    end = settled(broker, topic)
    rows = {
        number: [row for page in broker.read_range(topic, number, 0, end[number]) for row in page] for number in end
    }
    at: Ends = {topic: {0: 0, 1: 0}}

    while at[topic] != end:
        ends = broker.plan_batch(at, 1_000)
        taken = [row[1] for number in end for row in rows[number] if at[topic][number] <= row[0] < ends[topic][number]]
        left = [row[1] for number in end for row in rows[number] if row[0] >= ends[topic][number]]
        # Aborted records have no time, so the ends are only about the same.
        assert max(taken, default=0) <= min(left, default=BEGIN + HOUR) + (HOUR // 4 if aborts else 0)
        assert ends != at
        assert len(taken) <= 1_000
        at = ends


def test_a_transaction_that_shows_a_moment_later_is_waited_for(kafka: DevBroker, broker: KafkaBroker) -> None:
    times = spread(2_000, BEGIN, BEGIN + HOUR)
    topic = filled(broker, times, [])
    transactions = transactional(kafka.address, unique("test"))
    transactions.begin_transaction()
    for time in times:
        transactions.produce(topic, b"", partition=1, timestamp=time)
    transactions.flush()
    commit = threading.Timer(0.3, transactions.commit_transaction, (30,))
    commit.start()

    ends = broker.plan_batch({topic: {0: 0, 1: 0}}, 1_000)[topic]

    commit.join()
    assert 0 < ends[0] == ends[1]


# -- what is gone ------------------------------------------------------------------------------------------------------


def test_nothing_is_missing_from_what_is_there(broker: KafkaBroker) -> None:
    topic = filled(broker, [1, 2, 3], [])

    assert broker.missing({topic: {0: 0, 1: 0}}) == {}
    assert broker.missing({topic: {0: 3}}) == {}
    assert broker.missing({}) == {}


def test_records_deleted_before_they_were_read_are_missing(kafka: DevBroker, broker: KafkaBroker) -> None:
    topic = filled(broker, range(1, 11), range(1, 11))
    delete_before(kafka, topic, 0, 4)

    assert broker.missing({topic: {0: 0, 1: 0}}) == {topic: {0: 4}}
    assert broker.missing({topic: {0: 4, 1: 0}}) == {}
    delete_before(kafka, topic, 0, 10)
    assert broker.missing({topic: {0: 4, 1: 0}}) == {topic: {0: 10}}
    assert broker.missing({topic: {0: 10, 1: 0}}) == {}


def test_records_that_were_read_and_lost_are_missing(broker: KafkaBroker) -> None:
    topic = filled(broker, [1, 2, 3], [1])

    assert broker.missing({topic: {0: 7, 1: 0}}) == {topic: {0: 3}}


def test_a_start_after_an_open_transaction_misses_nothing(kafka: DevBroker, broker: KafkaBroker, lines: str) -> None:
    transactions = transactional(kafka.address, unique("test"))
    write(transactions, lines, b"open", commit=None)

    assert broker.missing({lines: broker.end_offsets(lines)}) == {}
    transactions.abort_transaction(30)
    settled(broker, lines)
