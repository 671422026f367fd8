"""Runs of applications, and batches that are written once."""

from pathlib import Path
from typing import Any

import pytest

from headrace.brokers import LocalBroker
from headrace.brokers.runs import Run
from headrace.brokers.writing import PartitionRecords
from headrace.errors import StreamsError, TopicError


@pytest.fixture
def out(broker: LocalBroker) -> LocalBroker:
    broker.create_topic("out", 3)
    return broker


def row(value: bytes, topic: str = "out", partition: int | None = None) -> PartitionRecords:
    return topic, partition, [(b"k", value, 0, None)]


def values(broker: LocalBroker, topic: str = "out") -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def test_runs_are_counted_for_each_application(broker: LocalBroker) -> None:
    assert broker.run_number("app") == 0

    assert broker.begin_run("app", "x") == Run("app", 1, "x")
    assert broker.begin_run("app", "x") == Run("app", 2, "x")
    assert broker.begin_run("other", "y") == Run("other", 1, "y")

    assert (broker.run_number("app"), broker.run_number("other"), broker.run_number("none")) == (2, 1, 0)


def test_a_batch_is_written_once(out: LocalBroker) -> None:
    run = out.begin_run("app", "x")

    assert out.write_batch(run, 0, [row(b"0")], {"in": {0: 5}}) is True
    assert out.write_batch(run, 0, [row(b"again")], {"in": {0: 6}}) is False

    assert values(out) == [b"0"]
    assert out.last_batch("app") == ("x", 0)
    assert out.positions("app") == {"in": {0: 5}}


def test_an_earlier_batch_is_left_alone_and_a_later_one_written(out: LocalBroker) -> None:
    run = out.begin_run("app", "x")

    assert [out.write_batch(run, batch, [row(b"%d" % batch)], {}) for batch in (3, 1, 2, 7)] == [
        True,
        False,
        False,
        True,
    ]
    assert values(out) == [b"3", b"7"]


def test_the_next_run_of_a_lineage_goes_on_with_its_batches(path: Path) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("out")
        broker.write_batch(broker.begin_run("app", "x"), 4, [row(b"4")], {"in": {0: 5}})
    with LocalBroker(path) as broker:
        run = broker.begin_run("app", "x")

        assert broker.last_batch("app") == ("x", 4)
        assert broker.write_batch(run, 4, [row(b"replayed")], {}) is False
        assert broker.write_batch(run, 5, [row(b"5")], {"in": {1: 6}}) is True
        assert values(broker) == [b"4", b"5"]
        assert broker.positions("app") == {"in": {0: 5, 1: 6}}


def test_another_lineage_has_its_own_batches(out: LocalBroker) -> None:
    out.write_batch(out.begin_run("app", "x"), 4, [row(b"4")], {"in": {0: 5}})

    run = out.begin_run("app", "y")

    assert out.last_batch("app") == ("y", -1)
    assert out.positions("app") == {"in": {0: 5}}
    assert out.write_batch(run, 0, [row(b"0")], {}) is True
    assert out.last_batch("app") == ("y", 0)


def test_an_application_that_never_ran_has_no_batch_and_no_positions(broker: LocalBroker) -> None:
    assert broker.last_batch("app") is None
    assert broker.positions("app") == {}


def test_applications_do_not_see_each_other(out: LocalBroker) -> None:
    one, other = out.begin_run("one", "x"), out.begin_run("other", "x")
    out.write_batch(one, 3, [row(b"one")], {"in": {0: 1}})

    assert out.last_batch("other") == ("x", -1)
    assert out.positions("other") == {}
    assert out.write_batch(other, 0, [row(b"other")], {"in": {0: 7}}) is True
    assert out.positions("one") == {"in": {0: 1}}


