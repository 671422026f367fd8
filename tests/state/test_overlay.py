"""The changes since the last commit, on top of the image."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.state.image import Changes, MemoryImage
from headrace.state.overlay import Overlay
from tests.state.committed_store import CountingSpace


def backwards(key: bytes) -> bytes:
    return key[::-1]


def encode(number: int) -> bytes:
    return str(number).encode()


def laid_over(entries: dict[bytes, int]) -> tuple[Overlay, CountingSpace]:
    committed: Changes = {key: encode(number) for key, number in entries.items()}
    space = CountingSpace(MemoryImage({"s": committed}).space("s", backwards))
    return Overlay(space, encode, int, backwards, suffix=1), space


def test_a_key_is_read_from_the_image_once() -> None:
    overlay, space = laid_over({b"a": 1})

    assert [overlay.get(b"a"), overlay.get(b"a"), overlay.get(b"b")] == [1, 1, None]
    assert space.touched == 2


def test_a_missing_key_is_not_remembered() -> None:
    overlay, _ = laid_over({})

    assert overlay.get(b"a") is None
    assert not overlay.live
    assert overlay.commit() == {}


def test_a_key_that_is_put_is_not_read_from_the_image() -> None:
    overlay, space = laid_over({b"a": 1})

    overlay.put(b"a", 2)

    assert overlay.get(b"a") == 2
    assert space.touched == 0


def test_the_image_is_unchanged_until_the_commit() -> None:
    overlay, space = laid_over({b"a": 1, b"b": 2})
    overlay.put(b"a", 10)
    overlay.delete(b"b")

    assert space.between(None, None) == [(b"a", b"1"), (b"b", b"2")]
    assert overlay.commit() == {b"a": b"10", b"b": None}
    assert space.between(None, None) == [(b"a", b"10")]


def test_a_commit_leaves_nothing_behind() -> None:
    overlay, _ = laid_over({b"a": 1})
    overlay.put(b"a", 10)
    overlay.commit()

    assert overlay.commit() == {}
    assert overlay.get(b"a") == 10
    assert list(overlay.iterate(None, None)) == [(b"a", 10)]


def test_entries_that_were_only_read_are_not_committed() -> None:
    overlay, _ = laid_over({b"a": 1})
    overlay.get(b"a")
    overlay.get(b"b")
    list(overlay.iterate(None, None))

    assert overlay.commit() == {}


def test_values_are_encoded_once_however_often_they_change() -> None:
    encoded: list[int] = []

    def encode_and_note(number: int) -> bytes:
        encoded.append(number)
        return encode(number)

    overlay = Overlay(MemoryImage().space("s"), encode_and_note, int)
    for number in range(10):
        overlay.put(b"a", number)
        overlay.get(b"a")
    overlay.commit()

    assert encoded == [9]


def test_changes_come_in_the_order_of_first_change() -> None:
    overlay, _ = laid_over({b"z": 1, b"a": 1})
    overlay.put(b"m", 1)
    overlay.put(b"z", 2)
    overlay.put(b"a", 3)
    overlay.put(b"m", 4)

    assert list(overlay.commit()) == [b"m", b"z", b"a"]


def test_a_key_deleted_before_it_was_ever_committed_leaves_no_trace() -> None:
    overlay, _ = laid_over({})
    overlay.put(b"a", 1)
    overlay.delete(b"a")
    overlay.delete(b"unknown")

    assert overlay.get(b"a") is None
    assert overlay.commit() == {}


def test_a_commit_that_cannot_encode_changes_nothing() -> None:
    def refuse(value: Any) -> bytes:
        raise ValueError("no")

    space = MemoryImage({"s": {b"a": b"1"}}).space("s")
    overlay = Overlay(space, refuse, int)
    overlay.put(b"a", 2)

    with pytest.raises(ValueError, match="no"):
        overlay.commit()
    assert space.get(b"a") == b"1"
    assert overlay.get(b"a") == 2


def test_expired_entries_are_deleted_whether_committed_or_not() -> None:
    overlay, space = laid_over({b"a1": 1, b"a3": 3, b"b5": 5})
    overlay.put(b"c2", 2)
    overlay.put(b"c4", 4)

    assert overlay.commit(expired_before=b"4") == {b"c2": None, b"c4": b"4", b"a1": None, b"a3": None}
    assert space.between(None, None) == [(b"b5", b"5"), (b"c4", b"4")]


def test_a_walk_merges_both_in_order() -> None:
    overlay, _ = laid_over({b"a": 1, b"c": 3, b"e": 5})
    overlay.put(b"b", 2)
    overlay.put(b"c", 30)
    overlay.delete(b"e")

    assert list(overlay.iterate(None, None)) == [(b"a", 1), (b"b", 2), (b"c", 30)]
    assert list(overlay.iterate(None, None, reverse=True)) == [(b"c", 30), (b"b", 2), (b"a", 1)]
    assert list(overlay.iterate(b"b", b"b")) == [(b"b", 2)]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_key_touched_ahead_of_a_walk_is_still_given_once(reverse: bool) -> None:
    numbers = {bytes([key]): key for key in range(60)}
    overlay, _ = laid_over(numbers)
    overlay.put(bytes([30]), 30)

    walk = overlay.iterate(None, None, reverse=reverse)
    walked = [next(walk)]
    for key in (29, 31, 45):
        overlay.get(bytes([key]))
        overlay.put(bytes([key]), key)
    walked += walk

    assert walked == sorted(numbers.items(), reverse=reverse)


def test_a_walk_that_a_commit_interrupts_goes_on() -> None:
    overlay, _ = laid_over({bytes([key]): key for key in range(60)})
    for key in range(30):
        overlay.put(bytes([key]), key)

    walk = overlay.iterate(None, None)
    walked = [next(walk) for _ in range(10)]
    overlay.commit()
    walked += walk

    assert [key[0] for key, _ in walked] == list(range(60))


def test_a_group_gives_its_own_keys_only() -> None:
    overlay, _ = laid_over({b"a1": 1, b"a3": 3, b"ab2": 22, b"b1": 10})
    overlay.put(b"a2", 2)
    overlay.put(b"ab3", 33)
    overlay.put(b"a3", 30)

    assert overlay.between(b"a", b"a1", b"a9") == [(b"a1", 1), (b"a2", 2), (b"a3", 30)]
    assert overlay.between(b"a", b"a2", b"a2") == [(b"a2", 2)]
    assert overlay.between(b"ab", b"ab0", b"ab9") == [(b"ab2", 22), (b"ab3", 33)]
    assert overlay.between(b"x", b"x0", b"x9") == []


def test_the_number_of_entries_counts_what_is_not_committed_yet() -> None:
    overlay, _ = laid_over({b"a": 1, b"b": 2})
    overlay.get(b"a")
    overlay.put(b"b", 3)
    overlay.put(b"c", 3)
    overlay.delete(b"a")

    assert len(overlay) == 2


KEYS = st.builds(bytes.__add__, st.sampled_from([b"", b"a", b"ab", b"b"]), st.sampled_from([b"1", b"2", b"3"]))
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("get"), KEYS),
        st.tuples(st.just("iterate"), KEYS, KEYS),
        st.tuples(st.just("by time"), KEYS, KEYS),
        st.tuples(st.just("between"), st.sampled_from([b"", b"a", b"ab"])),
        st.tuples(st.just("commit")),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=300)
@given(OPERATIONS)
def test_any_operations_give_what_a_sorted_dict_gives(operations: list[tuple[Any, ...]]) -> None:
    overlay, space = laid_over({})
    model: dict[bytes, int] = {}
    for operation in operations:
        match operation:
            case "put", key, number:
                overlay.put(key, number)
                model[key] = number
            case "delete", key:
                overlay.delete(key)
                model.pop(key, None)
            case "get", key:
                assert overlay.get(key) == model.get(key)
            case "iterate", low, high:
                expected = sorted(entry for entry in model.items() if low <= entry[0] <= high)
                assert list(overlay.iterate(low, high)) == expected
                assert list(overlay.iterate(low, high, reverse=True)) == expected[::-1]
            case "by time", low, high:
                expected = [entry for entry in model.items() if low <= backwards(entry[0]) <= high]
                expected.sort(key=lambda entry: backwards(entry[0]))
                assert list(overlay.iterate_by_time(low, high)) == expected
            case "between", group:
                expected = sorted(entry for entry in model.items() if entry[0][:-1] == group)
                assert overlay.between(group, group + b"1", group + b"3") == expected
            case ("commit",):
                overlay.commit()
                assert dict(space.between(None, None)) == {key: encode(number) for key, number in model.items()}
        assert len(overlay) == len(model)
