"""Where batches end: all records have one order, and each batch takes the beginning of it."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.brokers import LocalBroker
from headrace.brokers.local import batch_ends
from headrace.errors import ConfigError, TopicError

Ends = dict[str, dict[int, int]]

numbers = itertools.count()


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path_factory.mktemp("planning") / "topics.db") as broker:
        yield broker


def filled(broker: LocalBroker, topics: Mapping[str, int], records: list[tuple[str, int, int]]) -> None:
    """Append records with (topic, partition, timestamp), in this order."""
    broker.ensure_topics(topics)
    run = broker.begin_run(f"filling-{next(numbers)}", "")
    broker.write_batch(run, 0, [(topic, part, [(None, b"", time, None)]) for topic, part, time in records], {})


def ends_of(broker: LocalBroker, *topics: str) -> Ends:
    return {topic: broker.end_offsets(topic) for topic in topics}


def merged(broker: LocalBroker, start: Ends, end: Ends) -> list[tuple[str, int, int]]:
    """Return (topic, partition, offset) in order: of the next records, the lowest (timestamp, sequence) comes first."""
    queues = [
        [
            (timestamp, sequence, topic, partition, offset)
            for page in broker.read_range(topic, partition, begin, end[topic][partition])
            for offset, timestamp, _, _, _, sequence in page
        ]
        for topic, begins in start.items()
        for partition, begin in begins.items()
    ]
    result = []
    while queues := [queue for queue in queues if queue]:
        result.append(min(queues, key=lambda queue: queue[0]).pop(0)[2:])
    return result


def batches(broker: LocalBroker, start: Ends, limit: int | None) -> list[list[tuple[str, int, int]]]:
    """Plan batches until the end. Check that each one advances."""
    result = []
    end = ends_of(broker, *start)
    while any(offset < end[topic][number] for topic, begins in start.items() for number, offset in begins.items()):
        planned = broker.plan_batch(start, limit)
        assert {topic: set(offsets) for topic, offsets in planned.items()} == {t: set(o) for t, o in start.items()}
        assert planned != start
        assert all(planned[topic][number] >= offset for topic, at in start.items() for number, offset in at.items())
        result.append(merged(broker, start, planned))
        start = planned
    assert broker.plan_batch(start, limit) == start
    return result


places = st.tuples(st.sampled_from("ab"), st.integers(0, 1))
records = st.tuples(places, st.integers(0, 12), st.integers(0, 30))


@settings(deadline=None, max_examples=150)
@given(
    work=st.lists(records, min_size=10, max_size=100),
    skipped=st.lists(st.integers(0, 6), min_size=4, max_size=4),
    limit=st.integers(1, 25),
    merging=st.booleans(),
    compact=st.booleans(),
)
def test_batches_of_any_size_give_the_same_order(
    module_broker: LocalBroker, work: list[Any], skipped: list[int], limit: int, merging: bool, compact: bool
) -> None:
    broker, names = module_broker, {letter: f"{letter}-{next(numbers)}" for letter in "ab"}
    for name in names.values():
        broker.create_topic(name, 2, compact=compact)
    run = broker.begin_run(f"filling-{next(numbers)}", "")
    broker.write_batch(run, 0, [(names[t], p, [(b"%d" % key, b"", time, None)]) for (t, p), time, key in work], {})
    for name in names.values():
        broker.clean(name)
    ends = ends_of(broker, *names.values())
    start = {name: {n: min(skipped.pop(), ends[name][n]) for n in (0, 1)} for name in names.values()}
    whole = merged(broker, start, ends)

    with patch.object(batch_ends, "MERGED", 2_000 if merging else 0):
        cut = batches(broker, start, limit)

    assert [record for batch in cut for record in batch] == whole
    assert all(len(batch) <= limit for batch in cut)
    if merging:
        assert all(len(batch) == limit for batch in cut[:-1] if cut[-1])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=50, max_size=150), st.integers(10, 30))
def test_many_partitions_are_cut_at_one_place(module_broker: LocalBroker, work: list[Any], limit: int) -> None:
    broker, name = module_broker, f"ten-{next(numbers)}"
    filled(broker, {name: 10}, [(name, partition, time) for partition, time in work])
    start: Ends = {name: dict.fromkeys(range(10), 0)}
    whole = merged(broker, start, ends_of(broker, name))

    with patch.object(batch_ends, "MERGED", 0):
        cut = batches(broker, start, limit)

    assert [record for batch in cut for record in batch] == whole
    assert all(0 < len(batch) <= limit for batch in cut)


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=10), st.integers(10, 300))
def test_shares_are_at_least_one_record_and_no_more_than_there_is(wanted: list[tuple[int, int]], limit: int) -> None:
    available = [count for count, _ in wanted]

    shares = batch_ends._shares(available, [weight for _, weight in wanted], limit)

    assert all(1 <= share <= count for share, count in zip(shares, available))
    assert sum(shares) <= limit
    if sum(available) <= limit:
        assert shares == available


def test_without_a_limit_a_batch_is_everything(broker: LocalBroker) -> None:
    filled(broker, {"a": 2, "b": 1}, [("a", 0, 5), ("a", 1, 1), ("b", 0, 9), ("a", 0, 1)])

    assert broker.plan_batch({"a": {0: 0, 1: 0}, "b": {0: 0}}, None) == {"a": {0: 2, 1: 1}, "b": {0: 1}}
    assert broker.plan_batch({"a": {0: 1}}, None) == {"a": {0: 2}}
    assert broker.plan_batch({}, None) == {}


def test_the_lowest_timestamp_of_those_in_front_is_next(broker: LocalBroker) -> None:
    filled(broker, {"a": 2}, [("a", 0, 10), ("a", 0, 30), ("a", 1, 20), ("a", 1, 40)])
    start: Ends = {"a": {0: 0, 1: 0}}

    assert [broker.plan_batch(start, limit)["a"] for limit in (1, 2, 3, 4)] == [
        {0: 1, 1: 0},
        {0: 1, 1: 1},
        {0: 2, 1: 1},
        {0: 2, 1: 2},
    ]


def test_of_equal_timestamps_the_first_that_was_appended_is_next(broker: LocalBroker) -> None:
    filled(broker, {"a": 1, "b": 1}, [("b", 0, 10), ("a", 0, 10), ("b", 0, 10)])

    assert broker.plan_batch({"a": {0: 0}, "b": {0: 0}}, 1) == {"a": {0: 0}, "b": {0: 1}}
    assert broker.plan_batch({"a": {0: 0}, "b": {0: 0}}, 2) == {"a": {0: 1}, "b": {0: 1}}


def test_a_late_record_comes_right_after_what_it_stands_behind(broker: LocalBroker) -> None:
    filled(broker, {"a": 2}, [("a", 0, 10), ("a", 1, 10), ("a", 0, 5)])

    assert [batch[0][1:] for batch in batches(broker, {"a": {0: 0, 1: 0}}, 1)] == [(0, 0), (0, 1), (1, 0)]
    assert merged(broker, {"a": {0: 0, 1: 0}}, {"a": {0: 2, 1: 1}}) == [("a", 0, 0), ("a", 0, 1), ("a", 1, 0)]


@pytest.mark.parametrize("limit", [100, 2_500])
def test_a_partition_is_not_read_ahead_of_the_others(broker: LocalBroker, limit: int) -> None:
    ahead = [("a", 0, 1_000_000 + time) for time in range(5_000)]
    behind = [("a", 1, time) for time in range(5_000)]
    filled(broker, {"a": 2}, ahead + behind)

    planned = broker.plan_batch({"a": {0: 0, 1: 0}}, limit)["a"]

    assert planned[0] == 0
    assert planned[1] > limit * 7 // 8


def test_a_small_old_topic_does_not_make_batches_small(broker: LocalBroker) -> None:
    table = [("table", 0, time) for time in range(50)]
    stream = [("stream", partition, 1_000 + time) for time in range(4_000) for partition in (0, 1)]
    filled(broker, {"table": 1, "stream": 2}, table + stream)

    planned = broker.plan_batch({"table": {0: 0}, "stream": {0: 0, 1: 0}}, 3_000)

    assert planned["table"] == {0: 50}
    assert sum(planned["stream"].values()) >= 2_900


def test_a_batch_is_almost_full_where_one_partition_has_more_than_another(broker: LocalBroker) -> None:
    work = [("a", 0, time) for time in range(20_000)]
    work[::20] = [("a", 1, time) for time in range(0, 20_000, 20)]
    filled(broker, {"a": 2}, work)

    planned = broker.plan_batch({"a": {0: 0, 1: 0}}, 4_000)["a"]

    assert 3_500 <= sum(planned.values()) <= 4_000
    assert abs(planned[0] - 19 * planned[1]) <= 19


def test_gaps_are_not_counted(broker: LocalBroker) -> None:
    broker.create_topic("table", 2, compact=True)
    for partition in (0, 1):
        updates = [(b"%d" % (n % 3_000), b"", n) for n in range(9_000)]
        broker.produce("table", updates, partition)
    broker.clean("table")

    planned = broker.plan_batch({"table": {0: 0, 1: 0}}, 4_000)["table"]

    assert sum(offset - 6_000 for offset in planned.values()) in range(3_900, 4_001)
    assert broker.plan_batch({"table": {0: 100}}, 4_000) == {"table": {0: 9_000}}


def test_gaps_make_batches_smaller_than_expected(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(b"first", b""), *[(b"other", b"")] * 99])
    broker.clean("table")

    assert broker.plan_batch({"table": {0: 0}}, 1) == {"table": {0: 99}}
    assert broker.plan_batch({"table": {0: 0}}, 10) == {"table": {0: 100}}


@pytest.mark.parametrize("limit", [1, 3_000, None])
def test_a_partition_of_gaps_is_skipped(broker: LocalBroker, limit: int | None) -> None:
    broker.create_topic("old", 2, retention_ms=10)
    broker.produce("old", [(None, b"", 0)] * 5, partition=0)
    broker.produce("old", [(None, b"", 100)], partition=1)
    broker.clean("old")

    assert broker.plan_batch({"old": {0: 0}}, limit) == {"old": {0: 5}}
    assert broker.plan_batch({"old": {0: 2, 1: 0}}, limit) == {"old": {0: 5, 1: 1}}


def test_an_offset_after_the_end_stays(broker: LocalBroker) -> None:
    filled(broker, {"a": 2}, [("a", 0, 1), ("a", 1, 1)])

    assert broker.plan_batch({"a": {0: 7, 1: 0}}, 10) == {"a": {0: 7, 1: 1}}
    assert broker.plan_batch({"a": {0: 7, 1: 0}}, None) == {"a": {0: 7, 1: 1}}


def test_more_partitions_than_the_limit_has_records(broker: LocalBroker) -> None:
    filled(broker, {"a": 10}, [("a", number % 10, 100 - number) for number in range(100)])

    with patch.object(batch_ends, "MERGED", 0):
        planned = broker.plan_batch({"a": dict.fromkeys(range(10), 0)}, 5)

    assert sum(planned["a"].values()) == 5


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_a_limit_is_at_least_one_record(broker: LocalBroker, limit: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        broker.plan_batch({}, limit)
    assert str(raised.value) == f"expected a batch of at least 1 record, got {limit!r}"


def test_wrong_partitions_and_offsets_are_refused(broker: LocalBroker) -> None:
    broker.create_topic("a", 2)

    with pytest.raises(TopicError, match="there is no topic 'b'"):
        broker.plan_batch({"a": {0: 0}, "b": {0: 0}}, 10)
    with pytest.raises(TopicError, match="topic 'a': expected a partition from 0 to 1, got 2"):
        broker.plan_batch({"a": {2: 0}}, 10)
    with pytest.raises(TopicError, match="topic 'a', partition 0: expected an offset of at least 0, got -1"):
        broker.plan_batch({"a": {0: -1}}, 10)
