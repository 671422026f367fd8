"""Session stores: values by key and session."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import SerializationError, Stores, Window, Windowed, serdes
from tests.state.committed_store import CommittedStore

RETENTION = 10_000
FOREVER = 2**63 - 1


@pytest.fixture
def kept() -> CommittedStore:
    return kept_sessions()


def kept_sessions(**options: Any) -> CommittedStore:
    return CommittedStore(
        Stores.session("sessions", serdes.String, serdes.Long, **({"retention": RETENTION} | options))
    )


def session(key: Any, start: int, end: int) -> Windowed[Any]:
    return Windowed(key, Window(start, end))


def put(kept: CommittedStore, *sessions: tuple[Windowed[Any], Any], committed: bool = False) -> Any:
    for place, value in sessions:
        kept.store.put(place, value)
    if committed:
        kept.commit()
    return kept.store


def values(entries: Any) -> list[Any]:
    return [value for _, value in entries]


# -- finding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [False, True])
def test_sessions_are_found_by_their_end_and_start(kept: CommittedStore, committed: bool) -> None:
    first, second = (session("a", 10, 10), 1), (session("a", 500, 1000), 2)
    third, fourth = (session("a", 1500, 2000), 3), (session("a", 2500, 3000), 4)
    store = put(kept, first, second, third, fourth, committed=committed)

    assert list(store.find_sessions("a", 0, 1000)) == [first, second]
    assert list(store.find_sessions("a", 400, 600)) == [second]
    assert list(store.find_sessions("a", 1000, 1500)) == [second, third]
    assert list(store.find_sessions("a", 1001, 1499)) == []
    assert list(store.find_sessions("b", 0, FOREVER)) == []


def test_the_sessions_that_a_new_one_would_merge_are_found(kept: CommittedStore) -> None:
    sessions = [(session("a", start, start + 100), number) for number, start in enumerate(range(0, 500, 101))]
    store = put(kept, *sessions)

    assert values(store.find_sessions("a", 150, 300)) == [1, 2]


def test_the_earliest_end_may_be_before_all_time(kept: CommittedStore) -> None:
    store = put(kept, (session("a", 0, 0), 1), (session("a", 1000, 1000), 2))

    assert values(store.find_sessions("a", -1, 1000)) == [1, 2]


@pytest.mark.parametrize("committed", [False, True])
def test_fetch_gives_a_keys_sessions_by_end(kept: CommittedStore, committed: bool) -> None:
    sessions = [(session("a", time, time), time) for time in (0, 10, 100, 1000)]
    store = put(kept, *reversed(sessions), (session("aa", 0, 0), 5), committed=committed)

    assert list(store.fetch("a")) == sessions


def test_sessions_of_keys_that_begin_with_each_other_are_kept_apart() -> None:
    ages = 0x7A00000000000000
    kept = kept_sessions(retention=ages)
    put(
        kept,
        (session("a", 0, 0), 1),
        (session("aa", 0, 10), 2),
        (session("a", 10, 20), 3),
        (session("aa", 10, 20), 4),
        (session("a", ages - 2, ages - 1), 5),
    )

    for _ in range(2):
        assert values(kept.store.fetch("a")) == [1, 3, 5]
        assert values(kept.store.fetch("aa")) == [2, 4]
        kept.commit()


def test_binary_keys_that_begin_with_each_other_are_kept_apart() -> None:
    kept = CommittedStore(Stores.session("sessions", serdes.Bytes, serdes.Long, retention=RETENTION))
    for number in range(1, 10):
        kept.store.put(session(b"\0" * (1 + (number - 1) % 3), number, 100), number)

    for _ in range(2):
        assert values(kept.store.fetch(b"\0")) == [1, 4, 7]
        assert values(kept.store.fetch(b"\0\0")) == [2, 5, 8]
        assert values(kept.store.fetch(b"\0\0\0")) == [3, 6, 9]
        kept.commit()


def test_one_session_is_fetched_by_its_start_and_end(kept: CommittedStore) -> None:
    store = put(
        kept,
        (session("a", 0, 4), 1),
        (session("aa", 0, 3), 2),
        (session("aa", 0, 4), 3),
        (session("aa", 1, 4), 4),
        (session("aaa", 0, 4), 5),
    )

    assert store.fetch_session("aa", 0, 4) == 3
    assert store.fetch_session("aa", 0, 5) is None


def test_all_gives_every_session_by_key_end_and_start(kept: CommittedStore) -> None:
    sessions = [(session("a", 3, 5), 1), (session("a", 0, 9), 2), (session("a", 2, 9), 3), (session("b", 1, 1), 4)]
    store = put(kept, *reversed(sessions))

    assert list(store.all()) == sessions
    kept.commit()
    assert list(store.all()) == sessions
    assert list(kept.rebuild().all()) == sessions


# -- removing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["remove", "none"])
def test_a_removed_session_is_gone(kept: CommittedStore, by: str) -> None:
    store = put(kept, (session("a", 0, 1000), 1), (session("a", 1500, 2500), 2), committed=True)

    if by == "remove":
        store.remove(session("a", 0, 1000))
    else:
        store.put(session("a", 0, 1000), None)

    assert values(store.find_sessions("a", 0, 1000)) == []
    assert values(store.find_sessions("a", 1500, 2500)) == [2]
    kept.commit()
    assert values(kept.rebuild().all()) == [2]


def test_removing_a_missing_session_does_nothing(kept: CommittedStore) -> None:
    kept.store.remove(session("a", 0, 1000))

    assert list(kept.store.all()) == []


def test_sessions_may_be_removed_while_walking(kept: CommittedStore) -> None:
    store = put(kept, *((session("a", time, time), time) for time in range(50)), committed=True)

    for place, _ in store.fetch("a"):
        store.remove(place)

    assert list(store.all()) == []


# -- retention --------------------------------------------------------------------------------------------------------


def test_a_session_that_ended_the_retention_before_the_latest_is_gone(kept: CommittedStore) -> None:
    store = put(
        kept,
        (session("a", 0, 10), 1),
        (session("a", 0, 11), 2),
        (session("b", 0, RETENTION + 10), 3),
    )

    assert values(store.fetch("a")) == [2]
    assert store.fetch_session("a", 0, 10) is None
    assert values(store.all()) == [2, 3]


def test_the_end_decides_not_the_start(kept: CommittedStore) -> None:
    store = put(kept, (session("a", 0, 2 * RETENTION), 1), (session("b", 0, 2 * RETENTION + 5), 2))

    assert values(store.all()) == [1, 2]


def test_expired_sessions_are_found_neither_by_key_nor_by_time(kept: CommittedStore) -> None:
    now = 1_000 * RETENTION
    store = put(
        kept,
        (session("p", now - 3 * RETENTION, now - 2 * RETENTION), 1),
        (session("q", now - 2 * RETENTION, now - RETENTION), 4),
        (session("r", now - RETENTION, now - RETENTION // 2), 3),
        (session("p", now - RETENTION, now - RETENTION // 2), 2),
    )

    assert values(store.find_sessions("p", now - 2 * RETENTION, now - RETENTION)) == [2]
    assert values(store.find_sessions("p", now - 5 * RETENTION, now - 4 * RETENTION)) == []
    assert values(store.find_sessions("q", now - 2 * RETENTION, now)) == [4]
    assert values(store.all()) == [2, 4, 3]


def test_a_put_that_is_too_old_is_dropped(kept: CommittedStore) -> None:
    store = put(kept, (session("a", 0, 2 * RETENTION), 1), (session("b", 0, 0), 2), (session("c", 0, RETENTION), 3))

    assert values(store.all()) == [1]
    kept.commit()
    assert list(kept.entries()["sessions"].values()) == [(1).to_bytes(8)]


def test_a_commit_deletes_expired_entries(kept: CommittedStore) -> None:
    put(kept, (session("a", 0, 10), 1), (session("a", 0, 20), 2), committed=True)
    put(kept, (session("a", 0, RETENTION + 10), 3), committed=True)

    assert len(kept.entries()["sessions"]) == 2
    assert values(kept.rebuild().all()) == [2, 3]


def test_the_retention_goes_on_after_a_rebuild(kept: CommittedStore) -> None:
    put(kept, (session("a", 0, RETENTION + 10), 1), committed=True)

    store = kept.rebuild()
    store.put(session("b", 10, 10), 2)

    assert values(store.all()) == [1]


def test_a_store_for_emission_keeps_the_oldest_for_the_walk_by_time_only() -> None:
    kept = kept_sessions(keep_oldest=True)
    store = put(kept, (session("a", 0, 9), 0), (session("a", 0, 10), 1), (session("b", 0, RETENTION + 10), 2))

    for _ in range(2):
        assert values(store.fetch("a")) == []
        assert store.fetch_session("a", 0, 10) is None
        assert values(store.all()) == [2]
        assert [end for _, _, end, _ in store.scan_by_time(10, FOREVER)] == [10, RETENTION + 10]
        kept.commit()
    assert [end for _, _, end, _ in store.scan_by_time(0, FOREVER)] == [10, RETENTION + 10]


def test_the_walk_by_time_goes_by_end_then_start_then_key(kept: CommittedStore) -> None:
    store = put(
        kept, (session("b", 1, 5), 1), (session("a", 1, 5), 2), (session("c", 0, 5), 3), (session("d", 4, 4), 4)
    )

    assert [(key, start, end) for key, start, end, _ in store.scan_by_time(0, 5)] == [
        (b"d", 4, 4),
        (b"c", 0, 5),
        (b"a", 1, 5),
        (b"b", 1, 5),
    ]
    assert [value for *_, value in store.scan_by_time(5, 5)] == [3, 2, 1]
    assert list(store.scan_by_time(6, 5)) == []


# -- values and keys --------------------------------------------------------------------------------------------------


def test_mutable_values_cannot_be_changed_in_the_store() -> None:
    kept = CommittedStore(Stores.session("sessions", serdes.String, serdes.Json, retention=10))
    mine = [1]
    kept.store.put(session("a", 0, 5), mine)

    mine.append(2)
    kept.store.fetch_session("a", 0, 5).append(3)
    values(kept.store.fetch("a"))[0].append(4)
    values(kept.store.all())[0].append(5)

    assert kept.store.fetch_session("a", 0, 5) == [1]


def test_wrong_types_are_refused_with_the_stores_name(kept: CommittedStore) -> None:
    with pytest.raises(SerializationError, match=r"^store 'sessions': .*expected int, got str"):
        kept.store.put(session("a", 0, 1), "one")
    with pytest.raises(SerializationError, match=r"^store 'sessions': .*expected str, got int"):
        kept.store.remove(session(1, 0, 1))
    with pytest.raises(SerializationError, match=r"^store 'sessions': expected a key, got None"):
        list(kept.store.fetch(None))


# -- commits ----------------------------------------------------------------------------------------------------------


def test_a_commit_returns_what_changed_by_key_end_and_start(kept: CommittedStore) -> None:
    put(kept, (session("a", 1, 5), 1), (session("b", 1, 6), 2), committed=True)
    kept.store.remove(session("a", 1, 5))
    list(kept.store.fetch("b"))

    assert kept.commit() == {"sessions": {b"a" + (5).to_bytes(8) + (1).to_bytes(8): None}}
    assert kept.commit() == {}


# -- cost -------------------------------------------------------------------------------------------------------------


def test_no_operation_on_a_key_looks_at_other_keys() -> None:
    kept = kept_sessions(retention=10**12)
    for number in range(2000):
        kept.store.put(session(f"user{number}", number, number), number)
    kept.store.put(session("user", 0, 1_700_000_000_000), 1)
    kept.commit()
    store, before = kept.store, kept.touched

    assert len(list(store.fetch("user"))) == 1
    assert len(list(store.find_sessions("user7", 0, 100))) == 0
    store.fetch_session("user8", 8, 8)
    store.put(session("user9", 9, 20), 1)
    store.remove(session("user9", 9, 9))
    assert len(list(store.scan_by_time(100, 104))) == 0
    kept.commit()

    assert kept.touched - before <= 20


def test_a_walk_by_time_looks_at_its_own_sessions_only() -> None:
    kept = kept_sessions(retention=10**12)
    for number in range(2000):
        kept.store.put(session(f"user{number}", number, number), number)
    kept.commit()
    before = kept.touched

    assert len(list(kept.store.scan_by_time(100, 104))) == 5

    assert kept.touched - before <= 7


# -- any operations ---------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["", "a", "aa", "b", "a\0"])
TIMES = st.integers(0, 60)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, TIMES, st.integers(0, 15), st.none() | st.integers(0, 9)),
        st.tuples(st.just("find"), KEYS, TIMES, TIMES),
        st.tuples(st.just("session"), KEYS, TIMES, st.integers(0, 15)),
        st.tuples(st.just("commit")),
        st.tuples(st.just("rebuild")),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(OPERATIONS, st.sampled_from([10, 25, 1000]))
def test_any_operations_give_what_a_dict_by_key_and_session_gives(
    operations: list[tuple[Any, ...]], retention: int
) -> None:
    kept = kept_sessions(retention=retention)
    model: dict[tuple[str, int, int], int] = {}
    latest = -1
    committed = (dict(model), latest)

    def expected(key: str | None, earliest_end: int, latest_start: int) -> list[tuple[str, int, int, int]]:
        return [
            (known, start, end, value)
            for (known, end, start), value in sorted(model.items(), key=_bytes)
            if key in (known, None) and end > latest - retention and end >= earliest_end and start <= latest_start
        ]

    def shown(entries: Any) -> list[tuple[str, int, int, int]]:
        return [(place.key, *place.window, value) for place, value in entries]

    for operation in operations:
        store = kept.store
        match operation:
            case "put", key, start, length, value:
                end = start + length
                store.put(session(key, start, end), value)
                latest = max(latest, end)
                model.pop((key, end, start), None) if value is None else model.update({(key, end, start): value})
            case "find", key, earliest_end, latest_start:
                found = shown(store.find_sessions(key, earliest_end, latest_start))
                assert found == expected(key, earliest_end, latest_start)
            case "session", key, start, length:
                at = [value for _, s, e, value in expected(key, 0, 100) if (s, e) == (start, start + length)]
                assert store.fetch_session(key, start, start + length) == (at[0] if at else None)
            case ("commit",):
                kept.commit()
                committed = (dict(model), latest)
            case ("rebuild",):
                kept.rebuild()
                model, latest = dict(committed[0]), committed[1]
    assert shown(kept.store.all()) == expected(None, 0, 100)


def _bytes(entry: tuple[tuple[str, int, int], int]) -> bytes:
    (key, end, start), _ = entry
    return key.encode() + end.to_bytes(8) + start.to_bytes(8)
