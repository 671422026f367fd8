"""The buffer of suppress."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import SerializationError, serdes
from headrace.serdes import Serde
from headrace.state.builders import suppress_buffer
from tests.state.committed_store import CommittedStore

NEVER = 2**63 - 1


def kept_buffer(value_serde: Serde[Any] = serdes.Long, *, count_bytes: bool = False) -> CommittedStore:
    return CommittedStore(suppress_buffer("buffer", serdes.String, value_serde, count_bytes=count_bytes))


@pytest.fixture
def kept() -> CommittedStore:
    return kept_buffer()


def put(
    kept: CommittedStore, due: int, key: str, new: Any, old: Any = None, timestamp: int = 0, **options: Any
) -> None:
    kept.store.put(due, key, new, old, timestamp, options.get("headers", []), options.get("topic", "in"))


def take(kept: CommittedStore, until: int = NEVER) -> list[tuple[str, Any]]:
    taken = kept.store.take_while(lambda: kept.store.next_due <= until and kept.store.records > 0)
    return [(key, new) for key, new, _, _ in taken]


def test_entries_come_by_due_time_then_by_key(kept: CommittedStore) -> None:
    for due, key in [(20, "c"), (10, "b"), (10, "a"), (30, "d")]:
        put(kept, due, key, due)

    assert kept.store.next_due == 10
    assert take(kept) == [("a", 10), ("b", 10), ("c", 20), ("d", 30)]
    assert kept.store.next_due == NEVER
    assert kept.store.records == 0


def test_no_more_are_taken_than_wanted(kept: CommittedStore) -> None:
    for due in (10, 20, 30):
        put(kept, due, str(due), due)

    assert take(kept, until=20) == [("10", 10), ("20", 20)]
    assert kept.store.next_due == 30
    assert kept.store.records == 1
    assert take(kept, until=29) == []


def test_a_later_update_replaces_the_value_and_keeps_the_due_time(kept: CommittedStore) -> None:
    put(kept, 10, "a", 1, timestamp=10)
    put(kept, 11, "b", 2, timestamp=11)
    put(kept, 12, "a", 3, old=1, timestamp=12, headers=[("h", b"1")])

    [(key, new, old, entry), _] = list(kept.store.take_while(lambda: kept.store.records > 0))

    assert (key, new, old) == ("a", 3, 1)
    assert (entry.timestamp, entry.headers, entry.topic) == (12, [("h", b"1")], "in")


def test_a_delete_waits_too(kept: CommittedStore) -> None:
    put(kept, 10, "a", None, old=5)

    assert [(key, new, old) for key, new, old, _ in kept.store.take_while(lambda: kept.store.records > 0)] == [
        ("a", None, 5)
    ]


def test_the_value_before_the_first_waiting_update_is_known(kept: CommittedStore) -> None:
    put(kept, 10, "a", 2, old=1)
    put(kept, 11, "a", 3, old=2)
    put(kept, 11, "new", 3)

    assert kept.store.prior_value("a") == (1,)
    assert kept.store.prior_value("new") == (None,)
    assert kept.store.prior_value("unknown") is None
    take(kept)
    assert kept.store.prior_value("a") is None


def test_a_key_that_was_taken_may_wait_again_and_earlier(kept: CommittedStore) -> None:
    put(kept, 20, "a", 1)
    take(kept)
    put(kept, 5, "a", 2)

    assert kept.store.next_due == 5
    assert take(kept) == [("a", 2)]


def test_updates_may_be_put_while_others_are_taken(kept: CommittedStore) -> None:
    put(kept, 10, "a", 1)
    put(kept, 20, "b", 2)

    taken = []
    for key, _, _, _ in kept.store.take_while(lambda: kept.store.records > 0):
        taken.append(key)
        if key == "a":
            put(kept, 20, "b", 3)

    assert taken == ["a", "b"]


def test_its_size_is_counted_as_kafka_streams_counts_it() -> None:
    kept = kept_buffer(serdes.String, count_bytes=True)
    put(kept, 10, "ab", "value", topic="topic", headers=[("name", b"abc")])
    one = 8 + 2 + 5 + (8 + 8 + 4) + 5 + (4 + 3)
    assert kept.store.size == one

    put(kept, 10, "ab", "longer value", topic="topic", headers=[("name", b"abc")])
    assert kept.store.size == one + 7

    take(kept)
    assert kept.store.size == 0


def test_an_old_value_that_is_the_prior_one_counts_once() -> None:
    kept = kept_buffer(serdes.String, count_bytes=True)
    put(kept, 10, "a", "new", old="old", topic="t")
    once = kept.store.size
    put(kept, 10, "a", "new", old="oth", topic="t")

    assert kept.store.size == once + 3


def test_a_size_is_not_counted_unless_it_is_needed(kept: CommittedStore) -> None:
    put(kept, 10, "a", 1)

    assert kept.store.size == 0


def test_waiting_updates_are_there_after_a_rebuild() -> None:
    kept = kept_buffer(serdes.Json, count_bytes=True)
    put(kept, 20, "b", [2], old=[1], timestamp=7, headers=[("h", b"1")], topic="other")
    put(kept, 10, "a", [1])
    kept.commit()
    size = kept.store.size

    store = kept.rebuild()

    assert (store.records, store.next_due, store.size) == (2, 10, size)
    assert store.prior_value("b") == ([1],)
    taken = list(store.take_while(lambda: store.records > 0))
    assert [(key, new, old) for key, new, old, _ in taken] == [("a", [1], None), ("b", [2], [1])]
    assert (taken[1][3].timestamp, taken[1][3].headers, taken[1][3].topic) == (7, [("h", b"1")], "other")


def test_taken_updates_are_gone_after_a_rebuild(kept: CommittedStore) -> None:
    put(kept, 10, "a", 1)
    put(kept, 20, "b", 2)
    kept.commit()
    take(kept, until=10)
    kept.commit()

    kept.rebuild()

    assert take(kept) == [("b", 2)]
    kept.commit()
    assert kept.entries() == {"buffer": {}, "buffer/due": {}}


def test_mutable_values_cannot_be_changed_while_they_wait() -> None:
    kept = kept_buffer(serdes.Json)
    mine = [1]
    put(kept, 10, "a", mine)

    mine.append(2)

    assert take(kept) == [("a", [1])]


def test_wrong_types_are_refused_with_the_buffers_name(kept: CommittedStore) -> None:
    with pytest.raises(SerializationError, match=r"^store 'buffer': .*expected int, got str"):
        put(kept, 10, "a", "one")


def test_taking_looks_only_at_the_entries_it_takes(kept: CommittedStore) -> None:
    for number in range(2000):
        put(kept, number, f"{number}", number)
    kept.commit()
    before = kept.touched

    for until in range(0, 50, 5):
        take(kept, until=until)
        kept.commit()

    assert kept.touched - before <= 46 * 8 + 20


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 20), st.sampled_from("abcd"), st.none() | st.integers(0, 9)),
            st.tuples(st.just("take"), st.integers(0, 20)),
            st.tuples(st.just("commit")),
        ),
        max_size=40,
    )
)
def test_any_operations_give_what_a_sorted_dict_gives(operations: list[tuple[Any, ...]]) -> None:
    kept = kept_buffer()
    model: dict[str, tuple[int, int | None]] = {}
    for operation in operations:
        match operation:
            case "put", due, key, value:
                put(kept, due, key, value)
                model[key] = (model[key][0] if key in model else due, value)
            case "take", until:
                due_now = sorted((due, key) for key, (due, _) in model.items() if due <= until)
                assert take(kept, until) == [(key, model.pop(key)[1]) for _, key in due_now]
            case ("commit",):
                kept.commit()
                kept.rebuild()
        assert kept.store.records == len(model)
        assert kept.store.next_due == min((due for due, _ in model.values()), default=NEVER)
