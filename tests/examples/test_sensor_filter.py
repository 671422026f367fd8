"""Sensor filter: steps without state.

Tests: headrace.demos.sensor_filter
"""

import json
from typing import Any

import pytest

from headrace.demos import InputRecord
from headrace.demos.sensor_filter import DEMO, make_records, summarize
from headrace.testing import TopologyTestDriver
from tests.examples.running import outputs_of, pipe, record


def reading(sensor: str, celsius: float | None, at: int = 0) -> InputRecord:
    return record("temperatures", sensor, {"room": sensor.partition("-")[0], "celsius": celsius}, at)


def high_of(*readings: InputRecord) -> list[tuple[str, dict[str, Any]]]:
    return outputs_of(DEMO, readings)["high-temperatures"]


def test_high_readings_come_out_under_their_room() -> None:
    assert high_of(reading("kiln-2", 31.5)) == [("kiln", {"sensor": "kiln-2", "celsius": 31.5, "above": 1.5})]


@pytest.mark.parametrize(("celsius", "comes_out"), [(29.9, False), (30.0, True), (30.1, True), (-40.0, False)])
def test_high_begins_at_the_threshold(celsius: float, comes_out: bool) -> None:
    assert bool(high_of(reading("kiln-2", celsius))) is comes_out


def test_a_broken_sensor_is_not_high() -> None:
    assert high_of(reading("kiln-2", None)) == []


def test_every_high_reading_comes_out_also_if_it_is_the_same_again() -> None:
    assert len(high_of(reading("kiln-2", 31.5), reading("kiln-2", 31.5))) == 2


def test_readings_keep_their_order_and_their_time_also_late_ones() -> None:
    with TopologyTestDriver(DEMO.build_topology()) as driver:
        pipe(driver, [reading("kiln-1", 35.0, at=500), reading("hall-1", 20.0, at=900), reading("attic-1", 40.0, at=3)])

        records = driver.create_output_topic("high-temperatures").read_records()

    assert [(record.key, record.timestamp) for record in records] == [("kiln", 500), ("attic", 3)]


def test_nothing_is_kept_and_nothing_repartitioned() -> None:
    with TopologyTestDriver(DEMO.build_topology()) as driver:
        pipe(driver, make_records(200))

        assert driver.state_stores() == {}
        assert driver.produced_topic_names() == {"high-temperatures"}


def test_generated_readings_give_what_plain_python_computes() -> None:
    records = list(make_records(3000))
    expected = []
    for _, sensor, data, _ in records:
        value = json.loads(data)
        if value["celsius"] is not None and value["celsius"] >= 30:
            celsius = value["celsius"]
            row = {"sensor": (sensor or b"").decode(), "celsius": celsius, "above": pytest.approx(celsius - 30)}
            expected.append((value["room"], row))

    assert high_of(*records) == expected
    assert len(expected) > 100


def test_generated_readings_come_from_every_sensor_once_a_second() -> None:
    records = list(make_records(60))

    assert len({sensor for _, sensor, _, _ in records[:30]}) == 30
    assert [sensor for _, sensor, _, _ in records[:30]] == [sensor for _, sensor, _, _ in records[30:]]
    assert {after[3] - before[3] for before, after in zip(records[:30], records[30:])} == {1000}


def test_some_generated_readings_are_missing() -> None:
    missing = sum(json.loads(value)["celsius"] is None for _, _, value, _ in make_records(3000))

    assert 0 < missing < 60


def test_the_summary_has_the_highest_reading_of_each_room() -> None:
    rows = [
        ("kiln", {"sensor": "kiln-1", "celsius": 31.0, "above": 1.0}),
        ("attic", {"sensor": "attic-2", "celsius": 33.0, "above": 3.0}),
        ("kiln", {"sensor": "kiln-3", "celsius": 41.5, "above": 11.5}),
        ("kiln", {"sensor": "kiln-2", "celsius": 41.5, "above": 11.5}),
    ]

    assert summarize({"high-temperatures": rows}) == [
        "4 readings of 30 °C and more",
        "attic         1  highest  33.0 °C by attic-2",
        "kiln          3  highest  41.5 °C by kiln-2",
    ]
