"""Window stores: values by key and window start, with and without duplicates."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import SerializationError, Stores, TopologyError, ValueAndTimestamp, Window, Windowed, serdes
from tests.state.committed_store import CommittedStore

SIZE = 3
SEGMENT = 60_000
RETENTION = 2 * SEGMENT
START = SEGMENT - 4
FOREVER = 2**63 - 1


def kept_windows(**options: Any) -> CommittedStore:
    settings = {"retention": RETENTION, "window_size": SIZE} | options
    return CommittedStore(Stores.window("windows", serdes.Integer, serdes.String, **settings))


@pytest.fixture
def kept() -> CommittedStore:
    return kept_windows()


def windowed(key: Any, value: Any, start: int, size: int = SIZE) -> tuple[Windowed[Any], Any]:
    return Windowed(key, Window(start, start + size)), value


def values(entries: Any) -> list[Any]:
    return [value for _, value in entries]


ZERO, ONE, TWO = windowed(0, "zero", START), windowed(1, "one", START + 1), windowed(2, "two", START + 2)
THREE, FOUR, FIVE = windowed(3, "three", START + 2), windowed(4, "four", START + 4), windowed(5, "five", START + 5)


def filled(kept: CommittedStore, *, committed: bool = False) -> Any:
    for (key, window), value in (ZERO, ONE, TWO, THREE, FOUR, FIVE):
        kept.store.put(key, value, window.start)
    if committed:
        kept.commit()
    return kept.store


# -- single windows ---------------------------------------------------------------------------------------------------


def test_a_window_is_there_once_it_is_put(kept: CommittedStore) -> None:
    kept.store.put(1, "one", START)

    assert kept.store.fetch(1, START) == "one"
    assert kept.store.fetch(1, START + 1) is None
    assert kept.store.fetch(2, START) is None


def test_a_put_replaces_and_none_deletes(kept: CommittedStore) -> None:
    kept.store.put(1, "one", 0)
    kept.store.put(1, "one v2", 0)
    assert list(kept.store.fetch(1, 0, 0)) == [windowed(1, "one v2", 0)]

    kept.store.put(1, None, 0)
    assert kept.store.fetch(1, 0) is None
    assert list(kept.store.fetch(1, 0, 0)) == []
    assert list(kept.store.all()) == []


def test_the_end_of_a_window_is_its_start_and_the_stores_window_size() -> None:
    store = CommittedStore(
        Stores.window("w", serdes.String, serdes.Json, retention=timedelta(hours=1), window_size=timedelta(seconds=5))
    ).store
    store.put("a", 1, 1_000)

    [(key, _)] = store.all()

    assert key == Windowed("a", Window(1_000, 6_000))


# -- ranges of time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(
    ("around", "found"),
    [
        (-2, []),
        (-1, [2]),
        (0, [2, 3]),
        (1, [2, 3, 4]),
        (2, [2, 3, 4, 5]),
        (3, [2, 3, 4, 5, 6]),
        (5, [2, 3, 4, 5, 6, 7, 8]),
        (6, [3, 4, 5, 6, 7, 8]),
        (8, [5, 6, 7, 8]),
        (11, [8]),
        (12, []),
    ],
)
def test_a_fetch_includes_both_ends_of_its_span(
    kept: CommittedStore, committed: bool, around: int, found: list[int]
) -> None:
    store = filled(kept)
    for later in range(3, 9):
        store.put(2, f"two+{later - 2}", START + later)
    if committed:
        kept.commit()

    fetched = list(store.fetch(2, START + around - SIZE, START + around + SIZE))

    assert [key.window.start - START for key, _ in fetched] == found
    assert {key.key for key, _ in fetched} <= {2}


def test_a_fetch_of_a_span_that_ends_before_it_begins_is_empty(kept: CommittedStore) -> None:
    assert list(filled(kept).fetch(2, START + 5, START)) == []


@pytest.mark.parametrize("committed", [False, True])
def test_fetch_all_gives_the_windows_of_all_keys_that_start_in_a_span(kept: CommittedStore, committed: bool) -> None:
    store = filled(kept, committed=committed)

    assert list(store.fetch_all(START + 1, START + 4)) == [ONE, TWO, THREE, FOUR]
    assert list(store.fetch_all(START, START + 3)) == [ZERO, ONE, TWO, THREE]
    assert list(store.fetch_all(START + 1, START + 5)) == [ONE, TWO, THREE, FOUR, FIVE]
    assert list(store.fetch_all(START + 6, START + 9)) == []


def test_all_gives_everything_that_is_not_deleted(kept: CommittedStore) -> None:
    store = filled(kept, committed=True)
    store.put(1, None, START + 1)
    store.put(3, None, START + 2)

    assert list(store.all()) == [ZERO, TWO, FOUR, FIVE]
    kept.commit()
    assert list(store.all()) == [ZERO, TWO, FOUR, FIVE]


def test_all_walks_segments_in_the_order_of_time_and_each_in_the_order_of_keys(kept: CommittedStore) -> None:
    for start in (2 * SEGMENT + 1, 2 * SEGMENT, SEGMENT):
        for key in (2, 1):
            kept.store.put(key, "x", start)

    assert [(key.key, key.window.start) for key, _ in kept.store.all()] == [
        (1, SEGMENT),
        (2, SEGMENT),
        (1, 2 * SEGMENT),
        (1, 2 * SEGMENT + 1),
        (2, 2 * SEGMENT),
        (2, 2 * SEGMENT + 1),
    ]


def test_windows_of_keys_that_begin_with_each_other_are_kept_apart() -> None:
    ages = 0x7A00000000000000
    kept = CommittedStore(Stores.window("w", serdes.String, serdes.String, retention=ages, window_size=ages))
    store = kept.store
    store.put("a", "0001", 0)
    store.put("aa", "0002", 0)
    store.put("a", "0003", 1)
    store.put("aa", "0004", 1)
    store.put("a", "0005", ages - 1)

    for _ in range(2):
        assert values(store.fetch("a", 0, FOREVER)) == ["0001", "0003", "0005"]
        assert values(store.fetch("aa", 0, FOREVER)) == ["0002", "0004"]
        kept.commit()


def test_binary_keys_that_begin_with_each_other_are_kept_apart() -> None:
    kept = CommittedStore(
        Stores.window("w", serdes.Bytes, serdes.String, retention=RETENTION, window_size=SIZE, retain_duplicates=True)
    )
    one, two, three = b"\0", b"\0\0", b"\0\0\0"
    for key, value, start in [
        (one, "1", 0),
        (two, "2", 0),
        (three, "3", 0),
        (one, "4", 1),
        (two, "5", 1),
        (three, "6", 59999),
        (one, "7", 59999),
        (two, "8", 59999),
        (three, "9", 59999),
    ]:
        kept.store.put(key, value, start)

    for _ in range(2):
        assert values(kept.store.fetch(one, 0, FOREVER)) == ["1", "4", "7"]
        assert values(kept.store.fetch(two, 0, FOREVER)) == ["2", "5", "8"]
        assert values(kept.store.fetch(three, 0, FOREVER)) == ["3", "6", "9"]
        kept.commit()


def test_windows_may_be_put_during_a_walk(kept: CommittedStore) -> None:
    kept.store.put(1, "one", 0)
    kept.store.put(1, "two", 30)

    walk = kept.store.fetch_all(0, 1000)
    assert next(walk) == windowed(1, "one", 0)
    kept.store.put(1, "three", 60)
    kept.store.put(1, None, 0)

    assert windowed(1, "two", 30) in list(walk)


# -- duplicates -------------------------------------------------------------------------------------------------------


def test_a_store_of_duplicates_keeps_all_values_of_a_window_in_the_order_of_their_arrival() -> None:
    kept = kept_windows(retain_duplicates=True)
    for start in (0, 30, 60):
        kept.store.put(1, f"{start}", start)
        kept.store.put(1, f"{start} again", start)
        kept.store.put(1, f"{start}", start)

    expected = ["0", "0 again", "0", "30", "30 again", "30"]
    assert values(kept.store.fetch(1, 0, 30)) == expected
    kept.commit()
    assert values(kept.rebuild().fetch(1, 0, 30)) == expected


def test_values_added_after_a_rebuild_come_after_those_before() -> None:
    kept = kept_windows(retain_duplicates=True)
    kept.store.put(1, "one", 0)
    kept.commit()

    kept.rebuild().put(1, "two", 0)

    assert values(kept.store.fetch(1, 0, 0)) == ["one", "two"]
    kept.commit()
    assert values(kept.rebuild().fetch(1, 0, 0)) == ["one", "two"]


def test_none_does_not_delete_from_a_store_of_duplicates() -> None:
    kept = kept_windows(retain_duplicates=True)
    kept.store.put(1, "one", 0)
    kept.store.put(1, None, 0)

    assert values(kept.store.fetch(1, 0, 0)) == ["one"]


# -- retention --------------------------------------------------------------------------------------------------------


def test_a_window_that_starts_the_retention_before_the_latest_is_gone(kept: CommittedStore) -> None:
    kept.store.put(1, "old", 10)
    kept.store.put(1, "younger", 11)
    assert kept.store.fetch(1, 10) == "old"

    kept.store.put(2, "new", RETENTION + 10)

    assert kept.store.fetch(1, 10) is None
    assert values(kept.store.fetch(1, 0, FOREVER)) == ["younger"]
    assert values(kept.store.fetch_all(0, FOREVER)) == ["younger", "new"]
    assert values(kept.store.all()) == ["younger", "new"]


def test_a_window_is_shown_until_the_last_moment(kept: CommittedStore) -> None:
    kept.store.put(1, "old", 10)
    kept.store.put(2, "new", RETENTION + 9)

    assert kept.store.fetch(1, 10) == "old"
    assert values(kept.store.all()) == ["old", "new"]


def test_a_put_that_is_too_old_is_dropped(kept: CommittedStore) -> None:
    kept.store.put(1, "first", 2 * RETENTION)
    kept.store.put(1, "late", 0)
    kept.store.put(1, "edge", RETENTION)
    kept.store.put(1, "on time", RETENTION + 1)

    assert values(kept.store.all()) == ["on time", "first"]


def test_a_fetch_of_an_expired_span_is_empty(kept: CommittedStore) -> None:
    kept.store.put(1, "one", 0)
    kept.store.put(1, "two", 4 * RETENTION)

    assert list(kept.store.fetch(1, 0, 10)) == []


def test_reads_do_not_advance_the_retention_and_deletes_do(kept: CommittedStore) -> None:
    kept.store.put(1, "one", 0)
    kept.store.fetch(1, 5 * RETENTION)
    list(kept.store.fetch(1, 0, 5 * RETENTION))
    assert kept.store.fetch(1, 0) == "one"

    kept.store.put(2, None, RETENTION)
    assert kept.store.fetch(1, 0) is None


def test_a_store_that_keeps_the_oldest_shows_one_more_millisecond() -> None:
    kept = kept_windows(keep_oldest=True)
    kept.store.put(1, "nine", 9)
    kept.store.put(1, "ten", 10)
    kept.store.put(2, "new", RETENTION + 10)

    assert values(kept.store.all()) == ["ten", "new"]


def test_a_commit_deletes_expired_entries(kept: CommittedStore) -> None:
    kept.store.put(1, "old", 10)
    kept.store.put(1, "younger", 20)
    kept.commit()
    kept.store.put(1, "new", RETENTION + 10)

    changes = kept.commit()["windows"]

    assert list(changes.values()) == [b"new", None]
    assert len(kept.entries()["windows"]) == 2
    assert values(kept.rebuild().all()) == ["younger", "new"]


def test_an_entry_that_expires_before_its_commit_is_not_kept(kept: CommittedStore) -> None:
    kept.store.put(1, "old", 10)
    kept.store.put(1, "new", 10 * RETENTION)

    kept.commit()

    assert list(kept.entries()["windows"].values()) == [b"new"]


def test_the_retention_goes_on_after_a_rebuild(kept: CommittedStore) -> None:
    kept.store.put(1, "old", 10)
    kept.store.put(2, None, RETENTION + 10)
    kept.commit()

    store = kept.rebuild()
    store.put(1, "late", 10)

    assert store.fetch(1, 10) is None


def test_the_retention_cannot_be_less_than_the_window() -> None:
    with pytest.raises(TopologyError, match=r"^store 'w': the retention \(5 ms\) must be at least the window size"):
        Stores.window("w", retention=5, window_size=6)


# -- values and keys --------------------------------------------------------------------------------------------------


def test_mutable_values_cannot_be_changed_in_the_store() -> None:
    kept = CommittedStore(Stores.window("w", serdes.String, serdes.Json, retention=10, window_size=10))
    mine = [1]
    kept.store.put("a", mine, 0)

    mine.append(2)
    kept.store.fetch("a", 0).append(3)
    values(kept.store.fetch("a", 0, 0))[0].append(4)
    values(kept.store.all())[0].append(5)

    assert kept.store.fetch("a", 0) == [1]
    kept.commit()
    assert kept.store.fetch("a", 0) == [1]


def test_wrong_types_are_refused_with_the_stores_name(kept: CommittedStore) -> None:
    with pytest.raises(SerializationError, match=r"^store 'windows': .*expected str, got int"):
        kept.store.put(1, 2, 0)
    with pytest.raises(SerializationError, match=r"^store 'windows': .*expected int, got str"):
        kept.store.put("one", "x", 0)
    with pytest.raises(SerializationError, match=r"^store 'windows': expected a key, got None"):
        kept.store.fetch(None, 1, 2)


def test_a_timestamped_store_gives_and_takes_values_with_their_timestamp() -> None:
    kept = CommittedStore(
        Stores.window("w", serdes.String, serdes.Long, retention=10, window_size=10, timestamped=True)
    )
    kept.store.put("a", ValueAndTimestamp(1, 7), 0)

    assert kept.store.fetch("a", 0) == ValueAndTimestamp(1, 7)
    kept.commit()
    assert values(kept.rebuild().fetch("a", 0, 0)) == [ValueAndTimestamp(1, 7)]
    with pytest.raises(
        SerializationError, match=r"^store 'w': .*expected ValueAndTimestamp\(value, timestamp\), got int"
    ):
        kept.store.put("a", 1, 0)


# -- commits ----------------------------------------------------------------------------------------------------------


def test_a_commit_returns_what_changed_by_key_start_and_sequence_number() -> None:
    kept = kept_windows()
    kept.store.put(1, "one", 5)
    kept.store.put(2, "two", 6)
    kept.commit()
    kept.store.put(1, None, 5)
    kept.store.fetch(2, 6)

    assert kept.commit() == {"windows": {b"\0\0\0\1" + (5).to_bytes(8) + (0).to_bytes(4): None}}
    assert kept.commit() == {}


# -- cost -------------------------------------------------------------------------------------------------------------


def test_no_operation_on_a_key_looks_at_other_keys_or_other_times() -> None:
    kept = CommittedStore(Stores.window("w", serdes.String, serdes.Long, retention=10**9, window_size=10))
    for number in range(2000):
        kept.store.put("user", number, 10 * number)
        kept.store.put(f"user{number}", number, 10_000)
    kept.commit()
    store, before = kept.store, kept.touched

    store.fetch("user", 5000)
    store.put("user", 1, 5000)
    store.put("user", 1, 5001)
    assert len(list(store.fetch("user", 5000, 5050))) == 7
    assert len(list(store.fetch("user7", 0, FOREVER))) == 1
    assert len(list(store.fetch_all(9_990, 9_999))) == 1
    kept.commit()

    assert kept.touched - before <= 30


def test_expiry_looks_at_what_expires_only() -> None:
    kept = CommittedStore(Stores.window("w", serdes.String, serdes.Long, retention=1000, window_size=1))
    for number in range(1000):
        kept.store.put("a", number, number)
    kept.commit()
    before = kept.touched

    kept.store.put("a", 1, 1500)
    kept.commit()

    assert kept.touched - before <= 2 * 501 + 5
    assert len(kept.entries()["w"]) == 500


# -- any operations ---------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["", "a", "aa", "b", "a\0"])
TIMES = st.integers(0, 60)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.none() | st.integers(0, 9), TIMES),
        st.tuples(st.just("fetch"), KEYS, TIMES, TIMES),
        st.tuples(st.just("all"), TIMES, TIMES),
        st.tuples(st.just("commit")),
        st.tuples(st.just("rebuild")),
    ),
    max_size=40,
)


class Model:
    """A window store as a plain dict of lists."""

    def __init__(self, retention: int, duplicates: bool) -> None:
        self.retention, self.duplicates = retention, duplicates
        self.latest = -1
        self.windows: dict[tuple[str, int], list[int]] = {}

    def copy(self) -> "Model":
        other = Model(self.retention, self.duplicates)
        other.latest, other.windows = self.latest, {place: list(held) for place, held in self.windows.items()}
        return other

    def shows(self, start: int) -> bool:
        return start > self.latest - self.retention

    def put(self, key: str, value: int | None, start: int) -> None:
        if self.duplicates and value is None:
            return
        self.latest = max(self.latest, start)
        held = self.windows.setdefault((key, start), [])
        if not self.duplicates:
            held.clear()
        if value is not None:
            held.append(value)

    def entries(self, low: int, high: int) -> list[tuple[str, int, int]]:
        return [
            (key, start, value)
            for (key, start), held in sorted(self.windows.items())
            for value in held
            if low <= start <= high and self.shows(start)
        ]


@settings(deadline=None)
@given(OPERATIONS, st.sampled_from([10, 25, 1000]), st.booleans())
def test_any_operations_give_what_a_dict_by_key_and_start_gives(
    operations: list[tuple[Any, ...]], retention: int, duplicates: bool
) -> None:
    kept = CommittedStore(
        Stores.window(
            "w", serdes.String, serdes.Long, retention=retention, window_size=10, retain_duplicates=duplicates
        )
    )
    model = Model(retention, duplicates)
    committed = model.copy()

    def shown(entries: Any) -> list[tuple[str, int, int]]:
        return [(key.key, key.window.start, value) for key, value in entries]

    for operation in operations:
        store = kept.store
        match operation:
            case "put", key, value, start:
                store.put(key, value, start)
                model.put(key, value, start)
            case "fetch", key, low, high:
                expected = [entry for entry in model.entries(low, high) if entry[0] == key]
                assert shown(store.fetch(key, low, high)) == expected
                if not duplicates:
                    at = [value for _, start, value in expected if start == low]
                    assert store.fetch(key, low) == (at[0] if at else None) or low > high
            case "all", low, high:
                assert shown(store.fetch_all(low, high)) == model.entries(low, high)
            case ("commit",):
                kept.commit()
                committed = model.copy()
            case ("rebuild",):
                kept.rebuild()
                model = committed.copy()
    assert shown(kept.store.all()) == model.entries(0, FOREVER)
