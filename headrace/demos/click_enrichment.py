"""Click enrichment: who clicked, and what they had searched for just before.

It shows two kinds of joins. First a click is joined with its user's profile as it is at that moment: a stream joins a
table. Then it is joined with the user's searches in the two seconds before it: a stream joins a stream, within a
window. Both are left joins, so clicks of unknown users and clicks without a search come out as well. A click without a
search waits for a second of grace, because a search may arrive late.

    clicks ---------+-> with profile -+-> with search -> user-activity
    user-profiles --+                 |
    searches -------------------------+

All three topics have the user's id as the key. Give them the same number of partitions, because records are joined only
within a partition.

Run it on Spark over generated visits:

    headrace demo click_enrichment

or over your own topics `user-profiles`, `searches` and `clicks`:

    headrace run headrace.demos.click_enrichment:build_topology
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

from headrace import JoinWindows, StreamsBuilder, Topology, serdes
from headrace.demos import START, Demo, InputRecord, Outputs

WINDOW = JoinWindows(before=timedelta(seconds=2), after=0, grace=timedelta(seconds=1))

OUTPUTS = {"user-activity": (serdes.String, serdes.Json)}
OUTPUT_TOPICS = tuple(OUTPUTS)


def build_topology() -> Topology:
    """Join clicks with the profiles of their users, then with their latest searches."""
    builder = StreamsBuilder()
    profiles = builder.table("user-profiles", store="profiles")
    searches = builder.stream("searches")
    clicks = builder.stream("clicks")
    known = clicks.left_join(profiles, with_profile)
    known.left_join(searches, with_search, window=WINDOW).to("user-activity")
    return builder.build()


def with_profile(click: dict[str, Any], profile: dict[str, Any] | None) -> dict[str, Any]:
    """Add the user's name and city; None for an unknown user.

    >>> with_profile({"page": "/lamps/7"}, {"name": "Ann", "city": "Rome"})
    {'page': '/lamps/7', 'name': 'Ann', 'city': 'Rome'}
    """
    profile = profile or {}
    return {"page": click["page"], "name": profile.get("name"), "city": profile.get("city")}


def with_search(click: dict[str, Any], search: dict[str, Any] | None) -> dict[str, Any]:
    """Add the search terms; None if no search led to this click."""
    return {**click, "search": search["terms"] if search else None}


def summarize(outputs: Outputs) -> list[str]:
    """Return how many clicks followed a search, their cities, and which search led to which page."""
    activity = [value for _, value in outputs["user-activity"]]
    searched = [click for click in activity if click["search"] is not None]
    cities = Counter(click["city"] or "unknown" for click in activity)
    found = Counter((click["search"], click["page"]) for click in searched)
    return [
        f"{len(activity):,} rows, {len(searched):,} of them with a search",
        "from " + ", ".join(f"{city} {count:,}" for city, count in _most_common(cities, 7)),
        *(f"{count:6,}  {terms} -> {page}" for (terms, page), count in _most_common(found, 5)),
    ]


def _most_common(counts: Counter[Any], number: int) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:number]


# -- generated visits -------------------------------------------------------------------------------------------------

_NAMES = ("Ann", "Bob", "Chloé", "Elif", "Femi", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena", "Mia", "Olga", "Uma")
_CITIES = ("Accra", "Lima", "Lyon", "Oslo", "Osaka", "Rome")
_SHELVES = {"lamps": "desk lamp", "chairs": "office chair", "kettles": "kettle", "books": "crime novel", "tea": "tea"}


def make_records(count: int, seed: int = 7) -> Iterator[InputRecord]:
    """Generate profiles, then visits: some users search and click, some only click, and sometimes one moves."""
    random = Random(seed)
    users = [f"user-{number}" for number in range(1, count // 20 + 2)]
    records: list[tuple[int, str, str, dict[str, Any]]] = []
    for user in users:
        if random.random() < 0.9:
            records.append((START, "user-profiles", user, _profile(random)))
    now = START + len(users)
    while len(records) < count:
        user, shelf = random.choice(users), random.choice(list(_SHELVES))
        if random.random() < 0.01:
            records.append((now, "user-profiles", user, _profile(random)))
        elif random.random() < 0.7:
            records.append((now, "searches", user, {"terms": _SHELVES[shelf]}))
            for _ in range(random.choice((0, 1, 1, 2))):
                after = random.randint(200, 2400)  # sometimes too late for the window
                records.append((now + after, "clicks", user, {"page": f"/{shelf}/{random.randint(1, 9)}"}))
        else:
            records.append((now, "clicks", user, {"page": f"/{shelf}"}))
        now += random.randint(1, 250)
    records.sort(key=lambda record: record[0])
    last = 0
    for timestamp, topic, user, value in records[:count]:
        last = max(
            timestamp, last + 1
        )  # no two records have the same time, so it is always clear whether a profile comes first
        yield topic, user.encode(), json.dumps(value).encode(), last


def _profile(random: Random) -> dict[str, Any]:
    return {"name": random.choice(_NAMES), "city": random.choice(_CITIES)}


DEMO = Demo(
    name="click_enrichment",
    title="Clicks with their users' profiles and the searches before them",
    build_topology=build_topology,
    make_records=make_records,
    outputs=OUTPUTS,
    summarize=summarize,
)
