"""Sensor filter: find the high values among many temperature readings, by room.

It shows steps without state. Each record is processed by itself: `filter` keeps the high readings, `map` gives them a
new key and a new value. Nothing is stored and no records are combined, so there is no repartition: the sink writes each
record to the partition of its new key.

    temperatures -> 30 °C and more -> by room -> high-temperatures

Run it on Spark over generated readings:

    headrace demo sensor_filter

or over your own topic `temperatures`:

    headrace run headrace.demos.sensor_filter:build_topology
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from headrace import StreamsBuilder, Topology, serdes
from headrace.demos import START, Demo, InputRecord, Outputs

THRESHOLD = 30.0

OUTPUTS = {"high-temperatures": (serdes.String, serdes.Json)}
OUTPUT_TOPICS = tuple(OUTPUTS)


def build_topology() -> Topology:
    """Keep the high readings and make the room their key."""
    builder = StreamsBuilder()
    readings = builder.stream("temperatures")
    readings.filter(is_high, name="high-only").map(by_room, name="by-room").to("high-temperatures")
    return builder.build()


def is_high(sensor: str, reading: dict[str, Any]) -> bool:
    """Tell whether a reading is high; a broken sensor gives None.

    >>> is_high("kiln-2", {"room": "kiln", "celsius": 30.0}), is_high("kiln-2", {"room": "kiln", "celsius": None})
    (True, False)
    """
    celsius = reading["celsius"]
    return celsius is not None and celsius >= THRESHOLD


def by_room(sensor: str, reading: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the room as the key, and a value that names the sensor.

    >>> by_room("kiln-2", {"room": "kiln", "celsius": 31.5})
    ('kiln', {'sensor': 'kiln-2', 'celsius': 31.5, 'above': 1.5})
    """
    celsius = reading["celsius"]
    return reading["room"], {"sensor": sensor, "celsius": celsius, "above": round(celsius - THRESHOLD, 1)}


def summarize(outputs: Outputs) -> list[str]:
    """Return the number of high readings, and the highest reading of each room."""
    rooms: dict[str, list[dict[str, Any]]] = {}
    for room, reading in outputs["high-temperatures"]:
        rooms.setdefault(room, []).append(reading)
    lines = [f"{len(outputs['high-temperatures']):,} readings of {THRESHOLD:.0f} °C and more"]
    for room, readings in sorted(rooms.items()):
        highest = min(readings, key=lambda reading: (-reading["celsius"], reading["sensor"]))
        lines.append(f"{room:8} {len(readings):6,}  highest {highest['celsius']:5.1f} °C by {highest['sensor']}")
    return lines


# -- generated readings -----------------------------------------------------------------------------------------------

_ROOMS = {"attic": 26.0, "cellar": 14.0, "hall": 21.0, "kiln": 29.0, "office": 23.0, "server": 27.5}


def make_records(count: int, seed: int = 7) -> Iterator[InputRecord]:
    """Generate a reading per sensor and second; temperatures drift around the room's own and sometimes jump."""
    random = Random(seed)
    sensors = [(f"{room}-{number}", room) for room in _ROOMS for number in range(1, 6)]
    celsius = {sensor: _ROOMS[room] for sensor, room in sensors}
    for index in range(count):
        second, position = divmod(index, len(sensors))
        sensor, room = sensors[position]
        celsius[sensor] += random.gauss(0, 0.4) - 0.02 * (celsius[sensor] - _ROOMS[room])
        if random.random() < 0.001:
            celsius[sensor] += 12  # someone opened an oven
        broken = random.random() < 0.005
        reading = {"room": room, "celsius": None if broken else round(celsius[sensor], 1)}
        yield "temperatures", sensor.encode(), json.dumps(reading).encode(), START + 1000 * second + position


DEMO = Demo(
    name="sensor_filter",
    title="The high values among many temperature readings",
    build_topology=build_topology,
    make_records=make_records,
    outputs=OUTPUTS,
    summarize=summarize,
)
