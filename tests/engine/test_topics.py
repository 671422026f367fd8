"""The topics of an application are created, found by pattern, and looked for again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import StreamsBuilder, StreamsConfig, Topology
from headrace.brokers import LocalBroker
from headrace.engine.in_process import InProcessEngine
from headrace.engine.topics import NoTopicYetError, create_topics, topics_changed

CONFIG = StreamsConfig(application_id="app", num_partitions=2)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path / "topics.db") as broker:
        yield broker


def reading(source: str | re.Pattern[str]) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source).group_by(lambda key, value: value).count(store="counts").to_stream().to("out")
    return builder.build()


def test_missing_topics_are_created_but_no_internal_ones(broker: LocalBroker) -> None:
    broker.create_topic("in", 3)

    assert create_topics(reading("in"), CONFIG, broker) == {"in": 3, "out": 2}


def test_a_pattern_needs_a_topic(broker: LocalBroker) -> None:
    with pytest.raises(NoTopicYetError, match="no topic matches the pattern 'in-"):
        create_topics(reading(re.compile("in-.*")), CONFIG, broker)


def test_a_pattern_does_not_match_the_topics_of_the_application_itself(broker: LocalBroker) -> None:
    for name in ("in", "app-commits", "app-counts-changelog"):
        broker.create_topic(name)

    assert create_topics(reading(re.compile("in|app-.*")), CONFIG, broker) == {"in": 1, "out": 2}


def test_a_topic_that_comes_to_match_is_a_change(tmp_path: Path, broker: LocalBroker) -> None:
    broker.create_topic("in-1")
    application = InProcessEngine(reading(re.compile("in-.*")), CONFIG, broker, tmp_path).application
    assert not topics_changed(application, broker)

    broker.create_topic("other")
    assert not topics_changed(application, broker)

    broker.create_topic("in-2")
    assert topics_changed(application, broker)
