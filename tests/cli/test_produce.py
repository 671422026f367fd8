"""`headrace produce`.

Tests: headrace.cli.produce, headrace.cli.values
"""

import time
from pathlib import Path

import pytest

from headrace import serdes
from headrace.brokers import TopicRecord
from tests.cli.running import Outcome, headrace, run, started, topics


@pytest.fixture(autouse=True)
def lines(folder: Path) -> None:
    with topics() as broker:
        broker.create_topic("lines")


def produced(topic: str = "lines") -> list[TopicRecord]:
    with topics() as broker:
        return list(broker.records(topic))


def values() -> list[bytes | None]:
    return [record.value for record in produced()]


def test_lines_become_records_with_the_real_command() -> None:
    before = int(time.time() * 1000)

    assert run("produce", "lines", given="hello\nworld\n") == Outcome(0, "2 records to topic 'lines'\n", "")

    assert [(record.key, record.value, record.headers) for record in produced()] == [
        (None, b"hello", []),
        (None, b"world", []),
    ]
    assert all(record.timestamp >= before for record in produced())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", []),
        ("one", [b"one"]),
        ("one\n", [b"one"]),
        ("one\n\n\ntwo", [b"one", b"", b"", b"two"]),
        ("one\r\ntwo\r\n", [b"one", b"two"]),
        ("  spaces stay \n", [b"  spaces stay "]),
        ("grüezi 日本\n", ["grüezi 日本".encode()]),
        ("form\x0cfeed\x0b\n", [b"form\x0cfeed\x0b"]),
    ],
)
def test_a_line_is_what_ends_with_a_newline(given: str, expected: list[bytes]) -> None:
    headrace("produce", "lines", given=given)

    assert values() == expected


def test_one_record_is_not_records() -> None:
    assert headrace("produce", "lines", given="one").output == "1 record to topic 'lines'\n"


def test_many_lines() -> None:
    many = [f"line {number}" for number in range(50_000)]

    assert run("produce", "lines", given="\n".join(many)).output == "50000 records to topic 'lines'\n"

    assert values() == [line.encode() for line in many]


def test_the_key_is_before_the_separator() -> None:
    headrace("produce", "lines", "--key-separator", ":", given="a:1\n:2\nb::3\n")

    assert [(record.key, record.value) for record in produced()] == [(b"a", b"1"), (b"", b"2"), (b"b", b":3")]


@pytest.mark.parametrize(("separator", "given"), [("\\t", "a\t1"), ("\t", "a\t1"), (" => ", "a => 1")])
def test_separators_may_be_tabs_and_longer(separator: str, given: str) -> None:
    headrace("produce", "lines", "--key-separator", separator, given=given)

    assert [(record.key, record.value) for record in produced()] == [(b"a", b"1")]


def test_partition_timestamp_and_headers_go_for_all_records() -> None:
    with topics() as broker:
        broker.create_topic("two", 2)

    headrace(
        "produce", "two", "--partition", "1", "--timestamp", "1000", "--header", "a=1", "--header", "a=x=ü",
        given="one\ntwo\n",
    )  # fmt: skip

    headers = [("a", b"1"), ("a", "x=ü".encode())]
    assert produced("two") == [
        TopicRecord("two", 1, 0, 1000, None, b"one", headers),
        TopicRecord("two", 1, 1, 1000, None, b"two", headers),
    ]


@pytest.mark.parametrize(
    ("serde", "text", "expected"),
    [
        ("String", "7", b"7"),
        ("Integer", "7", serdes.Integer.serialize("", 7)),
        ("Long", "-7", serdes.Long.serialize("", -7)),
        ("Short", "7", serdes.Short.serialize("", 7)),
        ("Float", "0.5", serdes.Float.serialize("", 0.5)),
        ("Double", "1e3", serdes.Double.serialize("", 1000.0)),
        ("Boolean", "true", b"\x01"),
        ("Bytes", "as is", b"as is"),
        ("UUID", "00000000-0000-0000-0000-00000000000a", b"00000000-0000-0000-0000-00000000000a"),
        ("Json", '{"a": [1, null]}', b'{"a":[1,null]}'),
        ("Json", "null", None),
        ("org.apache.kafka.common.serialization.Serdes$LongSerde", "7", serdes.Long.serialize("", 7)),
    ],
)
def test_serdes_turn_text_into_bytes_for_keys_and_values(serde: str, text: str, expected: bytes | None) -> None:
    given = f"{text}|{text}\n"

    headrace("produce", "lines", "--key-separator", "|", "--key-serde", serde, "--value-serde", serde, given=given)

    assert [(record.key, record.value) for record in produced()] == [(expected, expected)]


