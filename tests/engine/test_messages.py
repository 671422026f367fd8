"""Messages come out of Spark as they went in."""

import pickle

import pytest

from headrace import StreamsError
from headrace.engine.messages import (
    ClockTick,
    Failure,
    Message,
    OutputRecords,
    Report,
    SentRecords,
    TopicRange,
    decode,
    encode,
    lanes_of,
)

NUMBERS = (7).to_bytes(8, "little")


@pytest.mark.parametrize(
    "message",
    [
        ClockTick(5),
        TopicRange("lines", 1, 2, 3, 4),
        Report("task 0_0", {"records_read": 1.0}, {"lines": {0: 5}}, ["a note"]),
        SentRecords("lines", 0, "1", 0, 4, [b"k", None], [None, b"v"], NUMBERS * 2, None, NUMBERS * 2, NUMBERS * 2),
        SentRecords("lines", 0, "1", 0, 4, [b"k"], [b"v"], NUMBERS, [[("name", b"value")]], NUMBERS, NUMBERS),
        OutputRecords(
            "lines", 0, "1", 0, [(b"key", b"value" * 3, 5, None)] * 20_000, NUMBERS * 20_000, NUMBERS * 20_000
        ),
    ],
    ids=["a tick", "a range", "a report", "nulls", "headers", "a large one"],
)
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("first", ["a", "b"])
def test_lanes_have_one_order_whichever_came_first(first: str) -> None:
    def sent(topic: str, number: int) -> SentRecords:
        return SentRecords(topic, 0, "1", number, 4, [b"k"], [b"v"], NUMBERS, None, NUMBERS, NUMBERS)

    second = "b" if first == "a" else "a"
    messages = [sent(first, 0), sent(second, 1), sent(first, 2)]

    assert [lane.topic for lane in lanes_of(messages)] == ["a", "b"]


def test_a_large_message_takes_less_than_its_records() -> None:
    message = OutputRecords("lines", 0, "1", 0, [(b"key", b"value" * 3, 5, None)] * 20_000, b"", b"")

    assert len(encode(message)) < 20_000 * 18 / 4


def test_sent_records_have_sequences_for_offsets() -> None:
    message = SentRecords("lines", 0, "1", 0, 4, [b"k"], [b"v"], NUMBERS, [[("name", b"value")]], NUMBERS, NUMBERS)

    assert list(message.records()) == [(7, 7, b"k", b"v", [("name", b"value")], 7)]


def test_an_exception_arrives_with_its_cause() -> None:
    error = StreamsError("the step broke")
    error.__cause__ = KeyError("colour")
    arrived = Failure.of(error).error()
    assert isinstance(arrived, StreamsError)
    assert str(arrived) == "the step broke"
    assert isinstance(arrived.__cause__, KeyError)


class Unpicklable(Exception):
    """An exception that cannot be made anew from its arguments."""

    def __init__(self, left: str, right: str) -> None:
        super().__init__(f"{left} and {right}")


def test_an_exception_that_cannot_travel_arrives_as_text() -> None:
    assert pickle.dumps(Unpicklable("a", "b"))  # it is the way back that fails
    arrived = Failure.of(Unpicklable("a", "b")).error()
    assert isinstance(arrived, StreamsError)
    assert str(arrived) == "Unpicklable: a and b"
