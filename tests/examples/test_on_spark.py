"""Every demo runs on Spark, and ends with the results of the test driver."""

from pathlib import Path
from typing import Any

import pytest

from headrace import Streams, StreamsConfig
from headrace.brokers import connect
from headrace.demos import DEMOS, Demo, Outputs
from headrace.testing import TopologyTestDriver

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
RECORDS = 400


def last_values(outputs: Outputs) -> dict[str, dict[str, Any]]:
    return {topic: {repr(key): value for key, value in pairs} for topic, pairs in outputs.items()}


def on_the_driver(demo: Demo) -> Outputs:
    with TopologyTestDriver(demo.build_topology()) as driver:
        for topic, key, value, timestamp in demo.make_records(RECORDS):
            driver.pipe(topic, key, value, timestamp, [])
        return {
            topic: driver.create_output_topic(topic, key_serde=keys, value_serde=values).read_key_values()
            for topic, (keys, values) in demo.outputs.items()
        }


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_on_spark_ends_with_what_the_driver_gives(name: str, tmp_path: Path) -> None:
    demo = DEMOS[name]
    config = StreamsConfig(application_id=name, state_dir=str(tmp_path), master="local[*]")
    with connect(config.bootstrap_servers) as broker:
        for topic, key, value, timestamp in demo.make_records(RECORDS):
            if topic not in broker.topics():
                broker.create_topic(topic)
            broker.produce(topic, [(key, value, timestamp)])
        Streams(demo.build_topology(), config).run(until_caught_up=True)
        found = {
            topic: [
                (keys.deserialize(topic, record.key), values.deserialize(topic, record.value))
                for record in broker.records(topic)
            ]
            for topic, (keys, values) in demo.outputs.items()
        }

    expected = on_the_driver(demo)
    assert last_values(found) == last_values(expected)
    assert demo.summarize(found)
