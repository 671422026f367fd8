"""Store builders (`state.builders`, `state.setup`)."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import SerializationError, StoreBuilder, Stores, TopologyError, serdes
from tests.state.committed_store import CommittedStore


def test_a_builder_says_what_kind_of_store_it_makes() -> None:
    assert [
        builder.kind
        for builder in (
            Stores.key_value("s"),
            Stores.key_value("s", timestamped=True),
            Stores.window("s", retention=10, window_size=5),
            Stores.window("s", retention=10, window_size=5, timestamped=True),
            Stores.session("s", retention=10),
            Stores.versioned("s", history_retention=10),
        )
    ] == ["key-value", "timestamped-key-value", "window", "timestamped-window", "session", "versioned"]


def test_serdes_that_are_not_given_are_the_configured_ones() -> None:
    store = CommittedStore(Stores.key_value("s")).store

    store.put("a", {"json": True})

    assert store.get("a") == {"json": True}


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_store_in_memory_is_kept_like_any_other(in_memory: bool) -> None:
    kept = CommittedStore(Stores.key_value("s", in_memory=in_memory))
    kept.store.put("a", 1)
    kept.commit()

    assert kept.rebuild().get("a") == 1


def test_builders_are_equal_when_they_make_the_same_store() -> None:
    assert Stores.key_value("s", serdes.String) == Stores.key_value("s", serdes.String)
    assert Stores.window("s", retention=1000, window_size=5) == Stores.window(
        "s", retention=timedelta(seconds=1), window_size=5
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Stores.key_value("s"), Stores.key_value("t")),
        (Stores.key_value("s"), Stores.key_value("s", timestamped=True)),
        (Stores.key_value("s", serdes.String), Stores.key_value("s", serdes.Long)),
        (Stores.window("s", retention=10, window_size=5), Stores.window("s", retention=11, window_size=5)),
        (Stores.window("s", retention=10, window_size=5), Stores.window("s", retention=10, window_size=6)),
        (Stores.session("s", retention=10), Stores.session("s", retention=11)),
        (Stores.versioned("s", history_retention=10), Stores.versioned("s", history_retention=11)),
    ],
)
def test_builders_that_make_different_stores_differ(one: StoreBuilder, other: StoreBuilder) -> None:
    assert one != other


@pytest.mark.parametrize("name", ["", None, 5, "a/b", "a b", "x" * 250])
def test_a_store_needs_a_name_that_a_topic_could_have(name: Any) -> None:
    with pytest.raises(TopologyError, match=r"^a store needs a name of up to 249 letters, digits, .* got "):
        Stores.key_value(name)


def test_only_serdes_are_accepted() -> None:
    with pytest.raises(SerializationError, match=r"expected a serde such as serdes.String, got <class 'int'>"):
        Stores.key_value("s", serdes.String, int)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "spans", "message"),
    [
        (Stores.window, {"retention": -1, "window_size": 1}, r"^retention: expected at least 0 ms, got -1 ms"),
        (Stores.window, {"retention": 1, "window_size": "x"}, r"^window_size: expected a timedelta or whole"),
        (Stores.session, {"retention": 1.5}, r"^retention: expected a timedelta or whole milliseconds"),
        (Stores.versioned, {"history_retention": -1}, r"^history_retention: expected at least 0 ms"),
    ],
)
def test_an_invalid_duration_is_refused(make: Any, spans: dict[str, Any], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make("s", **spans)
