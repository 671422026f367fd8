"""`topics.clean_topic`: what retention and compaction delete, and what they keep."""

from pathlib import Path

from headrace.brokers import LocalBroker


def left(broker: LocalBroker, topic: str) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(record.partition, record.offset, record.key, record.value) for record in broker.records(topic)]


def test_a_topic_without_rules_keeps_everything(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    broker.produce("lines", [(b"a", b"1", 0), (b"a", b"2", 10**12)])

    assert broker.clean("lines") == 0
    assert len(left(broker, "lines")) == 2


def test_an_empty_topic_has_nothing_to_clean(broker: LocalBroker) -> None:
    broker.create_topic("lines", compact=True, retention_ms=0)

    assert broker.clean("lines") == 0


def test_retention_counts_from_the_latest_timestamp_of_the_topic(broker: LocalBroker) -> None:
    broker.create_topic("lines", 2, retention_ms=100)
    broker.produce("lines", [(None, b"old", 899), (None, b"just kept", 900)], partition=0)
    broker.produce("lines", [(None, b"latest", 1000), (None, b"late", 100)], partition=1)

    assert broker.clean("lines") == 2
    assert left(broker, "lines") == [(0, 1, None, b"just kept"), (1, 0, None, b"latest")]


def test_retention_of_nothing_keeps_the_latest(broker: LocalBroker) -> None:
    broker.create_topic("lines", retention_ms=0)
    broker.produce("lines", [(None, b"1", 1), (None, b"2", 2), (None, b"3", 2)])

    broker.clean("lines")

    assert [value for *_, value in left(broker, "lines")] == [b"2", b"3"]


def test_compaction_keeps_the_last_record_of_each_key(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(b"a", b"1", 9), (b"b", b"2", 8), (b"a", b"3", 1), (b"c", b"4", 0), (b"b", b"5", 0)])

    assert broker.clean("table") == 2
    assert left(broker, "table") == [(0, 2, b"a", b"3"), (0, 3, b"c", b"4"), (0, 4, b"b", b"5")]


def test_compaction_takes_each_partition_for_itself(broker: LocalBroker) -> None:
    broker.create_topic("table", 2, compact=True)
    for partition in (0, 1):
        broker.produce("table", [(b"a", b"old"), (b"a", b"new")], partition)

    broker.clean("table")

    assert left(broker, "table") == [(0, 1, b"a", b"new"), (1, 1, b"a", b"new")]


def test_a_delete_goes_with_what_it_deletes(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(b"a", b"1"), (b"a", None), (b"b", b"2")])

    assert broker.clean("table") == 2
    assert left(broker, "table") == [(0, 2, b"b", b"2")]


def test_a_delete_stays_while_it_is_the_last_record(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(b"a", b"1"), (b"a", None)])

    broker.clean("table")

    assert left(broker, "table") == [(0, 1, b"a", None)]


def test_compaction_leaves_records_without_a_key(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(None, b"1"), (None, b"2"), (None, None)])

    assert broker.clean("table") == 0


def test_an_empty_key_is_a_key(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(b"", b"1"), (b"", b"2")])

    assert broker.clean("table") == 1


def test_both_rules_hold_together(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True, retention_ms=10)
    broker.produce("table", [(b"a", b"old", 0), (b"b", b"1", 95), (b"b", b"2", 96), (b"c", b"3", 100)])

    assert broker.clean("table") == 2
    assert [value for *_, value in left(broker, "table")] == [b"2", b"3"]


def test_cleaning_leaves_other_topics_alone(broker: LocalBroker) -> None:
    for name in ("table", "other"):
        broker.create_topic(name, compact=True)
        broker.produce(name, [(b"a", b"1"), (b"a", b"2")])

    broker.clean("table")

    assert len(left(broker, "other")) == 2


def test_offsets_go_on_after_cleaning_and_reopening(path: Path) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines", retention_ms=0)
        broker.produce("lines", [(None, b"old", 0), (None, b"new", 1)])
        broker.clean("lines")
    with LocalBroker(path) as broker:
        broker.produce("lines", [(None, b"newer", 2)])

        assert broker.end_offsets("lines") == {0: 3}
        assert [offset for _, offset, *_ in left(broker, "lines")] == [1, 2]


def test_a_reader_goes_over_the_gaps(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(str(n % 2_000).encode(), str(n).encode()) for n in range(5_000)])
    broker.clean("table")

    assert [record.offset for record in broker.records("table")] == list(range(3_000, 5_000))
    assert [record.offset for record in broker.range("table", 0, 100, 3_002)] == [3_000, 3_001]


def test_a_reader_in_the_middle_goes_on_after_a_cleaning(broker: LocalBroker) -> None:
    broker.create_topic("table", compact=True)
    broker.produce("table", [(b"a", str(n).encode()) for n in range(3_000)])
    reader = broker.records("table")
    first = next(reader)

    broker.clean("table")

    offsets = [record.offset for record in reader]
    assert first.offset == 0
    assert offsets == sorted(offsets)
    assert offsets[-1] == 2_999