def test_an_older_run_is_refused(out: LocalBroker) -> None:
    older, newer = out.begin_run("app", "x"), out.begin_run("app", "x")

    with pytest.raises(StreamsError) as raised:
        out.write_batch(older, 0, [row(b"older")], {"in": {0: 1}})
    assert str(raised.value) == "application 'app' was started again elsewhere (run 2, this is run 1): this one stops"
    assert (values(out), out.last_batch("app"), out.positions("app")) == ([], ("x", -1), {})
    assert out.write_batch(newer, 0, [row(b"newer")], {}) is True
    with pytest.raises(StreamsError, match="run 2, this is run 1"):
        out.write_batch(older, 0, [], {})


def test_a_forgotten_application_begins_anew(out: LocalBroker) -> None:
    run = out.begin_run("app", "x")
    out.begin_run("other", "x")
    out.write_batch(run, 0, [row(b"0")], {"in": {0: 5}})

    out.forget_application("app")
    out.forget_application("never there")

    assert (out.run_number("app"), out.last_batch("app"), out.positions("app")) == (0, None, {})
    assert out.run_number("other") == 1
    with pytest.raises(StreamsError) as raised:
        out.write_batch(run, 1, [row(b"1")], {})
    assert str(raised.value) == "application 'app' was forgotten (this is run 1): this one stops"


def test_a_run_of_before_is_refused_by_an_application_made_anew(out: LocalBroker) -> None:
    out.begin_run("app", "x")
    before = out.begin_run("app", "x")
    out.forget_application("app")

    again = out.begin_run("app", "x")

    assert again.number > before.number
    with pytest.raises(StreamsError, match="run 3, this is run 2"):
        out.write_batch(before, 0, [row(b"before")], {})
    assert out.write_batch(again, 0, [row(b"again")], {}) is True


def test_records_go_where_produce_puts_them(broker: LocalBroker) -> None:
    broker.ensure_topics({"one": 5, "other": 5})
    keys = [b"%d" % n if n % 3 else None for n in range(5_000)]

    broker.produce("one", [(key, b"%d" % n, n) for n, key in enumerate(keys)])
    broker.write_batch(
        broker.begin_run("app", ""), 0, [("other", None, [(key, b"%d" % n, n, None) for n, key in enumerate(keys)])], {}
    )

    assert [record[1:] for record in broker.records("one")] == [record[1:] for record in broker.records("other")]


def test_a_given_partition_wins_over_the_key(out: LocalBroker) -> None:
    given = [n % 3 if n % 2 else None for n in range(1_000)]
    out.write_batch(out.begin_run("app", ""), 0, [row(b"%d" % n, "out", p) for n, p in enumerate(given)], {})

    found = {int(record.value or b""): record.partition for record in out.records("out")}
    by_key = {found[n] for n, partition in enumerate(given) if partition is None}
    assert len(by_key) == 1
    assert {n: p for n, p in found.items() if n % 2} == {n: p for n, p in enumerate(given) if p is not None}


def test_records_of_several_topics_keep_their_order(broker: LocalBroker) -> None:
    broker.ensure_topics({"a": 1, "b": 2, "c": 1})
    headers = [("h", b"1")]
    work: list[PartitionRecords] = [
        ("abc"[n % 3], None, [(b"k", b"%d" % n, n, headers if n == 4 else None)]) for n in range(9)
    ]

    broker.write_batch(broker.begin_run("app", ""), 0, work, {})

    for number, topic in enumerate("abc"):
        got = [(r.offset, r.key, r.value, r.timestamp, r.headers) for r in broker.records(topic)]
        assert got == [
            (place, b"k", b"%d" % n, n, headers if n == 4 else []) for place, n in enumerate(range(number, 9, 3))
        ]


def test_null_and_empty_are_kept_apart(broker: LocalBroker) -> None:
    broker.create_topic("out")
    pairs = [(None, None), (b"", b""), (b"k", None), (None, b"v")]

    broker.write_batch(broker.begin_run("app", ""), 0, [("out", None, [(k, v, 0, []) for k, v in pairs])], {})

    assert [(record.key, record.value, record.headers) for record in broker.records("out")] == [
        (*pair, []) for pair in pairs
    ]


