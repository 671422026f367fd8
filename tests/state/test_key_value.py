"""Key-value stores, plain and timestamped (`state.key_value`, `state.entries`)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import SerializationError, Stores, ValueAndTimestamp, serdes
from headrace.serdes import Serde
from tests.state.committed_store import CommittedStore


@pytest.fixture
def kept() -> CommittedStore:
    return CommittedStore(Stores.key_value("numbers", serdes.Integer, serdes.String))


@pytest.fixture
def store(kept: CommittedStore) -> Any:
    return kept.store


def _bytes(key: int) -> bytes:
    data = serdes.Integer.serialize(None, key)
    assert data is not None
    return data


def filled(kept: CommittedStore, *, committed: bool = True) -> Any:
    kept.store.put_all([(0, "zero"), (1, "one"), (2, "two"), (4, "four"), (5, "five")])
    if committed:
        kept.commit()
    return kept.store


# -- single keys ------------------------------------------------------------------------------------------------------


def test_a_value_is_there_once_it_is_put(store: Any) -> None:
    store.put(1, "one")

    assert store.get(1) == "one"
    assert store.get(2) is None


def test_a_put_replaces(store: Any) -> None:
    store.put(1, "one")
    store.put(1, "uno")

    assert list(store.all()) == [(1, "uno")]


def test_none_deletes(store: Any) -> None:
    store.put(1, "one")
    store.put(1, None)
    store.put(2, None)

    assert store.get(1) is None
    assert list(store.all()) == []


def test_delete_returns_the_old_value(store: Any) -> None:
    store.put(1, "one")

    assert store.delete(1) == "one"
    assert store.delete(1) is None
    assert store.get(1) is None


def test_put_if_absent_keeps_and_returns_an_existing_value(store: Any) -> None:
    assert store.put_if_absent(4, "four") is None
    assert store.put_if_absent(4, "quattro") == "four"
    assert store.get(4) == "four"


def test_put_if_absent_puts_after_a_delete(store: Any) -> None:
    store.put(4, "four")
    store.delete(4)

    assert store.put_if_absent(4, "quattro") is None
    assert store.get(4) == "quattro"


def test_put_if_absent_of_none_changes_nothing(store: Any) -> None:
    assert store.put_if_absent(4, None) is None
    assert store.get(4) is None


def test_put_all_takes_pairs_in_order_and_deletes_with_none(store: Any) -> None:
    store.put_all([(1, "one"), (2, "two"), (1, "uno"), (2, None)])

    assert list(store.all()) == [(1, "uno")]


def test_an_empty_value_is_not_a_missing_one(kept: CommittedStore) -> None:
    kept.store.put(1, "")
    assert kept.store.get(1) == ""

    kept.commit()
    assert kept.store.get(1) == ""
    assert list(kept.rebuild().all()) == [(1, "")]


# -- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "keys"),
    [
        (2, 4, [2, 4]),
        (2, 6, [2, 4, 5]),
        (3, 3, []),
        (2, 2, [2]),
        (None, 1, [0, 1]),
        (4, None, [4, 5]),
        (None, None, [0, 1, 2, 4, 5]),
        (4, 2, []),
    ],
)
def test_a_range_includes_both_ends_and_none_is_open(
    kept: CommittedStore, committed: bool, low: int | None, high: int | None, keys: list[int]
) -> None:
    store = filled(kept, committed=committed)

    assert [key for key, _ in store.range(low, high)] == keys
    assert [key for key, _ in store.reverse_range(low, high)] == keys[::-1]


def test_all_and_reverse_all_give_pairs_in_order(kept: CommittedStore) -> None:
    store = filled(kept)

    assert list(store.all()) == [(0, "zero"), (1, "one"), (2, "two"), (4, "four"), (5, "five")]
    assert list(store.reverse_all()) == [(5, "five"), (4, "four"), (2, "two"), (1, "one"), (0, "zero")]


def test_a_range_has_neither_deleted_nor_stale_entries(kept: CommittedStore) -> None:
    store = filled(kept)
    store.delete(1)
    store.put(2, "due")
    store.put(3, "tre")

    assert list(store.range(0, 4)) == [(0, "zero"), (2, "due"), (3, "tre"), (4, "four")]
    assert list(store.reverse_range(0, 4)) == [(4, "four"), (3, "tre"), (2, "due"), (0, "zero")]


def test_order_is_that_of_the_serialized_bytes() -> None:
    numbers = CommittedStore(Stores.key_value("numbers", serdes.Integer, serdes.String)).store
    numbers.put_all([(number, "") for number in (-2, 3, -1, 0)])
    texts = CommittedStore(Stores.key_value("texts", serdes.String, serdes.String)).store
    texts.put_all([(text, "") for text in ("é", "Z", "z", "aa", "a", "")])

    assert [key for key, _ in numbers.all()] == [0, 3, -2, -1]
    assert [key for key, _ in texts.all()] == ["", "Z", "a", "aa", "z", "é"]


def test_a_range_from_a_negative_number_to_a_positive_one_is_empty(store: Any) -> None:
    store.put_all([(-1, "minus one"), (0, "zero"), (1, "one")])

    assert list(store.range(-1, 1)) == []
    assert list(store.reverse_range(-1, 1)) == []
    assert [key for key, _ in store.range(0, -1)] == [0, 1, -1]


def test_a_prefix_scan_gives_the_keys_that_start_with_it() -> None:
    store = CommittedStore(Stores.key_value("texts", serdes.String, serdes.Integer)).store
    store.put_all([("a", 1), ("ab", 2), ("abc", 3), ("ac", 4), ("b", 5)])

    assert list(store.prefix_scan("ab")) == [("ab", 2), ("abc", 3)]
    assert list(store.prefix_scan(b"a")) == [("a", 1), ("ab", 2), ("abc", 3), ("ac", 4)]
    assert list(store.prefix_scan("x")) == []
    assert [key for key, _ in store.prefix_scan("")] == ["a", "ab", "abc", "ac", "b"]


def test_a_prefix_may_be_of_another_type_than_the_key() -> None:
    store = CommittedStore(Stores.key_value("pairs", serdes.Bytes, serdes.Integer)).store
    for left, right in [(1, 1), (1, 2), (2, 1)]:
        store.put(_bytes(left) + _bytes(right), left * 10 + right)

    found = store.prefix_scan(1, _bytes)

    assert [value for _, value in found] == [11, 12]


def test_a_prefix_of_the_highest_bytes_is_found_to_the_end() -> None:
    store = CommittedStore(Stores.key_value("bytes", serdes.Bytes, serdes.Integer)).store
    store.put_all([(b"\xfe", 1), (b"\xff", 2), (b"\xff\xff", 3), (b"\xff\xff\x01", 4)])

    assert [value for _, value in store.prefix_scan(b"\xff\xff")] == [3, 4]
    assert [value for _, value in store.prefix_scan(b"\xff")] == [2, 3, 4]


# -- changes during a walk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [False, True])
def test_every_entry_may_be_deleted_while_walking(kept: CommittedStore, committed: bool) -> None:
    kept.store.put_all([(number, str(number)) for number in range(100)])
    if committed:
        kept.commit()

    walked = []
    for key, _ in kept.store.all():
        walked.append(key)
        kept.store.delete(key)

    assert walked == list(range(100))
    assert list(kept.store.all()) == []


@pytest.mark.parametrize("committed", [False, True])
def test_a_walk_sees_what_happens_to_the_entries_ahead_of_it(kept: CommittedStore, committed: bool) -> None:
    store = filled(kept, committed=committed)
    walk = store.all()

    first = next(walk)
    store.delete(1)
    store.put(2, "due")
    assert store.get(4) == "four"

    assert [first, *walk] == [(0, "zero"), (2, "due"), (4, "four"), (5, "five")]


@pytest.mark.parametrize("committed", [False, True])
def test_a_walk_backwards_sees_what_happens_to_the_entries_ahead_of_it(kept: CommittedStore, committed: bool) -> None:
    store = filled(kept, committed=committed)
    walk = store.reverse_all()

    first = next(walk)
    store.delete(4)
    store.put(2, "due")
    assert store.get(0) == "zero"

    assert [first, *walk] == [(5, "five"), (2, "due"), (1, "one"), (0, "zero")]


def test_puts_behind_a_walk_do_not_disturb_it(kept: CommittedStore) -> None:
    store = filled(kept)

    walked = []
    for key, value in store.range(1, None):
        walked.append(key)
        store.put(key, value + "!")
        store.put(key - 10, "behind")

    assert walked[:4] == [1, 2, 4, 5]
    assert store.get(2) == "two!"


# -- values -----------------------------------------------------------------------------------------------------------


def test_a_value_changed_after_the_put_is_not_changed_in_the_store() -> None:
    store = CommittedStore(Stores.key_value("lists", serdes.String, serdes.Json)).store
    mine = [1]

    store.put("a", mine)
    mine.append(2)

    assert store.get("a") == [1]


def test_a_value_changed_after_the_get_is_not_changed_in_the_store() -> None:
    kept = CommittedStore(Stores.key_value("lists", serdes.String, serdes.Json))
    kept.store.put("a", [1])

    kept.store.get("a").append(2)
    dict(kept.store.all())["a"].append(3)

    assert kept.store.get("a") == [1]
    kept.commit()
    assert kept.rebuild().get("a") == [1]


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        pytest.param(serdes.Float, 0.1, id="float"),
        pytest.param(serdes.Json, (1, {2: "two"}), id="json"),
        pytest.param(serdes.Bytes, bytearray(b"x"), id="bytes"),
        pytest.param(serdes.List(serdes.Long), (1,), id="list"),
    ],
)
def test_a_value_reads_the_same_before_and_after_the_commit(serde: Serde[Any], value: Any) -> None:
    kept = CommittedStore(Stores.key_value("values", serdes.String, serde))
    kept.store.put("a", value)
    before = kept.store.get("a")

    kept.commit()

    assert kept.store.get("a") == before
    assert type(kept.store.get("a")) is type(before)
    assert kept.rebuild().get("a") == before


def test_a_value_whose_bytes_are_null_deletes() -> None:
    serde: Serde[str] = Serde(lambda text: None if text == "nothing" else text.encode(), bytes.decode)
    kept = CommittedStore(Stores.key_value("texts", serdes.String, serde))
    kept.store.put_all([("a", "x"), ("b", "x"), ("a", "nothing")])

    assert list(kept.store.all()) == [("b", "x")]
    assert kept.commit() == {"texts": {b"a": None, b"b": b"x"}}


# -- wrong types ------------------------------------------------------------------------------------------------------


def test_a_value_of_another_type_is_refused_with_the_stores_name(store: Any) -> None:
    with pytest.raises(SerializationError, match=r"^store 'numbers': .*expected str, got int \(7\)"):
        store.put(1, 7)
    assert store.get(1) is None


def test_a_key_of_another_type_is_refused_with_the_stores_name(store: Any) -> None:
    for refused in (lambda: store.get("one"), lambda: store.put("one", "x"), lambda: list(store.range("a", "b"))):
        with pytest.raises(SerializationError, match=r"^store 'numbers': .*expected int, got str"):
            refused()


@pytest.mark.parametrize("key_serde", [serdes.Integer, serdes.String, serdes.Json], ids=repr)
def test_a_key_cannot_be_none(key_serde: Serde[Any]) -> None:
    store = CommittedStore(Stores.key_value("numbers", key_serde, serdes.String)).store

    refusals: list[Callable[[], Any]] = [
        lambda: store.get(None),
        lambda: store.put(None, "x"),
        lambda: store.put_if_absent(None, "x"),
        lambda: store.put_all([(None, "x")]),
        lambda: store.delete(None),
    ]
    for refused in refusals:
        with pytest.raises(SerializationError, match=r"^store 'numbers': expected a key, got None"):
            refused()


def test_a_value_that_does_not_fit_its_bytes_fails_the_commit_with_the_stores_name() -> None:
    kept = CommittedStore(Stores.key_value("longs", serdes.String, serdes.Long))
    kept.store.put("a", 2**64)

    with pytest.raises(SerializationError, match=r"^store 'longs': "):
        kept.commit()


# -- timestamped ------------------------------------------------------------------------------------------------------


def test_a_timestamped_store_gives_and_takes_values_with_their_timestamp() -> None:
    kept = CommittedStore(Stores.key_value("counts", serdes.String, serdes.Long, timestamped=True))

    kept.store.put("a", ValueAndTimestamp(1, 10))
    assert kept.store.put_if_absent("a", ValueAndTimestamp(2, 20)) == ValueAndTimestamp(1, 10)
    assert kept.store.get("a").timestamp == 10
    kept.commit()

    assert kept.store.get("a") == ValueAndTimestamp(1, 10)
    assert [(key, entry.value) for key, entry in kept.rebuild().all()] == [("a", 1)]
    assert kept.store.delete("a") == ValueAndTimestamp(1, 10)


def test_a_timestamped_store_keeps_the_timestamp_before_the_values_bytes() -> None:
    kept = CommittedStore(Stores.key_value("counts", serdes.String, serdes.Long, timestamped=True))
    kept.store.put("a", ValueAndTimestamp(1, 10))

    assert kept.commit() == {"counts": {b"a": (10).to_bytes(8) + (1).to_bytes(8)}}


@pytest.mark.parametrize("value", [5, "ab", (1,), (1, "now"), [1, 2]], ids=repr)
def test_a_timestamped_store_refuses_a_value_without_a_timestamp(value: Any) -> None:
    store = CommittedStore(Stores.key_value("counts", serdes.String, serdes.Json, timestamped=True)).store

    with pytest.raises(SerializationError, match=r"^store 'counts': .*expected ValueAndTimestamp\(value, timestamp\)"):
        store.put("a", value)
    with pytest.raises(SerializationError, match=r"^store 'counts': "):
        store.put_if_absent("a", value)


def test_a_timestamp_that_does_not_fit_its_bytes_fails_the_commit_with_the_stores_name() -> None:
    kept = CommittedStore(Stores.key_value("counts", serdes.String, serdes.Long, timestamped=True))
    kept.store.put("a", ValueAndTimestamp(1, 2**64))

    with pytest.raises(SerializationError, match=r"^store 'counts': a value cannot be serialized: "):
        kept.commit()


def test_mutable_values_with_timestamps_are_safe_from_changes_too() -> None:
    store = CommittedStore(Stores.key_value("lists", serdes.String, serdes.Json, timestamped=True)).store
    store.put("a", ValueAndTimestamp([1], 10))

    store.get("a").value.append(2)

    assert store.get("a") == ValueAndTimestamp([1], 10)


@pytest.mark.parametrize("row", [{"city": "Ulm"}, {"cities": ["Ulm"]}, ["Ulm"], "Ulm"], ids=repr)
def test_a_key_that_is_looked_up_repeatedly_has_its_current_value(row: Any) -> None:
    kept = CommittedStore(Stores.key_value("rows", serdes.String, serdes.Json, timestamped=True))
    kept.store.put("a", ValueAndTimestamp(row, 10))
    kept.commit()

    for _ in range(4):
        found, timestamp = kept.store.find("a")
        assert (found, timestamp) == (row, 10)
        if isinstance(found, dict | list):
            found.clear()
    kept.store.put("a", ValueAndTimestamp({"city": "Bonn"}, 20))
    assert [kept.store.find("a") for _ in range(3)] == [({"city": "Bonn"}, 20)] * 3
    kept.store.delete("a")
    assert [kept.store.find("a") for _ in range(3)] == [None] * 3
    kept.store.write(b"a", row, 30)
    assert [kept.store.find("a") for _ in range(3)] == [(row, 30)] * 3
    kept.commit()
    assert kept.store.find("a") == (row, 30)


def test_a_look_up_by_a_key_of_another_type_is_refused_also_after_others() -> None:
    store = CommittedStore(Stores.key_value("rows", serdes.String, serdes.Json, timestamped=True)).store
    store.put("a", ValueAndTimestamp({}, 10))
    assert [store.find("a"), store.find("a")] == [({}, 10), ({}, 10)]

    for key in (1, ["a"], b"a"):
        with pytest.raises(SerializationError, match=r"^store 'rows': "):
            store.find(key)


# -- commits ----------------------------------------------------------------------------------------------------------


def test_a_commit_returns_what_changed_and_nothing_else(kept: CommittedStore) -> None:
    store = filled(kept)
    store.get(0)
    store.put(1, "uno")
    store.put(7, "sette")
    store.delete(5)
    list(store.all())

    assert kept.commit() == {
        "numbers": {
            _bytes(1): b"uno",
            _bytes(7): b"sette",
            _bytes(5): None,
        }
    }
    assert kept.commit() == {}


def test_the_last_of_several_changes_is_committed_in_the_order_of_the_first(kept: CommittedStore) -> None:
    kept.store.put(2, "two")
    kept.store.put(1, "one")
    kept.store.put(2, "due")

    changes = kept.commit()["numbers"]

    assert list(changes.values()) == [b"due", b"one"]


def test_a_deleted_key_is_gone_after_rebuild(kept: CommittedStore) -> None:
    store = filled(kept)
    store.delete(4)
    kept.commit()

    store = kept.rebuild()

    assert store.get(4) is None
    assert [key for key, _ in store.all()] == [0, 1, 2, 5]


def test_uncommitted_changes_are_lost_after_a_rebuild(kept: CommittedStore) -> None:
    store = filled(kept)
    store.put(9, "nine")
    store.delete(0)

    assert [key for key, _ in kept.rebuild().all()] == [0, 1, 2, 4, 5]


def test_the_number_of_entries_counts_puts_and_deletes_before_the_commit(kept: CommittedStore) -> None:
    assert kept.store.approximate_num_entries() == 0

    store = filled(kept)
    assert store.approximate_num_entries() == 5
    store.put(9, "nine")
    store.put(1, "uno")
    store.delete(0)
    store.delete(77)
    assert store.approximate_num_entries() == 5

    kept.commit()
    assert store.approximate_num_entries() == 5
    assert kept.rebuild().approximate_num_entries() == 5


# -- cost -------------------------------------------------------------------------------------------------------------


def test_no_operation_on_a_key_looks_at_the_rest_of_the_store(kept: CommittedStore) -> None:
    kept.store.put_all([(number, str(number)) for number in range(2000)])
    kept.commit()
    store, before = kept.store, kept.touched

    store.get(500)
    store.put(501, "x")
    store.put_if_absent(502, "x")
    store.delete(503)
    store.put(5000, "x")
    store.approximate_num_entries()
    kept.commit()

    assert kept.touched - before <= 20


def test_a_range_looks_at_its_own_entries_only(kept: CommittedStore) -> None:
    kept.store.put_all([(number, str(number)) for number in range(2000)])
    kept.commit()
    store, before = kept.store, kept.touched

    assert len(list(store.range(500, 509))) == 10
    assert len(list(store.reverse_range(500, 509))) == 10
    assert next(store.all()) == (0, "0")
    assert next(store.reverse_all()) == (1999, "1999")
    assert len(list(store.prefix_scan(b"\x00\x00\x01\x00"))) == 1

    assert kept.touched - before <= 30


# -- any operations ---------------------------------------------------------------------------------------------------

KEYS = st.sampled_from([-3, -1, 0, 1, 2, 3, 200, 70_000])
VALUES = st.text("xyz", max_size=2)
BOUND = st.none() | KEYS


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, VALUES | st.none()),
        st.tuples(st.just("put_if_absent"), KEYS, VALUES),
        st.tuples(st.just("delete"), KEYS),
        st.tuples(st.just("get"), KEYS),
        st.tuples(st.just("range"), BOUND, BOUND),
        st.tuples(st.just("prefix"), st.binary(max_size=2)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("rebuild")),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(OPERATIONS, st.booleans())
def test_any_operations_give_what_a_sorted_dict_gives(operations: list[tuple[Any, ...]], mutable: bool) -> None:
    kept = CommittedStore(Stores.key_value("any", serdes.Integer, serdes.Json if mutable else serdes.String))
    model: dict[int, str] = {}
    committed: dict[int, str] = {}

    def between(low: int | None, high: int | None) -> list[tuple[int, str]]:
        pairs = sorted(model.items(), key=lambda pair: _bytes(pair[0]))
        return [
            pair
            for pair in pairs
            if (low is None or _bytes(low) <= _bytes(pair[0])) and (high is None or _bytes(pair[0]) <= _bytes(high))
        ]

    for operation in operations:
        store = kept.store
        match operation:
            case "put", key, value:
                store.put(key, value)
                model.pop(key, None) if value is None else model.update({key: value})
            case "put_if_absent", key, value:
                assert store.put_if_absent(key, value) == model.get(key)
                model.setdefault(key, value)
            case "delete", key:
                assert store.delete(key) == model.pop(key, None)
            case "get", key:
                assert store.get(key) == model.get(key)
            case "range", low, high:
                assert list(store.range(low, high)) == between(low, high)
                assert list(store.reverse_range(low, high)) == between(low, high)[::-1]
            case "prefix", prefix:
                expected = [pair for pair in between(None, None) if _bytes(pair[0]).startswith(prefix)]
                assert list(store.prefix_scan(prefix)) == expected
            case ("commit",):
                kept.commit()
                committed = dict(model)
            case ("rebuild",):
                kept.rebuild()
                model = dict(committed)
        assert kept.store.approximate_num_entries() == len(model)
    assert dict(kept.store.all()) == model
