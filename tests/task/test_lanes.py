"""Lanes are merged by what caused their records, however they are cut."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.task.lanes import Lane, joined, merge_order, taken_in

RECORDS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=30)


def lanes_of(arrivals: list[tuple[int, int]]) -> list[Lane]:
    """Spread (lane, timestamp) in their order of arrival over three lanes."""
    rows: list[list[Any]] = [[], [], []]
    for sequence, (lane, timestamp) in enumerate(arrivals):
        rows[lane].append((len(rows[lane]), timestamp, None, None, None, sequence))
    return [Lane.of_source("in", number, mine) for number, mine in enumerate(rows)]


def merged(lanes: list[Lane]) -> list[Any]:
    records = [record for lane in lanes for record in lane.records]
    return taken_in(merge_order(joined([lane.causes for lane in lanes])), records)


@given(RECORDS)
def test_each_lane_keeps_its_order(arrivals: list[tuple[int, int]]) -> None:
    lanes = lanes_of(arrivals)
    order = merged(lanes)

    for lane in lanes:
        assert [record for record in order if record in lane.records] == list(lane.records)


@given(RECORDS)
def test_records_in_the_order_of_time_come_in_the_order_of_arrival(arrivals: list[tuple[int, int]]) -> None:
    arrivals = sorted(arrivals, key=lambda arrival: arrival[1])

    assert [record[5] for record in merged(lanes_of(arrivals))] == list(range(len(arrivals)))


@given(RECORDS)
def test_no_record_waits_for_a_later_one_of_another_lane(arrivals: list[tuple[int, int]]) -> None:
    """A record is never preceded by one of a lane whose time had already passed it."""
    order = merged(lanes_of(arrivals))
    latest = -1
    late = {record[5] for record in order if record[1] < latest or (latest := max(latest, record[1])) < 0}
    alone = set()
    for lane in lanes_of(arrivals):
        own = -1
        for record in lane.records:
            if record[1] < own:
                alone.add(record[5])
            own = max(own, record[1])

    assert late <= alone
