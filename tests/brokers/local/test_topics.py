"""Topics: create, list, describe, delete."""

from pathlib import Path
from typing import Any

import pytest

from headrace.brokers import Broker, LocalBroker, TopicInfo, connect
from headrace.errors import ConfigError, TopicError


def test_there_are_no_topics_at_first(broker: LocalBroker) -> None:
    assert broker.topics() == {}


def test_a_topic_is_what_it_was_created_as(broker: LocalBroker) -> None:
    made = broker.create_topic("table", 3, compact=True, retention_ms=1000)

    assert made == TopicInfo("table", 3, True, 1000)
    assert broker.topics() == {"table": made}


def test_a_topic_has_one_partition_and_keeps_everything_unless_told(broker: LocalBroker) -> None:
    assert broker.create_topic("lines") == TopicInfo("lines", 1, False, None)


def test_topics_are_listed_by_name(broker: LocalBroker) -> None:
    for name in ("b", "c", "a"):
        broker.create_topic(name)

    assert list(broker.topics()) == ["a", "b", "c"]


def test_topics_are_there_for_the_next_to_open_the_file(path: Path) -> None:
    with connect(f"local:{path}") as broker:
        broker.create_topic("lines", 2)
    with connect(f"local:{path}") as broker:
        assert broker.topics() == {"lines": TopicInfo("lines", 2)}


def test_an_open_broker_sees_the_topics_of_another(path: Path) -> None:
    with LocalBroker(path) as one, LocalBroker(path) as other:
        one.create_topic("lines")

        assert list(other.topics()) == ["lines"]


def test_a_new_topic_ends_at_zero_in_each_partition(broker: LocalBroker) -> None:
    broker.create_topic("lines", 3)

    assert broker.end_offsets("lines") == {0: 0, 1: 0, 2: 0}
    assert list(broker.records("lines")) == []


def test_a_deleted_topic_is_gone_with_its_records(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    broker.create_topic("kept")
    broker.produce("lines", [(None, b"old")])
    broker.produce("kept", [(None, b"still here")])

    broker.delete_topic("lines")

    assert list(broker.topics()) == ["kept"]
    assert [record.value for record in broker.records("kept")] == [b"still here"]


def test_a_topic_made_anew_is_empty_and_begins_at_zero(broker: LocalBroker) -> None:
    broker.create_topic("lines", 2)
    broker.produce("lines", [(None, b"old")])
    broker.delete_topic("lines")

    broker.create_topic("lines")

    assert broker.end_offsets("lines") == {0: 0}
    assert list(broker.records("lines")) == []


def test_a_reader_is_told_that_its_topic_was_deleted(broker: LocalBroker) -> None:
    broker.create_topic("lines")
    broker.produce("lines", [(None, b"old")])
    reader = broker.records("lines", until_end=False)
    next(reader)

    broker.delete_topic("lines")
    broker.create_topic("lines")
    broker.produce("lines", [(None, b"new"), (None, b"newer")])

    with pytest.raises(TopicError, match=r"topic 'lines' in '.*' was deleted while it was being read"):
        next(reader)


def test_a_second_topic_of_a_name_is_refused(broker: LocalBroker) -> None:
    broker.create_topic("lines", 2)

    with pytest.raises(TopicError, match="topic 'lines' already exists"):
        broker.create_topic("lines", 5)
    assert broker.topics()["lines"].partitions == 2


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", ".", "..", "x" * 250, None, 7])
def test_a_name_that_kafka_would_refuse_is_refused(broker: LocalBroker, name: Any) -> None:
    with pytest.raises(TopicError, match="expected a name of up to 249 letters, digits") as raised:
        broker.create_topic(name)
    assert repr(name) in str(raised.value)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "..."])
def test_a_name_that_kafka_would_take_is_taken(broker: LocalBroker, name: str) -> None:
    broker.create_topic(name)

    assert list(broker.topics()) == [name]


@pytest.mark.parametrize("partitions", [0, -1, 1.0, "2", None, True, 2**31])
def test_a_topic_has_at_least_one_partition(broker: LocalBroker, partitions: Any) -> None:
    with pytest.raises(TopicError) as raised:
        broker.create_topic("lines", partitions)
    assert str(raised.value) == f"topic 'lines': expected at least 1 partition, got {partitions!r}"


@pytest.mark.parametrize("retention", [-1, 1.5, "1 h", True, 2**63])
def test_retention_is_in_milliseconds(broker: LocalBroker, retention: Any) -> None:
    with pytest.raises(TopicError) as raised:
        broker.create_topic("lines", retention_ms=retention)
    assert str(raised.value) == f"topic 'lines': expected retention_ms of at least 0, got {retention!r}"


@pytest.mark.parametrize(
    "call",
    [
        lambda broker: broker.delete_topic("nope"),
        lambda broker: broker.end_offsets("nope"),
        lambda broker: broker.produce("nope", [(None, b"")]),
        lambda broker: broker.produce("nope", []),
        lambda broker: broker.records("nope"),
        lambda broker: broker.range("nope", 0, 0, 1),
        lambda broker: broker.clean("nope"),
    ],
    ids=["delete", "end offsets", "produce", "produce nothing", "records", "range", "clean"],
)
def test_an_unknown_topic_is_an_error_that_names_the_known_ones(broker: LocalBroker, call: Any) -> None:
    with pytest.raises(TopicError, match=r"there is no topic 'nope' in '.*topics\.db' \(topics: none\)"):
        call(broker)
    broker.create_topic("b")
    broker.create_topic("a")
    with pytest.raises(TopicError, match=r"there is no topic 'nope' in '.*topics\.db' \(topics: a, b\)"):
        call(broker)


def test_connect_opens_the_embedded_log(path: Path) -> None:
    broker: Broker
    with connect(f"local:{path}") as broker:
        assert isinstance(broker, LocalBroker)
    assert path.is_file()


def test_connect_takes_a_path_from_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with connect("local:~/logs/topics.db"):
        assert (tmp_path / "logs" / "topics.db").is_file()


def test_the_embedded_log_takes_no_settings(path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the embedded log takes no settings, got acks"):
        connect(f"local:{path}", acks="all")
