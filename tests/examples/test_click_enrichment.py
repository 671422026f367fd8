"""Click enrichment: a stream joined with a table, and two streams within a window.

Tests: headrace.demos.click_enrichment
"""

import json
from collections import Counter
from typing import Any

import pytest

from headrace.demos import START, InputRecord
from headrace.demos.click_enrichment import DEMO, make_records, summarize
from headrace.testing import TopologyTestDriver
from tests.examples.running import outputs_of, pipe, record


def profile(user: str, name: str, at: int, city: str = "Rome") -> InputRecord:
    return record("user-profiles", user, {"name": name, "city": city}, at)


def search(user: str, terms: str, at: int) -> InputRecord:
    return record("searches", user, {"terms": terms}, at)


def click(user: str, page: str, at: int) -> InputRecord:
    return record("clicks", user, {"page": page}, at)


def end(at: int = 1_000_000) -> InputRecord:
    """Move stream time on, so that clicks that wait for a search come out."""
    return search("nobody", "nothing", at)


def activity_of(*records: InputRecord) -> list[tuple[str, dict[str, Any]]]:
    return outputs_of(DEMO, records)["user-activity"]


def row(page: str, search: str | None = None, name: str | None = None, city: str | None = None) -> dict[str, Any]:
    return {"page": page, "name": name, "city": city, "search": search}


# -- profiles ---------------------------------------------------------------------------------------------------------


def test_a_click_gets_the_profile_of_its_user() -> None:
    records = [profile("u1", "Ann", 0), profile("u2", "Bob", 0, city="Oslo"), search("u2", "tea", 5)]

    assert activity_of(*records, click("u2", "/tea", 10)) == [("u2", row("/tea", "tea", "Bob", "Oslo"))]


def test_a_click_of_an_unknown_user_comes_out_without_a_name() -> None:
    assert activity_of(search("u1", "tea", 5), click("u1", "/tea", 10)) == [("u1", row("/tea", "tea"))]


def test_a_click_meets_the_profile_as_it_is_at_that_moment() -> None:
    rows = activity_of(
        search("u1", "tea", 0),
        click("u1", "/1", 1),
        profile("u1", "Ann", 2),
        click("u1", "/2", 3),
        profile("u1", "Ann", 4, city="Lima"),
        click("u1", "/3", 5),
    )

    assert [value["city"] for _, value in rows] == [None, "Rome", "Lima"]


def test_a_deleted_profile_is_not_known_any_more() -> None:
    deleted: Any = ("user-profiles", b"u1", None, 2)

    rows = activity_of(profile("u1", "Ann", 0), search("u1", "tea", 1), deleted, click("u1", "/tea", 3))

    assert rows == [("u1", row("/tea", "tea"))]


def test_a_profile_alone_puts_out_nothing() -> None:
    assert activity_of(profile("u1", "Ann", 0), search("u1", "tea", 1), end()) == []


# -- searches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 1999, 2000])
def test_a_search_belongs_to_the_clicks_of_the_next_two_seconds(after: int) -> None:
    rows = activity_of(search("u1", "tea", 5000), click("u1", "/tea", 5000 + after), end())

    assert rows == [("u1", row("/tea", "tea"))]


@pytest.mark.parametrize("after", [-1, 2001])
def test_any_other_click_comes_out_without_a_search(after: int) -> None:
    rows = activity_of(
        *sorted([search("u1", "tea", 5000), click("u1", "/tea", 5000 + after)], key=lambda record: record[3]), end()
    )

    assert rows == [("u1", row("/tea"))]


def test_a_search_of_another_user_does_not_matter() -> None:
    assert activity_of(search("u2", "tea", 0), click("u1", "/tea", 1), end()) == [("u1", row("/tea"))]


def test_a_search_belongs_to_every_click_it_led_to() -> None:
    rows = activity_of(search("u1", "tea", 0), click("u1", "/1", 500), click("u1", "/2", 900))

    assert [value for _, value in rows] == [row("/1", "tea"), row("/2", "tea")]


