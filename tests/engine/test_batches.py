"""Which records a batch reads: topics that appear later, and records that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.brokers import LocalBroker, connect
from headrace.errors import TopicError
from tests.engine.planning import Query, read_plan


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    with connect(f"local:{tmp_path / 'topics.db'}") as broker:
        assert isinstance(broker, LocalBroker)
        yield broker


@pytest.fixture
def query(broker: LocalBroker) -> Query:
    broker.create_topic("in", 1)
    return Query(read_plan({"in": [[0]]}, resets={"in": "earliest", "later": "latest"}), broker)


def test_a_batch_reads_what_came_since_the_last(query: Query) -> None:
    query.add("in", 3)
    assert query.batch() == {("in", 0): (0, 3)}
    assert query.batch() is None
    query.add("in", 2)
    assert query.batch() == {("in", 0): (3, 5)}


def test_the_first_batch_may_have_nothing_to_read(query: Query) -> None:
    assert query.plan() is None
    assert query.read(query.end) == {}  # Spark has no batch before it to compare with


def test_a_topic_that_comes_later_begins_at_its_end_of_that_moment(query: Query, broker: LocalBroker) -> None:
    broker.create_topic("later", 1)
    query.add("later", 2)
    query.restart(tasks={"in": [[0]], "later": [[0]]})
    assert query.batch() == {}  # to keep where it begins, though nothing has come

    query.add("later", 3)
    assert query.batch() == {("later", 0): (2, 5)}


def test_a_partition_that_comes_later_begins_with_its_first_record(query: Query, broker: LocalBroker) -> None:
    broker.create_topic("later", 2)
    query.restart(tasks={"later": [[0]]})
    query.batch()
    query.add("later", 3, partition=1)
    query.restart(tasks={"later": [[0], [1]]})

    assert query.batch() == {("later", 1): (0, 3)}


def test_a_batch_that_is_run_again_begins_where_it_began(query: Query, broker: LocalBroker) -> None:
    broker.create_topic("later", 1)
    query.restart(tasks={"later": [[0]]})
    query.begin()
    query.add("later", 3)
    end = query.planned()

    query.restart()
    query.begin()  # Spark asks again, as long as no batch is done

    assert query.read(end) == {("later", 0): (0, 3)}


def test_none_never_begins(query: Query, broker: LocalBroker) -> None:
    broker.create_topic("new", 1)
    query.restart(tasks={"in": [[0]], "new": [[0]]}, resets={"in": "none", "new": "none"})

    with pytest.raises(TopicError, match="topic 'new' was never read, and its offset reset is 'none'"):
        query.plan()


# -- records that are gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_batch_planned_for_a_topic_does_not_read_the_one_made_anew(
    query: Query, broker: LocalBroker, goes_on: bool
) -> None:
    query.add("in", 3)
    end = query.planned()
    broker.delete_topic("in")
    broker.create_topic("in", 1)
    query.add("in", 5)
    query.restart(goes_on_after_loss=goes_on)

    if not goes_on:
        with pytest.raises(TopicError, match="topic 'in' was deleted and created again"):
            query.read(end)
        return
    assert query.read(end) == {}
    query.end = end
    assert query.batch() == {("in", 0): (0, 5)}


def test_a_topic_that_was_away_and_is_made_anew_is_not_taken_for_the_old_one(query: Query, broker: LocalBroker) -> None:
    broker.create_topic("later", 1)
    query.restart(tasks={"in": [[0]], "later": [[0]]})
    query.add("later", 1)
    query.batch()
    broker.delete_topic("later")
    query.restart(tasks={"in": [[0]]})
    query.add("in", 1)
    query.batch()
    broker.create_topic("later", 1)
    query.add("later", 4)
    query.restart(tasks={"in": [[0]], "later": [[0]]})

    with pytest.raises(TopicError, match="topic 'later' was deleted and created again"):
        query.plan()


def test_a_topic_made_anew_may_have_fewer_partitions(query: Query, broker: LocalBroker) -> None:
    broker.create_topic("later", 3)
    query.restart(tasks={"later": [[0], [1], [2]]}, goes_on_after_loss=True)
    query.batch()
    query.add("later", 1, partition=2)
    query.batch()
    broker.delete_topic("later")
    broker.create_topic("later", 1)
    query.add("later", 2)
    query.restart(tasks={"later": [[0]]})

    assert query.batch() == {("later", 0): (0, 2)}
