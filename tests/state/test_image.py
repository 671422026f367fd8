"""The image in memory."""

import pytest

from headrace.state.image import MemoryImage


def test_an_image_starts_with_given_entries() -> None:
    image = MemoryImage({"counts": {b"a": b"1", b"gone": None, b"b": b"2"}})

    assert image.space("counts").get(b"a") == b"1"
    assert image.space("counts").get(b"gone") is None
    assert len(image.space("counts")) == 2
    assert len(image.space("other")) == 0


def test_the_given_entries_are_not_changed() -> None:
    entries: dict[str, dict[bytes, bytes | None]] = {"counts": {b"a": b"1"}}
    image = MemoryImage(entries)

    image.space("counts").apply({b"a": None, b"b": b"2"})

    assert entries == {"counts": {b"a": b"1"}}


def test_a_space_is_the_same_one_every_time_it_is_opened() -> None:
    image = MemoryImage()
    image.space("counts").apply({b"a": b"1"})

    assert image.space("counts").get(b"a") == b"1"


def test_apply_puts_replaces_and_deletes() -> None:
    space = MemoryImage({"s": {b"a": b"1", b"b": b"2", b"c": b"3"}}).space("s")

    space.apply({b"a": None, b"b": b"20", b"d": b"4", b"unknown": None})

    assert space.between(None, None) == [(b"b", b"20"), (b"c", b"3"), (b"d", b"4")]


@pytest.mark.parametrize(
    ("low", "high", "keys"),
    [(None, None, b"abcd"), (b"b", None, b"bcd"), (None, b"c", b"abc"), (b"b", b"c", b"bc"), (b"c", b"b", b"")],
)
def test_ranges_include_both_ends_and_none_is_open(low: bytes | None, high: bytes | None, keys: bytes) -> None:
    space = MemoryImage({"s": {bytes([key]): b"x" for key in b"dbca"}}).space("s")
    expected = [bytes([key]) for key in keys]

    assert [key for key, _ in space.between(low, high)] == expected
    assert [key for key, _ in space.iterate(low, high)] == expected
    assert [key for key, _ in space.iterate(low, high, reverse=True)] == expected[::-1]


def test_the_time_order_goes_by_time_key() -> None:
    space = MemoryImage({"s": {b"a2": b"x", b"b1": b"y", b"c3": b"z"}}).space("s", lambda key: key[::-1])

    assert [key for key, _ in space.iterate_by_time(b"1", b"2\xff")] == [b"b1", b"a2"]


def test_a_space_may_change_during_a_walk() -> None:
    space = MemoryImage({"s": {bytes([key]): b"x" for key in range(100)}}).space("s")

    walked = []
    for key, _ in space.iterate(None, None):
        walked.append(key[0])
        space.apply({key: None, bytes([key[0] + 1]): None} if key[0] % 2 == 0 else {})

    assert walked == list(range(0, 100, 2))
    assert space.between(None, None) == []
