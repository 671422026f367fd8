"""`reading` and `writing`: for any records in any pieces, the log returns what a list would."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.brokers import LocalBroker, TopicRecord
from headrace.errors import TopicError
from headrace.partitioning import partition_of

PARTITIONS = 3

data = st.none() | st.binary(max_size=30)
keys = st.sampled_from([b"a", b"b", b"c", b""]) | st.binary(max_size=20)
timestamps = st.integers(min_value=0, max_value=2**63 - 1)
names = st.text(st.characters(codec="utf-8"), max_size=5)
headers = st.lists(st.tuples(names, st.binary(max_size=5)), max_size=3)
records = st.tuples(keys, data, timestamps) | st.tuples(keys, data, timestamps, headers)
wrong = st.sampled_from([("a", b""), (b"a", 1, 0), (b"a", b"", -1), (b"a",), None])
productions = st.tuples(
    st.lists(records, max_size=8), st.none() | st.integers(min_value=0, max_value=PARTITIONS - 1), st.none() | wrong
)

topic_names = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path_factory.mktemp("round-trip") / "topics.db") as broker:
        yield broker


@settings(deadline=None)
@given(st.lists(productions, max_size=6))
def test_the_log_is_a_list_for_each_partition(module_broker: LocalBroker, work: list[Any]) -> None:
    broker, topic = module_broker, next(topic_names)
    broker.create_topic(topic, PARTITIONS)
    model: dict[int, list[TopicRecord]] = {partition: [] for partition in range(PARTITIONS)}

    for produced, partition, bad in work:
        if bad is not None:
            with pytest.raises(TopicError):
                broker.produce(topic, [*produced, bad], partition)
            continue
        assert broker.produce(topic, produced, partition) == len(produced)
        for key, value, timestamp, *rest in produced:
            number = partition_of(key, PARTITIONS) if partition is None else partition
            offset = len(model[number])
            model[number].append(TopicRecord(topic, number, offset, timestamp, key, value, rest[0] if rest else []))

    assert broker.end_offsets(topic) == {number: len(kept) for number, kept in model.items()}
    assert list(broker.records(topic)) == [record for kept in model.values() for record in kept]
    middle = {number: len(kept) // 2 for number, kept in model.items()}
    assert list(broker.records(topic, start=middle)) == [
        record for number, kept in model.items() for record in kept[middle[number] :]
    ]


@settings(deadline=None)
@given(
    st.lists(st.tuples(keys | st.none(), data, st.integers(0, 100)), max_size=20), st.booleans(), st.integers(0, 100)
)
def test_cleaning_keeps_what_the_rules_say(
    module_broker: LocalBroker, produced: list[Any], compact: bool, retention: int
) -> None:
    broker, topic = module_broker, next(topic_names)
    broker.create_topic(topic, compact=compact, retention_ms=retention)
    broker.produce(topic, produced)
    kept = list(broker.records(topic))

    gone = broker.clean(topic)

    latest = max((record.timestamp for record in kept), default=0)
    kept = [record for record in kept if record.timestamp >= latest - retention]
    if compact:
        last = {record.key: record.offset for record in kept}
        end = max(last.values(), default=-1)
        kept = [
            record
            for record in kept
            if record.key is None
            or (record.offset == last[record.key] and (record.value is not None or record.offset == end))
        ]
    assert list(broker.records(topic)) == kept
    assert gone == len(produced) - len(kept)
    assert broker.clean(topic) == 0
