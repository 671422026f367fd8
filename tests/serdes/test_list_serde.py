"""Lists: which values and bytes are read and refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace import serdes
from headrace.errors import SerializationError
from headrace.serdes import Serde

words = serdes.List(serdes.String)
numbers = serdes.List(serdes.Integer)


def test_tuple_is_written_like_a_list() -> None:
    assert words.serialize("t", ("a", None)) == words.serialize("t", ["a", None])  # type: ignore[arg-type,list-item]


def test_last_entry_may_be_empty() -> None:
    assert words.deserialize("t", words.serialize("t", ["a", ""])) == ["a", ""]


def test_lists_nest() -> None:
    nested = serdes.List(serdes.List(serdes.Long))

    assert nested.deserialize("t", nested.serialize("t", [[1, 2], [], [3]])) == [[1, 2], [], [3]]
    assert repr(nested) == "serdes.List(serdes.List(serdes.Long))"


def test_list_of_a_users_serde() -> None:
    serde = serdes.List(Serde(lambda value: str(value).encode(), int))

    assert serde.deserialize("t", serde.serialize("t", [1, 22])) == [1, 22]


@pytest.mark.parametrize("value", ["ab", {"a"}, {"a": 1}, 7, iter(["a"])])
def test_only_lists_are_accepted(value: Any) -> None:
    with pytest.raises(SerializationError, match=rf"expected list or tuple, got {type(value).__name__}"):
        words.serialize("t", value)


def test_wrong_entry_is_named() -> None:
    with pytest.raises(SerializationError) as caught:
        words.serialize("lines", ["a", None, 5])  # type: ignore[list-item]

    message = "serdes.List(serdes.String) on topic 'lines': entry 2: expected str, got int (5). Pass"
    assert str(caught.value).startswith(message)


def test_an_error_that_does_not_come_again_is_shown() -> None:
    answers: Iterator[Any] = iter([ValueError("busy"), b"a"])

    def serialize(value: str) -> bytes:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return bytes(answer)

    with pytest.raises(SerializationError, match=r"on topic 't': cannot write list \(\['a'\]\): ValueError: busy$"):
        serdes.List(Serde(serialize, bytes.decode)).serialize("t", ["a"])


def test_entry_written_as_null_is_refused() -> None:
    serde = serdes.List(Serde(lambda value: None, bytes.decode))

    with pytest.raises(SerializationError, match=r"entry 0: serdes.Serde\(.*\) wrote null for str \('a'\)"):
        serde.serialize("t", ["a"])


@pytest.mark.parametrize(
    ("serde", "hexes", "message"),
    [
        (words, "", "the first byte must be 0 or 1, not None"),
        (words, "02 00000000", "the first byte must be 0 or 1, not 2"),
        (words, "00 00000000 00000000", "its entries have a constant size, but the inner serde writes"),
        (words, "01 0000", "the data ends too early"),
        (words, "01 ffffffff", "-1 entries"),
        (words, "01 00000002 ffffffff", "the data ends too early"),
        (words, "01 7fffffff ffffffff", "the data ends too early"),
        (words, "01 00000001 fffffffe", "an entry of -2 bytes"),
        (words, "01 00000001 00000003 6161", "an entry of 3 bytes, but 2 are left"),
        (words, "01 00000001 00000001 61 61", "1 bytes are left over"),
        (words, "01 00000002 00000001 61 00000001 ff", "entry 1: expected utf-8 text, got 1 byte"),
        (numbers, "00 ffffffff 00000000", "-1 null entries"),
        (numbers, "00 7fffffff 00000000 00000000", "the data ends too early"),
        (numbers, "00 00000000", "the data ends too early"),
        (
            numbers,
            "00 00000000 7fffffff 00000001",
            "2147483647 entries of 4 bytes, 0 of them null, but 4 bytes are left",
        ),
        (
            numbers,
            "00 00000002 00000000 00000001 00000001",
            "1 entries of 4 bytes, 2 of them null, but 0 bytes are left",
        ),
        (numbers, "00 00000001 ffffffff 00000001", "null entries from -1 to -1, but 1 entries"),
        (numbers, "00 00000001 00000009 00000001", "null entries from 9 to 9, but 1 entries"),
        (numbers, "01 00000001 00000002 0001", "entry 0: expected 4 bytes, got 2"),
    ],
)
def test_corrupt_list_is_refused(serde: Serde[Any], hexes: str, message: str) -> None:
    data = bytes.fromhex(hexes)

    with pytest.raises(SerializationError) as caught:
        serde.deserialize("t", data)

    assert str(caught.value).startswith(f"{serde!r} on topic 't': expected a list, got {len(data)} byte")
    assert f": {message}" in str(caught.value)


def test_list_of_longs_is_not_read_as_a_list_of_integers() -> None:
    data = serdes.List(serdes.Long).serialize("t", [1, 2])

    with pytest.raises(SerializationError, match=r"8 bytes are left over\. Pass the serde"):
        numbers.deserialize("t", data)
