"""What the source hands out, and how its settings travel."""

from __future__ import annotations

import pickle
import subprocess
import sys

import cloudpickle

from headrace import StreamsConfig
from headrace.engine.messages import TopicRange
from headrace.spark.source import SourceSettings, TopicsReader, share_out
from tests.engine.planning import read_plan


def settings_of(config: StreamsConfig) -> SourceSettings:
    client_settings = cloudpickle.dumps(config.kafka)
    return SourceSettings(config.bootstrap_servers, client_settings, read_plan({}), [7], "no-such-file", 2)


def wanted(partition: int, size: int) -> TopicRange:
    return TopicRange("in", partition, 0, size, 7)


def sizes(shares: list[list[tuple[TopicRange, list[int]]]]) -> list[int]:
    return sorted(sum(each.end - each.start for each, _ in share) for share in shares)


def test_readers_get_about_as_much_each() -> None:
    ranges = [(wanted(number, size), [number]) for number, size in enumerate((10, 90, 40, 60))]
    assert sizes(share_out(ranges, 2)) == [100, 100]


def test_no_reader_is_left_without_work() -> None:
    assert sizes(share_out([(wanted(0, 5), [1])], 4)) == [5]
    assert share_out([], 4) == []


def test_what_one_task_takes_stays_together() -> None:
    ranges = [(wanted(number, size), [task]) for number, size, task in ((0, 9, 1), (1, 1, 2), (2, 9, 1), (3, 5, 2))]
    assert sizes(share_out(ranges, 4)) == [6, 18]


def test_every_range_keeps_its_tasks() -> None:
    ranges = [(wanted(number, number + 1), [number, number + 10]) for number in range(7)]
    shared = [entry for share in share_out(ranges, 3) for entry in share]
    assert sorted(shared, key=lambda entry: entry[0].partition) == ranges


def test_a_source_has_one_broker_though_functions_are_among_its_settings() -> None:
    def token(config: str) -> tuple[str, float]:
        return "t", 0.0

    config = StreamsConfig(application_id="app", bootstrap_servers="localhost:1", kafka={"oauth_cb": token})
    arrived = SourceSettings.loads(settings_of(config).dumps())

    assert arrived.broker() is arrived.broker()


def test_a_reader_travels_without_its_connections() -> None:
    config = StreamsConfig(application_id="app", bootstrap_servers="localhost:1")
    reader = TopicsReader(settings_of(config))
    assert reader._planner is reader._planner

    arrived = pickle.loads(pickle.dumps(reader))

    assert arrived._settings == reader._settings
    assert list(vars(arrived)) == ["_settings"]


def test_the_source_does_not_import_what_the_planner_does_not_need() -> None:
    """Spark starts several processes for a query that import nothing else of Headrace."""
    told = "import sys, headrace.spark.source; print('headrace.config' in sys.modules, 'pydantic' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False"]