@pytest.mark.parametrize(
    ("serde", "text", "expected"),
    [
        ("Integer", "seven", "a whole number"),
        ("Long", "1.5", "a whole number"),
        ("Double", "", "a number"),
        ("Boolean", "yes", "true or false"),
        ("UUID", "7", "a UUID"),
        ("Json", "{", "JSON"),
        ("Void", "x", "null"),
    ],
)
def test_text_that_does_not_fit_the_serde_is_an_error(serde: str, text: str, expected: str) -> None:
    outcome = headrace("produce", "lines", "--value-serde", serde, given=f"{text}\n")

    assert outcome == Outcome(
        1, "", f"error: line 1: --value-serde {serde}: expected {expected}, got {text!r} (nothing was produced)\n"
    )
    assert values() == []


def test_a_number_that_does_not_fit() -> None:
    outcome = headrace("produce", "lines", "--value-serde", "Short", given="70000\n")

    assert outcome.status == 1
    assert "expected int from -32768 to 32767, got int (70000)" in outcome.errors


def test_the_null_marker_produces_null() -> None:
    headrace("produce", "lines", "--key-separator", ":", "--null-marker", "NULL", given="a:NULL\nNULL:null\n")

    assert [(record.key, record.value) for record in produced()] == [(b"a", None), (None, b"null")]


def test_lines_before_a_wrong_one_stay() -> None:
    outcome = headrace("produce", "lines", "--key-separator", ":", given="a:1\nb:2\nnothing\nc:3\n")

    assert outcome == Outcome(
        1,
        "",
        "error: line 3: expected a key, ':' and a value, got 'nothing' (the 2 lines before it were produced)\n",
    )
    assert values() == [b"1", b"2"]


def test_a_line_that_is_not_utf_8_is_an_error() -> None:
    outcome = headrace("produce", "lines", given=b"good\n\xff\xfe\n")

    assert outcome.status == 1
    assert outcome.errors.startswith("error: line 2: expected UTF-8 text, got b'\\xff\\xfe'")
    assert values() == [b"good"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--key-separator", ""], "--key-separator: expected at least one character, got ''"),
        (["--header", "name"], "--header: expected NAME=VALUE, got 'name'"),
        (["--value-serde", "string"], "--value-serde: expected the name of a serde (String, Integer, Long"),
        (["--partition", "1"], "topic 'lines': expected a partition from 0 to 0, got 1"),
        (["--timestamp", "-1"], "topic 'lines': expected the timestamp in whole milliseconds since 1970, got -1"),
    ],
)
def test_wrong_options_are_errors(arguments: list[str], message: str) -> None:
    outcome = headrace("produce", "lines", *arguments, given="one\n")

    assert outcome.status == 1
    assert outcome.errors.startswith(f"error: {message}")
    assert values() == []


def test_an_unknown_topic_is_not_created() -> None:
    outcome = headrace("produce", "orders", given="one\n")

    assert outcome == Outcome(
        1,
        "",
        "error: there is no topic 'orders' in local:.headrace/topics.db (topics: lines). "
        "Create it with: headrace topics create orders\n",
    )
    with topics() as broker:
        assert list(broker.topics()) == ["lines"]


def test_a_line_is_written_when_it_comes_not_when_all_have_come() -> None:
    producer = started("produce", "lines")
    assert producer.stdin is not None
    with topics() as broker:
        reader = broker.records("lines", until_end=False)
        for text in ("first", "second"):
            producer.stdin.write(f"{text}\n")
            producer.stdin.flush()
            assert next(reader).value == text.encode()

    assert producer.communicate()[0] == "2 records to topic 'lines'\n"
    assert producer.returncode == 0
