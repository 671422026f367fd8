"""Blocks come out of Spark as they went in."""

import pytest

from headrace.engine.messages import Block, Input, Output, Report, Stretch, Tick, decode, encode, lanes_of

NUMBERS = (7).to_bytes(8, "little")


@pytest.mark.parametrize(
    "block",
    [
        Tick(5),
        Stretch("lines", 1, 2, 3, 4),
        Report("task 0_0", {"records_read": 1.0}, {"lines": {0: 5}}, ["a note"]),
        Input("lines", 0, "1", 0, 4, [b"k", None], [None, b"v"], NUMBERS * 2, None, NUMBERS * 2, NUMBERS * 2),
        Input("lines", 0, "1", 0, 4, [b"k"], [b"v"], NUMBERS, [[("name", b"value")]], NUMBERS, NUMBERS),
        Output("lines", 0, "1", 0, [(b"key", b"value" * 3, 5, None)] * 20_000, NUMBERS * 20_000, NUMBERS * 20_000),
    ],
    ids=["a tick", "a stretch", "a report", "nulls", "headers", "a large one"],
)
def test_a_block_comes_back_as_it_was(block: Block) -> None:
    assert decode(encode(block)) == block


@pytest.mark.parametrize("first", ["a", "b"])
def test_lanes_have_one_order_whichever_came_first(first: str) -> None:
    def sent(topic: str, index: int) -> Input:
        return Input(topic, 0, "1", index, 4, [b"k"], [b"v"], NUMBERS, None, NUMBERS, NUMBERS)

    second = "b" if first == "a" else "a"
    blocks = [sent(first, 0), sent(second, 1), sent(first, 2)]

    assert [lane.topic for lane in lanes_of(blocks)] == ["a", "b"]


def test_a_large_block_takes_less_than_its_records() -> None:
    block = Output("lines", 0, "1", 0, [(b"key", b"value" * 3, 5, None)] * 20_000, b"", b"")

    assert len(encode(block)) < 20_000 * 18 / 4


def test_the_records_of_a_block_have_their_order_for_offsets() -> None:
    block = Input("lines", 0, "1", 0, 4, [b"k"], [b"v"], NUMBERS, [[("name", b"value")]], NUMBERS, NUMBERS)

    assert list(block.records()) == [(7, 7, b"k", b"v", [("name", b"value")], 7)]
