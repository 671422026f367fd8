"""Stores as tests and users see them."""

from typing import Any

import pytest

from headrace import Stores, ValueAndTimestamp, Window, Windowed, serdes
from headrace.state.views import plain_view
from tests.state.committed_store import CommittedStore


@pytest.fixture
def counts() -> Any:
    store = CommittedStore(Stores.key_value("counts", serdes.String, serdes.Long, timestamped=True)).store
    store.put("a", ValueAndTimestamp(1, 10))
    store.put("ab", ValueAndTimestamp(2, 20))
    store.put("b", ValueAndTimestamp(3, 30))
    return store


def test_a_timestamped_store_shows_plain_values(counts: Any) -> None:
    view = plain_view(counts)

    assert view.name == "counts"
    assert view.get("a") == 1
    assert view.get("x") is None
    assert list(view.all()) == [("a", 1), ("ab", 2), ("b", 3)]
    assert list(view.reverse_all()) == [("b", 3), ("ab", 2), ("a", 1)]
    assert list(view.range("ab", None)) == [("ab", 2), ("b", 3)]
    assert list(view.reverse_range(None, "ab")) == [("ab", 2), ("a", 1)]
    assert list(view.prefix_scan("a")) == [("a", 1), ("ab", 2)]
    assert list(view.prefix_scan(1, lambda _: b"b")) == [("b", 3)]
    assert view.approximate_num_entries() == 3


def test_a_put_from_outside_has_no_timestamp(counts: Any) -> None:
    view = plain_view(counts)

    view.put("c", 4)
    view.put_all([("d", 5), ("a", None)])

    assert counts.get("c") == ValueAndTimestamp(4, -1)
    assert list(view.all()) == [("ab", 2), ("b", 3), ("c", 4), ("d", 5)]


def test_the_other_writes_work_with_plain_values_too(counts: Any) -> None:
    view = plain_view(counts)

    assert view.put_if_absent("a", 9) == 1
    assert view.put_if_absent("z", 9) is None
    assert view.put_if_absent("y", None) is None
    assert view.delete("z") == 9
    assert view.delete("z") is None
    view.put("a", None)
    assert view.get("a") is None


def test_a_timestamped_window_store_shows_plain_values() -> None:
    store = CommittedStore(
        Stores.window("w", serdes.String, serdes.Long, retention=100, window_size=10, timestamped=True)
    ).store
    view = plain_view(store)
    store.put("a", ValueAndTimestamp(1, 5), 0)
    view.put("a", 2, 10)
    view.put("b", 3, 10)
    view.put("b", None, 10)
    entry = (Windowed("a", Window(0, 10)), 1)

    assert view.name == "w"
    assert view.fetch("a", 0) == 1
    assert view.fetch("a", 5) is None
    assert list(view.fetch("a", 0, 5)) == [entry]
    assert list(view.fetch_all(0, 9)) == [entry]
    assert [value for _, value in view.all()] == [1, 2]
    assert store.fetch("a", 10) == ValueAndTimestamp(2, -1)


@pytest.mark.parametrize(
    "builder",
    [
        Stores.key_value("s"),
        Stores.window("s", retention=10, window_size=10),
        Stores.session("s", retention=10),
        Stores.versioned("s", history_retention=10),
    ],
    ids=lambda builder: builder.kind,
)
def test_other_stores_look_the_same_from_outside(builder: Any) -> None:
    store = CommittedStore(builder).store

    assert plain_view(store) is store
