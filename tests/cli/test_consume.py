"""`headrace consume`."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from headrace import serdes
from headrace.serdes import Serde
from tests.cli.running import Outcome, headrace, run, started, topics


@pytest.fixture(autouse=True)
def lines(folder: Path) -> None:
    with topics() as broker:
        broker.create_topic("lines", 2)
        broker.produce("lines", [(b"a", b"one", 1000), (b"b", b"two", 2000, [("h", b"1"), ("i", b"\xff")])], 0)
        broker.produce("lines", [(None, b"three", 3000), (b"d", None, 4000)], 1)


def test_prints_keys_and_values_from_the_beginning_with_the_real_command() -> None:
    assert run("consume", "lines") == Outcome(0, "a\tone\nb\ttwo\nnull\tthree\nd\tnull\n", "")


def test_from_beginning_is_the_default_without_follow() -> None:
    assert headrace("consume", "lines", "--from-beginning") == headrace("consume", "lines")


def test_columns_are_printed_in_the_given_order() -> None:
    assert headrace("consume", "lines", "--print", "partition,offset, timestamp,key,value,headers").output == (
        "0\t0\t1000\ta\tone\t\n0\t1\t2000\tb\ttwo\th=1,i=\\xff\n1\t0\t3000\tnull\tthree\t\n1\t1\t4000\td\tnull\t\n"
    )
    assert headrace("consume", "lines", "--print", "value").output == "one\ntwo\nthree\nnull\n"


@pytest.mark.parametrize("columns", ["", "value,keys", "value,"])
def test_an_unknown_column_is_an_error(columns: str) -> None:
    outcome = headrace("consume", "lines", "--print", columns)

    assert outcome.status == 1
    unknown = columns.split(",")[-1]
    columns_there = "key, value, timestamp, partition, offset, headers"
    assert outcome.errors == f"error: --print: there is no column '{unknown}'. Choose from {columns_there}\n"


def test_max_limits_the_number_of_records() -> None:
    assert headrace("consume", "lines", "--max", "3").output == "a\tone\nb\ttwo\nnull\tthree\n"
    assert headrace("consume", "lines", "-n", "9").output.count("\n") == 4
    assert headrace("consume", "lines", "-n", "0").status == 2


def test_the_null_marker_is_printed_for_null() -> None:
    assert headrace("consume", "lines", "--null-marker", "", "--print", "value").output == "one\ntwo\nthree\n\n"


@pytest.mark.parametrize(
    ("name", "serde", "value", "text"),
    [
        ("String", serdes.String, "grüezi", "grüezi"),
        ("Integer", serdes.Integer, -7, "-7"),
        ("Long", serdes.Long, 7, "7"),
        ("Short", serdes.Short, 7, "7"),
        ("Float", serdes.Float, 0.5, "0.5"),
        ("Double", serdes.Double, 0.1, "0.1"),
        ("Boolean", serdes.Boolean, False, "false"),
        ("Bytes", serdes.Bytes, b"ab\xff", "ab\\xff"),
        ("UUID", serdes.UUID, uuid.UUID(int=10), "00000000-0000-0000-0000-00000000000a"),
        ("Json", serdes.Json, {"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'),
        ("Json", serdes.Json, "text", '"text"'),
    ],
)
def test_serdes_turn_bytes_into_text(name: str, serde: Serde[Any], value: Any, text: str) -> None:
    with topics() as broker:
        broker.create_topic("one")
        data = serde.serialize("one", value)
        broker.produce("one", [(data, data)])

    assert headrace("consume", "one", "--key-serde", name, "--value-serde", name).output == f"{text}\t{text}\n"


def test_bytes_that_the_serde_cannot_read() -> None:
    with topics() as broker:
        broker.create_topic("one")
        broker.produce("one", [(b"k", b"\x00\x00\x00\x07"), (b"k", b"\xff")])

    as_text = headrace("consume", "one")
    assert as_text.output == "k\t\x00\x00\x00\x07\n"
    assert as_text.errors.startswith(
        "error: value of partition 0, offset 1: serdes.String on topic 'one': expected utf-8"
    )
    assert as_text.errors.endswith(". Name the serde it was written with: --value-serde\n")

    as_number = headrace("consume", "one", "--value-serde", "Long")
    assert (as_number.status, as_number.output) == (1, "")
    assert "value of partition 0, offset 0: serdes.Long on topic 'one': expected 8 bytes, got 4" in as_number.errors

    assert headrace("consume", "one", "--key-serde", "Long").errors.endswith("written with: --key-serde\n")


def test_an_unknown_serde_is_an_error_that_names_the_known_ones() -> None:
    outcome = headrace("consume", "lines", "--key-serde", "Strnig")

    assert outcome.status == 1
    assert outcome.errors.startswith("error: --key-serde: expected the name of a serde (String, Integer,")


def test_follow_starts_with_new_records() -> None:
    with topics() as broker:
        consumer = started("consume", "lines", "--follow", "--max", "2")
        assert consumer.stdout is not None
        # The consumer does not say when it has found the end: produce until it has got something.
        number = 0
        while consumer.poll() is None:
            broker.produce("lines", [(b"k", b"%d" % number)])
            number += 1

    printed = [int(line.split("\t")[1]) for line in consumer.communicate()[0].splitlines()]
    assert len(printed) == 2
    assert printed[1] == printed[0] + 1
    assert consumer.returncode == 0


def test_follow_from_beginning_prints_old_and_new_records() -> None:
    consumer = started("consume", "lines", "-f", "--from-beginning", "--print", "value")
    assert consumer.stdout is not None
    assert [consumer.stdout.readline() for _ in range(4)] == ["one\n", "two\n", "three\n", "null\n"]

    with topics() as broker:
        broker.produce("lines", [(b"a", b"five")])

    assert consumer.stdout.readline() == "five\n"
    consumer.kill()
    consumer.communicate()


def test_consume_prints_what_produce_has_written() -> None:
    text = "".join(f"key {number}\tvalue\twith tab {number}\n" for number in range(1_000))
    headrace("topics", "create", "copy")

    headrace("produce", "copy", "--key-separator", "\\t", given=text)

    assert headrace("consume", "copy").output == text
