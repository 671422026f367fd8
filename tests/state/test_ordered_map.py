"""The dict that sorts its keys when a range is asked for."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.state.ordered_map import OrderedMap


def backwards(key: bytes) -> bytes:
    return key[::-1]


def filled(*keys: bytes) -> OrderedMap[int]:
    ordered: OrderedMap[int] = OrderedMap(backwards)
    for number, key in enumerate(keys):
        ordered.update({key: number})
    return ordered


def test_keys_come_in_the_order_of_their_bytes() -> None:
    ordered = filled(b"b", b"a", b"\xff", b"aa", b"")

    assert list(ordered.iterate(None, None)) == [b"", b"a", b"aa", b"b", b"\xff"]
    assert list(ordered.iterate(None, None, reverse=True)) == [b"\xff", b"b", b"aa", b"a", b""]
    assert ordered.between(b"a", b"b") == [b"a", b"aa", b"b"]


def test_keys_come_in_the_order_of_time_too() -> None:
    ordered = filled(b"1b", b"2a", b"3c", b"1a")

    assert list(ordered.iterate_by_time(b"a", b"b\xff")) == [b"1a", b"2a", b"1b"]


def test_keys_put_and_deleted_after_the_first_range_are_in_order_too() -> None:
    ordered = filled(b"1b", b"2a")
    list(ordered.iterate(None, None))
    list(ordered.iterate_by_time(b"", b"\xff"))

    ordered.update({b"0c": 0})
    ordered.update({b"2a": 9})
    ordered.update({b"1b": None})
    ordered.update({b"unknown": None})

    assert list(ordered.iterate(None, None)) == [b"0c", b"2a"]
    assert list(ordered.iterate_by_time(b"", b"\xff")) == [b"2a", b"0c"]
    assert ordered.data == {b"2a": 9, b"0c": 0}


@pytest.mark.parametrize("reverse", [False, True])
def test_a_long_walk_survives_the_deletion_of_everything_it_has_given(reverse: bool) -> None:
    keys = [number.to_bytes(2) for number in range(500)]
    ordered = filled(*keys)

    walked = []
    for key in ordered.iterate(None, None, reverse=reverse):
        walked.append(key)
        ordered.update({key: None})

    assert walked == (keys[::-1] if reverse else keys)


def test_a_long_walk_sees_keys_that_are_put_far_ahead() -> None:
    ordered = filled(*(number.to_bytes(2) for number in range(500)))
    walk = ordered.iterate(None, None)

    next(walk)
    ordered.update({b"\xff": 0})

    assert list(walk)[-1] == b"\xff"


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.binary(max_size=2), st.booleans()), max_size=60),
    st.binary(max_size=2),
    st.binary(max_size=2),
)
def test_any_puts_and_deletes_give_what_sorting_gives(
    operations: list[tuple[bool, bytes, bool]], low: bytes, high: bytes
) -> None:
    ordered: OrderedMap[Any] = OrderedMap(backwards)
    model: dict[bytes, int] = {}
    for number, (put, key, ask) in enumerate(operations):
        if put:
            ordered.update({key: number})
            model[key] = number
        else:
            ordered.update({key: None})
            model.pop(key, None)
        if ask:
            assert ordered.between(low, high) == sorted(key for key in model if low <= key <= high)
            by_time = sorted((key for key in model if low <= key[::-1] <= high), key=backwards)
            assert list(ordered.iterate_by_time(low, high)) == by_time
    assert ordered.data == model
    assert list(ordered.iterate(None, None, reverse=True)) == sorted(model, reverse=True)
