"""Which names count as generated, and the names of an application's own topics."""

import pytest

from headrace.topology.names import (
    changelog_topic,
    generated_name,
    is_generated_store,
    names_repartition_steps,
    own_topic,
    topic_prefix,
)


def test_a_generated_name_ends_with_ten_digits() -> None:
    assert generated_name("KSTREAM-FILTER-", 7) == "KSTREAM-FILTER-0000000007"


@pytest.mark.parametrize(
    ("store", "generated"),
    [
        ("counts", False),
        ("KSTREAM", False),
        ("counts-0000000001", False),
        ("KSTREAM-AGGREGATE-STATE-STORE-0000000001", True),
        ("COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000001", True),
        ("prices-STATE-STORE-0000000001", True),
        ("KSTREAM-JOINTHIS-0000000004-store", True),
        ("KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000004", True),
    ],
)
def test_a_store_has_a_generated_name_or_a_given_one(store: str, generated: bool) -> None:
    assert is_generated_store(store) is generated


@pytest.mark.parametrize(
    ("prefix", "own"),
    [
        ("by-user", True),
        ("prices-STATE-STORE-0000000001", True),
        ("COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000001", True),
        ("KSTREAM-AGGREGATE-STATE-STORE-0000000001", False),
        ("KSTREAM-MAP-0000000001", False),
    ],
)
def test_the_steps_of_a_repartition_are_named_after_a_given_prefix(prefix: str, own: bool) -> None:
    assert names_repartition_steps(prefix) is own


def test_an_applications_own_topics_begin_with_its_id() -> None:
    assert topic_prefix("shop") == "shop-"
    assert own_topic("shop", "by-user-repartition") == "shop-by-user-repartition"
    assert changelog_topic("shop", "counts") == "shop-counts-changelog"
