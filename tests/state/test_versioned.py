"""Versioned stores: a key's value at a time in the past."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import SerializationError, Stores, StreamsError, VersionedRecord, serdes
from tests.state.committed_store import CommittedStore

HISTORY = 300_000
SEGMENT = HISTORY // 3
BASE = 10
NOT_PUT = -1


@pytest.fixture
def kept() -> CommittedStore:
    return kept_versions()


def kept_versions(history: int = HISTORY) -> CommittedStore:
    return CommittedStore(Stores.versioned("versions", serdes.String, serdes.String, history_retention=history))


class History:
    """Puts versions relative to a time, checking what each put returns, and asks for them."""

    def __init__(self, kept: CommittedStore, base: int = SEGMENT) -> None:
        self.kept, self.base = kept, base

    def put(self, value: str | None, at: int, valid_to: int | None = None, key: str = "k") -> None:
        returned = self.kept.store.put(key, value, self.base + at)
        assert returned == (None if valid_to is None else self.base + valid_to)

    def holds(self, at: int, key: str = "k") -> tuple[Any, ...] | None:
        """Return (value, from, to) of the version that held at a time."""
        record = self.kept.store.get(key, self.base + at)
        if record is None:
            return None
        valid_to = None if record.valid_to is None else record.valid_to - self.base
        return record.value, record.timestamp - self.base, valid_to

    def latest(self, key: str = "k") -> tuple[Any, ...] | None:
        record = self.kept.store.get(key)
        return None if record is None else (record.value, record.timestamp - self.base, record.valid_to)


@pytest.fixture
def history(kept: CommittedStore) -> History:
    return History(kept)


# -- puts in order ----------------------------------------------------------------------------------------------------


def test_the_latest_version_has_no_end(history: History) -> None:
    history.put("v", 0)
    history.put("v2", 1)

    assert history.latest() == ("v2", 1, None)
    assert history.holds(-1) is None
    assert history.holds(0) == ("v", 0, 1)
    assert history.holds(1) == ("v2", 1, None)
    assert history.holds(2) == ("v2", 1, None)


def test_a_record_has_a_value_a_start_and_an_end(kept: CommittedStore) -> None:
    kept.store.put("k", "v", 5)
    kept.store.put("k", "w", 8)

    assert kept.store.get("k", 5) == VersionedRecord("v", 5, 8)
    assert kept.store.get("k") == VersionedRecord("w", 8)
    assert kept.store.get("k").valid_to is None


def test_none_deletes_from_a_time_on(history: History) -> None:
    history.put("v", 0)
    history.put(None, 5)

    assert history.latest() is None
    assert history.holds(4) == ("v", 0, 5)
    assert history.holds(5) is None
    assert history.holds(6) is None


def test_deletes_of_missing_keys_leave_nothing(history: History) -> None:
    history.put(None, 0)
    history.put(None, 1)

    assert history.latest() is None
    assert [history.holds(at) for at in (0, 1, 2)] == [None, None, None]


def test_a_put_at_the_same_time_replaces(history: History) -> None:
    history.put("to be replaced", 0)
    history.put("b", 0)
    assert history.latest() == ("b", 0, None)
    assert history.holds(-1) is None

    history.put(None, 0)
    assert history.latest() is None
    assert history.holds(0) is None

    history.put(None, 0)
    assert history.latest() is None

    history.put("b", 0)
    assert history.latest() == ("b", 0, None)
    assert history.holds(0) == ("b", 0, None)
    assert history.holds(-1) is None


def test_versions_over_a_long_time(history: History) -> None:
    for value, at in [(None, -20), ("vn10", -10), (None, -1), (None, 1), ("vp10", 10), (None, 20)]:
        history.put(value, at)

    assert history.latest() is None
    assert history.holds(30) is None
    assert history.holds(15) == ("vp10", 10, 20)
    assert [history.holds(at) for at in (5, 2, 0, -1)] == [None] * 4
    assert history.holds(-5) == ("vn10", -10, -1)
    assert history.holds(-15) is None


# -- puts out of order ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("latest", ["v", None])
def test_an_older_version_holds_until_the_next_one(history: History, latest: str | None) -> None:
    history.put(latest, 0)
    history.put("v2", -2, valid_to=0)
    history.put("v1", -1, valid_to=0)
    history.put("v4", -4, valid_to=-2)

    assert history.latest() == (None if latest is None else ("v", 0, None))
    assert history.holds(0) == (None if latest is None else ("v", 0, None))
    assert history.holds(-1) == ("v1", -1, 0)
    assert history.holds(-2) == ("v2", -2, -1)
    assert history.holds(-3) == ("v4", -4, -2)


@pytest.mark.parametrize("latest", ["v", None])
def test_an_older_delete_ends_the_version_before_it(history: History, latest: str | None) -> None:
    history.put(latest, 0)
    history.put(None, -2, valid_to=0)
    history.put(None, -1, valid_to=0)
    history.put(None, -4, valid_to=-2)
    history.put("v5", -5, valid_to=-4)
    history.put("v3", -3, valid_to=-2)
    history.put(None, -6, valid_to=-5)

    assert history.latest() == (None if latest is None else ("v", 0, None))
    assert history.holds(-1) is None
    assert history.holds(-2) is None
    assert history.holds(-3) == ("v3", -3, -2)
    assert history.holds(-4) is None
    assert history.holds(-5) == ("v5", -5, -4)
    assert history.holds(-6) is None


def test_versions_at_the_same_time_replace_each_other_in_the_past_too(history: History) -> None:
    for value, at, valid_to in [
        ("replaced", 20, None),
        (None, -10, 20),
        ("replaced", -10, 20),
        (None, -10, 20),
        ("replaced", -1, 20),
        ("replaced", 1, 20),
        (None, -1, 1),
        (None, 1, 20),
        (None, 10, 20),
        (None, 5, 10),
        ("vp5", 5, 10),
        ("replaced", -5, -1),
        ("vn5", -5, -1),
        (None, 20, None),
        (None, 20, None),
        ("vn6", -6, -5),
    ]:
        history.put(value, at, valid_to)

    assert history.latest() is None
    assert [history.holds(at) for at in (30, 15)] == [None, None]
    assert history.holds(6) == ("vp5", 5, 10)
    assert [history.holds(at) for at in (2, 0, -1)] == [None, None, None]
    assert history.holds(-5) == ("vn5", -5, -1)
    assert history.holds(-6) == ("vn6", -6, -5)
    assert history.holds(-8) is None


def test_values_put_into_the_past_one_by_one(history: History) -> None:
    for value, at, valid_to in [
        ("vp20", 20, None),
        ("vp10", 10, 20),
        ("vn10", -10, 10),
        ("vn2", -2, 10),
        ("vn1", -1, 10),
        ("vp1", 1, 10),
    ]:
        history.put(value, at, valid_to)

    assert history.latest() == ("vp20", 20, None)
    assert history.holds(30) == ("vp20", 20, None)
    assert history.holds(15) == ("vp10", 10, 20)
    assert history.holds(5) == ("vp1", 1, 10)
    assert history.holds(0) == ("vn1", -1, 1)
    assert history.holds(-1) == ("vn1", -1, 1)
    assert history.holds(-2) == ("vn2", -2, -1)
    assert history.holds(-5) == ("vn10", -10, -2)


def test_values_put_between_deletes(history: History) -> None:
    for value, at, valid_to in [
        (None, 20, None),
        (None, -1, 20),
        (None, 1, 20),
        (None, -10, -1),
        (None, 10, 20),
        ("vp5", 5, 10),
        ("vn5", -5, -1),
        ("vn6", -6, -5),
    ]:
        history.put(value, at, valid_to)

    assert history.latest() is None
    assert [history.holds(at) for at in (30, 15)] == [None, None]
    assert history.holds(6) == ("vp5", 5, 10)
    assert [history.holds(at) for at in (2, 0, -1)] == [None, None, None]
    assert history.holds(-5) == ("vn5", -5, -1)
    assert history.holds(-6) == ("vn6", -6, -5)
    assert history.holds(-8) is None


def test_a_value_after_a_delete_leaves_the_gap(history: History) -> None:
    for value, at, valid_to in [
        (None, -5, None),
        ("vn6", -6, -5),
        ("vp20", 20, None),
        (None, 10, 20),
        (None, -1, 10),
        ("vn2", -2, -1),
    ]:
        history.put(value, at, valid_to)

    assert history.latest() == ("vp20", 20, None)
    assert [history.holds(at) for at in (12, 0, -1)] == [None, None, None]
    assert history.holds(-2) == ("vn2", -2, -1)
    assert history.holds(-5) is None
    assert history.holds(-6) == ("vn6", -6, -5)


def test_a_delete_in_the_past_is_followed_by_values(history: History) -> None:
    history.put("vp30", 30)
    history.put(None, -10, valid_to=30)
    history.put("vn5", -5, valid_to=30)
    history.put("vn1", -1, valid_to=30)
    history.put(None, -2, valid_to=-1)

    assert history.holds(10) == ("vn1", -1, 30)
    assert history.holds(-2) is None
    assert history.holds(-5) == ("vn5", -5, -2)
    assert history.holds(-10) is None


def test_an_empty_value_is_not_a_delete(history: History) -> None:
    history.put(None, 20)
    history.put("", 5, valid_to=20)
    history.kept.commit()

    assert history.holds(6) == ("", 5, 20)
    assert history.holds(20) is None


# -- deletes ----------------------------------------------------------------------------------------------------------


def test_delete_returns_the_version_that_held_at_that_time(kept: CommittedStore) -> None:
    store = kept.store
    for value, at in [("vp20", 20), ("vp10", 10), ("vn10", -10), ("vn2", -2)]:
        store.put("k", value, SEGMENT + at)

    assert store.delete("k", SEGMENT - 5) == VersionedRecord("vn10", SEGMENT - 10, SEGMENT - 2)
    assert store.delete("k", SEGMENT + 10) == VersionedRecord("vp10", SEGMENT + 10, SEGMENT + 20)
    assert store.delete("k", SEGMENT + 10) is None
    assert store.delete("k", SEGMENT + 25) == VersionedRecord("vp20", SEGMENT + 20)
    assert store.get("k") is None
    assert store.get("k", SEGMENT + 24) == VersionedRecord("vp20", SEGMENT + 20, SEGMENT + 25)


# -- retention --------------------------------------------------------------------------------------------------------


def test_a_put_older_than_the_history_is_refused(kept: CommittedStore) -> None:
    store = kept.store
    assert store.put("k", "v", HISTORY + 10) is None

    assert store.put("k1", "v1", 10) is None
    assert store.get("k1") == VersionedRecord("v1", 10)
    assert store.put("k2", "v2", 9) == NOT_PUT
    assert store.get("k2") is None


def test_a_delete_older_than_the_history_is_refused(kept: CommittedStore) -> None:
    store = kept.store
    store.put("k1", "v1", 1)
    store.put("k2", "v2", 1)
    store.put("other", "x", HISTORY + 10)

    assert store.delete("k1", 10) == VersionedRecord("v1", 1)
    assert store.get("k1") is None
    assert store.delete("k2", 9) is None
    assert store.get("k2") == VersionedRecord("v2", 1)


def test_versions_are_asked_for_as_far_back_as_the_history_goes(kept: CommittedStore) -> None:
    store = kept.store
    store.put("k", "old", 0)
    store.put("k", "v", SEGMENT - 10)
    old = VersionedRecord("old", 0, SEGMENT - 10)

    assert store.get("k", SEGMENT - 11) == old
    store.put("other", "x", HISTORY + SEGMENT - 11)
    assert store.get("k", SEGMENT - 11) == old
    store.put("other", "y", HISTORY + SEGMENT - 10)
    assert store.get("k", SEGMENT - 11) is None
    assert store.get("k", SEGMENT - 10) == VersionedRecord("v", SEGMENT - 10)


def test_the_latest_version_never_expires(kept: CommittedStore) -> None:
    store = kept.store
    store.put("k", "v", 1)
    store.put("other", "old", 1)
    store.put("other", "new", HISTORY + 12)
    kept.commit()

    assert store.get("k") == VersionedRecord("v", 1)
    assert store.get("k", 10) == VersionedRecord("v", 1)
    assert store.get("other", 10) is None


def test_other_keys_between_times_make_no_difference(history: History) -> None:
    for at in (-10, SEGMENT - 10, 2 * SEGMENT - 10):
        history.put(None, at, key="other")
    assert history.holds(-20) is None

    history.put("v", -20)
    history.put(None, -10)
    assert [history.holds(-30), history.holds(-15), history.holds(-5)] == [None, ("v", -20, -10), None]

    history.put("v2", 2 * SEGMENT - 20)
    history.put(None, 2 * SEGMENT - 10)
    assert [history.holds(-30), history.holds(-15), history.holds(-5)] == [None, ("v", -20, -10), None]


def test_a_store_may_keep_no_history_at_all() -> None:
    kept = kept_versions(history=0)
    store = kept.store
    store.put("k", "v", BASE)
    assert store.get("k", BASE + 1) == VersionedRecord("v", BASE)

    store.put("k", "updated", BASE)
    store.put("k", "v2", BASE + 2)
    assert store.get("k", BASE + 2) == VersionedRecord("v2", BASE + 2)
    assert store.get("k", BASE + 1) is None

    store.delete("k", BASE + 3)
    assert store.get("k") is None
    assert store.put("k2", "v", BASE + 2) == NOT_PUT
    assert store.get("k2") is None
    kept.commit()
    assert kept.entries() == {"versions": {}, "versions/history": {}}


@pytest.mark.parametrize("ended_by", ["w", None])
def test_history_that_nobody_can_ask_for_is_deleted_by_a_commit(kept: CommittedStore, ended_by: str | None) -> None:
    kept.store.put("k", "v", 0)
    kept.store.put("k", ended_by, 5)
    kept.commit()

    kept.store.put("other", "x", 2 * HISTORY)
    kept.commit()

    assert kept.entries()["versions/history"] == {}
    assert [key for key, _ in kept.rebuild().all()] == (["other"] if ended_by is None else ["k", "other"])


def test_the_history_goes_on_after_a_rebuild(kept: CommittedStore) -> None:
    kept.store.put("k", "v", 0)
    kept.store.put("k", "w", 10)
    kept.store.put("d", "x", 3)
    kept.store.delete("d", 7)
    kept.commit()

    store = kept.rebuild()

    assert store.get("k", 5) == VersionedRecord("v", 0, 10)
    assert store.put("d", "y", 5) == 7
    store.put("k", "z", HISTORY + 20)
    kept.commit()
    assert kept.rebuild().put("d", "too late", 19) == NOT_PUT


# -- all, values and keys ---------------------------------------------------------------------------------------------


def test_all_gives_the_latest_version_of_every_key_that_has_one(kept: CommittedStore) -> None:
    store = kept.store
    for key, value, at in [("b", "1", 1), ("a", "2", 2), ("b", "3", 3), ("c", "4", 4), ("c", None, 5), ("a", "0", 1)]:
        store.put(key, value, at)

    expected = [("a", VersionedRecord("2", 2)), ("b", VersionedRecord("3", 3))]
    assert list(store.all()) == expected
    kept.commit()
    assert list(kept.rebuild().all()) == expected


def test_keys_that_begin_with_each_other_are_kept_apart() -> None:
    kept = CommittedStore(Stores.versioned("versions", serdes.Bytes, serdes.Long, history_retention=1000))
    key, longer = b"k", b"k" + (7).to_bytes(8)
    for time in (5, 6, 7, 8):
        kept.store.put(key, time, time)
        kept.store.put(longer, time * 10, time)

    for _ in range(2):
        assert kept.store.get(key, 6) == VersionedRecord(6, 6, 7)
        assert kept.store.get(longer, 6) == VersionedRecord(60, 6, 7)
        assert [found for found, _ in kept.store.all()] == [key, longer]
        kept.commit()


def test_mutable_values_cannot_be_changed_in_the_store() -> None:
    store = CommittedStore(Stores.versioned("versions", serdes.String, serdes.Json, history_retention=100)).store
    mine = [1]
    store.put("a", mine, 0)
    store.put("a", [9], 5)

    mine.append(2)
    store.get("a", 0).value.append(3)
    store.get("a").value.append(3)

    assert store.get("a", 0).value == [1]
    assert store.get("a").value == [9]


def test_wrong_types_are_refused_with_the_stores_name(kept: CommittedStore) -> None:
    with pytest.raises(SerializationError, match=r"^store 'versions': .*expected str, got int"):
        kept.store.put("a", 1, 0)
    with pytest.raises(SerializationError, match=r"^store 'versions': .*expected str, got int"):
        kept.store.get(1)
    with pytest.raises(SerializationError, match=r"^store 'versions': expected a key, got None"):
        kept.store.delete(None, 0)


def test_a_negative_time_is_refused(kept: CommittedStore) -> None:
    with pytest.raises(StreamsError, match=r"^store 'versions': expected a timestamp of at least 0, got -1"):
        kept.store.put("a", "x", -1)


# -- commits ----------------------------------------------------------------------------------------------------------


def test_a_commit_returns_what_changed(kept: CommittedStore) -> None:
    kept.store.put("a", "x", 1)
    kept.store.put("b", "y", 1)
    kept.commit()
    kept.store.get("b", 1)
    kept.store.put("a", "z", 3)

    changes = kept.commit()

    assert list(changes["versions"]) == [b"a"]
    assert list(changes["versions/history"]) == [b"a" + (3).to_bytes(8)]
    assert kept.commit() == {}


# -- cost -------------------------------------------------------------------------------------------------------------


def test_no_operation_looks_at_other_keys_or_much_history() -> None:
    kept = kept_versions(history=10**12)
    for number in range(2000):
        kept.store.put("user", str(number), number)
        kept.store.put(f"user{number}", "x", number)
        kept.store.put(f"user{number}", "y", number + 1)
    kept.commit()
    store, before = kept.store, kept.touched

    store.get("user")
    store.get("user", 77)
    store.put("user", "new", 3000)
    store.put("user", "old", 77)
    store.get("use")
    store.put("use", "new", 3000)
    store.delete("user7", 3000)
    kept.commit()

    assert kept.touched - before <= 40


# -- any operations ---------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["", "a", "aa", "a\0", "a" + "\0" * 8])
TIMES = st.integers(0, 60)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.none() | st.sampled_from("xyz"), TIMES),
        st.tuples(st.just("delete"), KEYS, TIMES),
        st.tuples(st.just("get"), KEYS, TIMES),
        st.tuples(st.just("commit")),
        st.tuples(st.just("rebuild")),
    ),
    max_size=50,
)


class Model:
    """A versioned store as a plain dict of dicts."""

    def __init__(self, history: int) -> None:
        self.history, self.observed = history, -1
        self.versions: dict[str, dict[int, str | None]] = {}

    def copy(self) -> "Model":
        other = Model(self.history)
        other.observed, other.versions = self.observed, {key: dict(times) for key, times in self.versions.items()}
        return other

    def is_expired(self, time: int) -> bool:
        return time < self.observed - self.history

    def put(self, key: str, value: str | None, time: int) -> int | None:
        if self.is_expired(time):
            return NOT_PUT
        self.observed = max(self.observed, time)
        times = self.versions.setdefault(key, {})
        if value is None and times.get(time) is not None and list(times) == [time]:
            # A delete at the very time of the only version leaves no trace, as in Kafka Streams.
            del times[time]
            return None
        times[time] = value
        return min((other for other in times if other > time), default=None)

    def get(self, key: str, as_of: int | None = None) -> VersionedRecord[str] | None:
        times = self.versions.get(key, {})
        start = max((time for time in times if as_of is None or time <= as_of), default=None)
        if start is None:
            return None
        value, end = times[start], min((time for time in times if time > start), default=None)
        if value is None or (end is not None and as_of is not None and self.is_expired(as_of)):
            return None
        return VersionedRecord(value, start, end)


@settings(deadline=None, max_examples=300)
@given(OPERATIONS, st.sampled_from([0, 10, 1000]))
def test_any_operations_give_what_a_dict_by_key_and_time_gives(operations: list[tuple[Any, ...]], history: int) -> None:
    kept = kept_versions(history)
    model = Model(history)
    committed = model.copy()
    for operation in operations:
        store = kept.store
        match operation:
            case "put", key, value, time:
                assert store.put(key, value, time) == model.put(key, value, time)
            case "delete", key, time:
                expected = None if model.is_expired(time) else model.get(key, time)
                assert store.delete(key, time) == expected
                model.put(key, None, time)
            case "get", key, time:
                assert store.get(key, time) == model.get(key, time)
                assert store.get(key) == model.get(key)
            case ("commit",):
                kept.commit()
                committed = model.copy()
            case ("rebuild",):
                kept.rebuild()
                model = committed.copy()
    latest = {key: model.get(key) for key in sorted(model.versions, key=str.encode)}
    assert dict(kept.store.all()) == {key: record for key, record in latest.items() if record is not None}


# -- what is logged ---------------------------------------------------------------------------------------------------


def test_puts_are_kept_for_a_log_when_asked_for(kept: CommittedStore) -> None:
    store = kept.store
    store.put("k", "unasked", 1000)
    store.keep_puts()
    store.put("k", "a", HISTORY + 2000)
    store.put("k", "too old", 1000)
    store.delete("k", HISTORY + 3000)

    assert list(store.take_puts()) == [
        (b"k", b"a", HISTORY + 2000),
        (b"k", b"too old", 1000),
        (b"k", None, HISTORY + 3000),
    ]
    assert list(store.take_puts()) == []
