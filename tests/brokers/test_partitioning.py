"""`headrace/partitioning.py`, `murmur2.py` and `murmur2_numpy.py`: the same hash and partitions as Kafka.

java_murmur2.tsv is the output of java/Murmur2.java.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.brokers import LocalBroker
from headrace.murmur2 import murmur2
from headrace.murmur2_numpy import murmur2_all
from headrace.partitioning import partition_of, partitions_of

LINES = [line.split("\t") for line in Path(__file__).with_name("java_murmur2.tsv").read_text("utf-8").splitlines()]
COUNTS = (2, 3, 7, 12, 1000)

# org.apache.kafka.common.utils.UtilsTest.testMurmur2
KAFKAS_OWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "expected"), KAFKAS_OWN.items())
def test_hash_is_the_one_of_kafkas_own_test(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected & 0xFFFFFFFF


@pytest.mark.parametrize("line", LINES, ids=[line[0] or "empty" for line in LINES])
def test_hash_and_partitions_are_the_java_ones(line: list[str]) -> None:
    key = bytes.fromhex(line[0])

    assert murmur2(key) == int(line[1]) & 0xFFFFFFFF
    assert [partition_of(key, count) for count in COUNTS] == [int(partition) for partition in line[2:]]


def test_every_rest_of_four_bytes_is_compared() -> None:
    assert {len(line[0]) // 2 % 4 for line in LINES} == {0, 1, 2, 3}


@given(st.lists(st.binary(max_size=40) | st.binary(min_size=200, max_size=300), max_size=200))
def test_keys_hashed_together_have_the_same_hashes(keys: list[bytes]) -> None:
    assert murmur2_all(keys).tolist() == [murmur2(key) for key in keys]


def test_the_java_hashes_are_those_of_keys_hashed_together() -> None:
    keys = [bytes.fromhex(line[0]) for line in LINES]

    assert murmur2_all(keys).tolist() == [int(line[1]) & 0xFFFFFFFF for line in LINES]


@pytest.mark.parametrize("count", [2, 3, 7, 1000, 2**31 - 1])
def test_many_keys_go_to_the_partitions_of_each(count: int) -> None:
    lengths = (0, 1, 3, 4, 8, 11, 12, 16, 36, 100)
    keys = [b"%d-" % n + bytes([n % 256]) * lengths[n % len(lengths)] for n in range(2_000)]
    keys += [bytes(5_000), bytes(70_001)]

    assert partitions_of(keys, count) == [partition_of(key, count) for key in keys]
    assert partitions_of(keys[:10], count) == [partition_of(key, count) for key in keys[:10]]
    assert partitions_of([], count) == []


def test_records_go_to_the_partition_of_their_key(broker: LocalBroker) -> None:
    broker.create_topic("seven", 7)
    keys = [bytes.fromhex(line[0]) for line in LINES]

    broker.produce("seven", [(key, None) for key in keys])

    assert {record.key: record.partition for record in broker.records("seven")} == {
        bytes.fromhex(line[0]): int(line[4]) for line in LINES
    }


def test_records_without_a_key_go_to_the_partitions_in_turn(broker: LocalBroker) -> None:
    broker.create_topic("three", 3)

    broker.produce("three", [(None, b"0"), (None, b"1"), (None, b"2"), (None, b"3")])
    broker.produce("three", [(None, b"4"), (None, b"5")])

    assert [(r.partition, r.value) for r in broker.records("three")] == [
        (0, b"0"),
        (0, b"3"),
        (1, b"1"),
        (1, b"4"),
        (2, b"2"),
        (2, b"5"),
    ]


def test_keys_do_not_take_the_turn_of_records_without(broker: LocalBroker) -> None:
    broker.create_topic("two", 2)

    broker.produce("two", [(b"k", b""), (None, b"0"), (b"k", b""), (None, b"1")])

    assert {r.value: r.partition for r in broker.records("two") if r.key is None} == {b"0": 0, b"1": 1}


def test_another_process_goes_on_with_the_turns(path: Path) -> None:
    for number in range(3):
        with LocalBroker(path) as broker:
            if number == 0:
                broker.create_topic("three", 3)
            broker.produce("three", [(None, b"")])

    with LocalBroker(path) as broker:
        assert broker.end_offsets("three") == {0: 1, 1: 1, 2: 1}


def test_a_given_partition_wins_over_the_key(broker: LocalBroker) -> None:
    broker.create_topic("two", 2)

    broker.produce("two", [(b"a", b"1"), (b"b", b"2"), (None, b"3")], partition=1)

    assert broker.end_offsets("two") == {0: 0, 1: 3}