def test_a_batch_may_have_no_records(out: LocalBroker) -> None:
    run = out.begin_run("app", "")

    assert out.write_batch(run, 0, iter(()), {"in": {0: 5}}) is True
    assert out.write_batch(run, 0, iter(()), {"in": {0: 9}}) is False
    assert out.positions("app") == {"in": {0: 5}}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("nope", None, [(b"", b"", 0, None)]), r"there is no topic 'nope' in '.*topics\.db' \(topics: out\)"),
        (("out", 3, [(b"", b"", 0, None)]), "topic 'out': expected a partition from 0 to 2, got 3"),
        (("out", -1, [(b"", b"", 0, None)]), "topic 'out': expected a partition from 0 to 2, got -1"),
        (("out", None, [(b"", b"", -1, None)]), "topic 'out': expected the timestamp in .* got -1"),
        (
            ("out", None, [(b"", b"", 2**63, None)]),
            "topic 'out': expected the timestamp in .* got 9223",
        ),
        (
            ("out", None, [(b"", b"", None, None)]),
            "topic 'out': expected the timestamp in .* got None",
        ),
        (("out", None, [("k", b"", 0, None)]), "topic 'out': expected the key as bytes or None, got str"),
        (("out", None, [(b"", 1, 0, None)]), "topic 'out': expected the value as bytes or None, got int"),
        (("out", None, [(b"", b"", 0, ["h"])]), "topic 'out': expected the headers as a list of"),
    ],
    ids=["topic", "partition", "negative partition", "timestamp", "late", "none", "key", "value", "headers"],
)
def test_one_wrong_record_prevents_the_whole_batch(out: LocalBroker, wrong: Any, message: str) -> None:
    run = out.begin_run("app", "x")

    with pytest.raises(TopicError, match=message):
        out.write_batch(run, 0, [row(b"right"), wrong, row(b"right")], {"in": {0: 5}})

    assert (values(out), out.last_batch("app"), out.positions("app")) == ([], ("x", -1), {})
    assert out.write_batch(run, 0, [row(b"right")], {}) is True
    assert [page[0][5] for page in out.read_range("out", *next(found(out)))] == [0]


def found(broker: LocalBroker) -> Any:
    return ((partition, 0, end) for partition, end in broker.end_offsets("out").items() if end)


class Key(bytes):
    """A key of a subclass."""


def test_a_key_of_a_class_of_its_own_is_bytes(out: LocalBroker) -> None:
    out.write_batch(out.begin_run("app", ""), 0, [("out", None, [(Key(b"k"), Key(b"v"), 0, None)])], {})

    assert [(record.key, record.value) for record in out.records("out")] == [(b"k", b"v")]


@pytest.mark.parametrize("batch", [-1, 1.0, None, True])
def test_a_batch_is_a_number(out: LocalBroker, batch: Any) -> None:
    with pytest.raises(StreamsError) as raised:
        out.write_batch(out.begin_run("app", ""), batch, [], {})
    assert str(raised.value) == f"application 'app': expected a batch of at least 0, got {batch!r}"


def test_others_may_write_while_the_records_are_made(path: Path) -> None:
    with LocalBroker(path) as broker, LocalBroker(path) as other:
        broker.create_topic("out")

        def made() -> Any:
            other.produce("out", [(None, b"meanwhile")])
            yield row(b"made")

        broker.write_batch(broker.begin_run("app", ""), 0, made(), {})

        assert values(broker) == [b"meanwhile", b"made"]


def test_positions_are_kept_by_topic_and_partition(out: LocalBroker) -> None:
    run = out.begin_run("app", "")
    out.write_batch(run, 0, [], {"b": {1: 10, 0: 20}, "a": {0: 30}})
    out.write_batch(run, 1, [], {"b": {1: 11}, "c": {5: 0}})

    assert out.positions("app") == {"a": {0: 30}, "b": {0: 20, 1: 11}, "c": {5: 0}}