def test_a_click_after_two_searches_comes_out_for_each_in_their_order() -> None:
    rows = activity_of(search("u1", "tea", 0), search("u1", "green tea", 900), click("u1", "/tea", 1500))

    assert [value["search"] for _, value in rows] == ["tea", "green tea"]


def test_a_click_without_a_search_waits_until_its_grace_has_passed() -> None:
    waiting = activity_of(click("u1", "/tea", 5000), click("u2", "/milk", 6000))
    passed = activity_of(click("u1", "/tea", 5000), click("u2", "/milk", 6001))

    assert waiting == []
    assert passed == [("u1", row("/tea"))]


def test_a_late_search_still_finds_its_click() -> None:
    rows = activity_of(click("u1", "/tea", 5000), click("u2", "/milk", 6000), search("u1", "tea", 4000), end())

    assert rows == [("u1", row("/tea", "tea")), ("u2", row("/milk"))]


def test_a_late_click_still_finds_its_search() -> None:
    rows = activity_of(search("u1", "tea", 4000), click("u2", "/milk", 5500), click("u1", "/tea", 5000), end())

    assert rows == [("u1", row("/tea", "tea")), ("u2", row("/milk"))]


def test_a_late_click_without_a_search_does_not_wait() -> None:
    assert activity_of(click("u2", "/milk", 5500), click("u1", "/tea", 5000)) == [("u1", row("/tea"))]


def test_a_result_has_the_time_of_its_click() -> None:
    with TopologyTestDriver(DEMO.build_topology()) as driver:
        pipe(driver, [search("u1", "tea", 100), click("u1", "/tea", 700), click("u1", "/milk", 5000), end()])

        records = driver.create_output_topic("user-activity").read_records()

    assert [record.timestamp for record in records] == [700, 5000]


# -- made-up data -----------------------------------------------------------------------------------------------------


def expected_activity(records: list[InputRecord]) -> Counter[tuple[str, str]]:
    profiles: dict[str, dict[str, Any]] = {}
    searches: dict[str, list[tuple[int, str]]] = {}
    rows: Counter[tuple[str, str]] = Counter()
    for topic, key, data, timestamp in records:
        user, value = (key or b"").decode(), json.loads(data)
        if topic == "user-profiles":
            profiles[user] = value
        elif topic == "searches":
            searches.setdefault(user, []).append((timestamp, value["terms"]))
        else:
            who = profiles.get(user, {"name": None, "city": None})
            made = searches.get(user, [])
            found: list[str | None] = [terms for at, terms in made if timestamp - 2000 <= at <= timestamp]
            for terms in found or [None]:
                rows[user, json.dumps(row(value["page"], terms, **who))] += 1
    return rows


def test_generated_visits_give_what_plain_python_computes() -> None:
    records = list(make_records(2000))

    rows = activity_of(*records, end(START + 10_000_000))

    assert Counter((user, json.dumps(value)) for user, value in rows) == expected_activity(records)


def test_generated_visits_have_every_case() -> None:
    rows = [value for _, value in activity_of(*make_records(2000))]

    cases = {(value["name"] is not None, value["search"] is not None) for value in rows}

    assert cases == {(True, True), (True, False), (False, True), (False, False)}


def test_no_two_generated_records_have_the_same_time() -> None:
    timestamps = [timestamp for _, _, _, timestamp in make_records(2000)]

    assert timestamps == sorted(set(timestamps))


def test_generated_users_move_now_and_then() -> None:
    cities: dict[bytes | None, set[str]] = {}
    for topic, user, value, _ in make_records(2000):
        if topic == "user-profiles":
            cities.setdefault(user, set()).add(json.loads(value)["city"])

    assert any(len(lived_in) > 1 for lived_in in cities.values())


def test_the_summary_tells_what_led_where() -> None:
    rows = [row("/tea", "tea", "Ann", "Rome")] * 3 + [row("/tea/1", "tea", "Bob", "Oslo"), row("/milk")]

    assert summarize({"user-activity": [("u", value) for value in rows]}) == [
        "5 rows, 4 of them with a search",
        "from Rome 3, Oslo 1, unknown 1",
        "     3  tea -> /tea",
        "     1  tea -> /tea/1",
    ]
