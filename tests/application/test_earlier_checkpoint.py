"""An application continues, at exactly the right record, from a checkpoint of the engine before it was rebuilt.

Tests: headrace.application.preparation, headrace.application.supervisor.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace import Streams
from headrace.brokers import Broker, LocalBroker
from headrace.engine.in_process import InProcessEngine
from tests.application.earlier_application import ALL, HALF, OUTPUTS, config, produce, topology, unpack

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

Outputs = dict[str, list[tuple[int, bytes | None, bytes | None, int]]]


def outputs(broker: Broker) -> Outputs:
    return {
        topic: [(record.partition, record.key, record.value, record.timestamp) for record in broker.records(topic)]
        for topic in OUTPUTS
    }


def undisturbed(folder: Path) -> Outputs:
    """Return the outputs of an application that read all records in one go."""
    with LocalBroker(folder / "topics.db") as broker:
        for topic in ("lines", "rows"):
            broker.create_topic(topic, 2)
        produce(broker, 0, HALF)
        produce(broker, HALF, ALL)
        InProcessEngine(topology(), config(folder), broker, folder / "images").run_until_caught_up()
        return outputs(broker)


def test_an_earlier_checkpoint_is_continued(tmp_path: Path) -> None:
    there = tmp_path / "there"
    unpack(there)
    with LocalBroker(there / "topics.db") as broker:
        before = outputs(broker)
        produce(broker, HALF, ALL)

        Streams(topology(), config(there)).run(until_caught_up=True)

        assert outputs(broker) == undisturbed(tmp_path / "anew")
        assert all(before[topic] for topic in OUTPUTS)
