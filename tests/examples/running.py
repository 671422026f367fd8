"""Run a demo's topology in the test driver, over records as its generator makes them."""

import json
from collections.abc import Iterable
from typing import Any

from headrace.demos import Demo, InputRecord, Outputs
from headrace.testing import TopologyTestDriver

NO_CACHE = {"statestore_cache_max_bytes": 0}


def outputs_of(demo: Demo, records: Iterable[InputRecord], config: dict[str, Any] | None = None) -> Outputs:
    """Pipe records through a demo; return the keys and values of every output topic."""
    with TopologyTestDriver(demo.build_topology(), config) as driver:
        pipe(driver, records)
        return read(demo, driver)


def pipe(driver: TopologyTestDriver, records: Iterable[InputRecord]) -> None:
    """Pipe records into a driver."""
    for topic, key, value, timestamp in records:
        driver.pipe(topic, key, value, timestamp, [])


def read(demo: Demo, driver: TopologyTestDriver) -> Outputs:
    """Read every output topic of a demo with its serdes."""
    return {
        topic: driver.create_output_topic(topic, key_serde=key_serde, value_serde=value_serde).read_key_values()
        for topic, (key_serde, value_serde) in demo.outputs.items()
    }


def record(topic: str, key: str | None, value: Any, timestamp: int) -> InputRecord:
    """Make a record with a value in JSON."""
    return topic, None if key is None else key.encode(), json.dumps(value).encode(), timestamp
