"""The topics that an application names: create those that are missing, and notice new ones while it runs.

Tests: `tests/application/test_streams.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.brokers.engine import EngineBroker
from headrace.config import StreamsConfig
from headrace.engine.application import Application
from headrace.errors import TopicError
from headrace.topology.names import changelog_topic, commits_topic
from headrace.topology.nodes import SourceNode
from headrace.topology.topology import Topology


class NoTopicYetError(TopicError):
    """No topic matches a pattern yet. An application that keeps running waits for one."""


def create_topics(topology: Topology, config: StreamsConfig, broker: EngineBroker) -> dict[str, int]:
    """Create the missing topics that the application names. Return the number of partitions of all topics."""
    wanted = dict.fromkeys(topology.named_topics(), config.num_partitions)
    broker.ensure_topics(wanted, config.replication_factor)
    known = known_topics(topology, config, broker)
    for node in _patterns(topology):
        if not any(map(node.reads, known)):
            assert node.pattern is not None
            raise NoTopicYetError(
                f"source '{node.name}': no topic matches the pattern '{node.pattern.pattern}'. Create one that does"
            )
    return known


def known_topics(topology: Topology, config: StreamsConfig, broker: EngineBroker) -> dict[str, int]:
    """Return the number of partitions of all topics, except the application's internal ones: they match no pattern."""
    named = {topic for source in topology.sources() for topic in source.topics}
    changelogs = {changelog_topic(config.application_id, store) for store in topology.stores}
    own = {commits_topic(config.application_id), *changelogs} - named
    return {topic: count for topic, count in broker.partition_counts().items() if topic not in own}


def topics_changed(application: Application, broker: EngineBroker) -> bool:
    """Tell whether topics or partitions were added since the application was planned."""
    topology, plan = application.topology, application.plan
    known = known_topics(topology, application.config, broker)
    matching = {topic for topic in known if any(node.reads(topic) for node in _patterns(topology))}
    planned: Mapping[str, int] = {topic: plan.partitions[topic] for topic in plan.partitions.keys() - plan.internal}
    return bool(matching - set(plan.input_topics())) or any(
        known[topic] != count for topic, count in planned.items() if topic in known
    )


def _patterns(topology: Topology) -> list[SourceNode]:
    return [source for source in topology.sources() if source.pattern is not None]
