"""Topics on Kafka: make, find, delete, and where their partitions begin and end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, NewTopic, OffsetSpec, ResourceType

from headrace.brokers.broker import TopicInfo
from headrace.brokers.checking import check_topic
from headrace.brokers.kafka.admin import Admin
from headrace.brokers.kafka.error_messages import NO_LEADER, UNKNOWN_TOPIC, explained
from headrace.errors import StreamsError, TopicError, UnavailableError, UnknownTopicError

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics of Kafka itself."""
_POLL_SECONDS = 0.02
_SHOWN = 10


class Topic(NamedTuple):
    """A topic as the cluster knows it."""

    name: str
    id: str
    partitions: int


def all_topics(admin: Admin) -> dict[str, TopicInfo]:
    """Return all topics that may be seen, by name."""
    return _with_rules(admin, partition_counts(admin))


def find_topic(admin: Admin, name: str, operation: str = "Describe") -> Topic:
    """Return a topic, or raise a TopicError that names those that there are; the operation is what it is wanted for."""
    found = described(admin, name, operation)
    if found is None:
        known = sorted(partition_counts(admin))
        shown = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
        raise UnknownTopicError(f"there is no topic '{name}' at {admin.connection.address} (topics: {shown or 'none'})")
    return found


def is_there(admin: Admin, topic: Topic) -> bool:
    """Tell whether a topic is still there, and no other one of its name."""
    found = described(admin, topic.name)
    return found is not None and found.id == topic.id


def create_topic(
    admin: Admin, wanted: TopicInfo, *, replication_factor: int = -1, settings: Mapping[str, str] | None = None
) -> TopicInfo:
    """Create a topic and wait until it is there; -1 leaves the number of replicas to the broker.

    What is returned has the rules that the broker has added.
    """
    check_topic(wanted.name, wanted.partitions, wanted.retention_ms)
    config = {**_rules(wanted), **(settings or {})}
    new = NewTopic(wanted.name, wanted.partitions, replication_factor, config=config)
    asked = admin.client.create_topics([new])
    admin.wait(asked[wanted.name], f"create topic '{wanted.name}'", wanted.name, "Create")
    _wait_until(admin, wanted.name, there=True)
    return _with_rules(admin, {wanted.name: wanted.partitions})[wanted.name]


def delete_topic(admin: Admin, name: str) -> None:
    """Delete a topic and wait until it is gone; raise a TopicError when there is none."""
    find_topic(admin, name, "Delete")
    asked = admin.client.delete_topics([name])
    admin.wait(asked[name], f"delete topic '{name}'", name, "Delete")
    _wait_until(admin, name, there=False)


def end_offsets(admin: Admin, topic: Topic, *, read_committed: bool = False) -> dict[int, int]:
    """Return where each partition ends; for those who read what is committed, before the first open transaction."""
    level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    return _offsets(admin, topic, OffsetSpec.latest(), level)


def first_offsets(admin: Admin, topic: Topic) -> dict[int, int]:
    """Return where each partition begins: retention may have deleted what was before."""
    return _offsets(admin, topic, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)


def _offsets(admin: Admin, topic: Topic, spec: OffsetSpec, level: IsolationLevel) -> dict[int, int]:
    places = [(topic.name, partition) for partition in range(topic.partitions)]
    return {partition: offset for (_, partition), (offset, _) in list_offsets(admin, places, spec, level).items()}


def list_offsets(
    admin: Admin, places: Iterable[tuple[str, int]], spec: OffsetSpec, level: IsolationLevel
) -> dict[tuple[str, int], tuple[int, int]]:
    """Return offset and timestamp of partitions, in their order; wait while one of them has no leader."""
    wanted = {TopicPartition(*place): spec for place in sorted(places)}
    if not wanted:
        return {}
    doing = f"find the offsets of topic '{next(iter(wanted)).topic}'"
    end = time.monotonic() + admin.connection.patience
    while True:
        asked = admin.client.list_offsets(wanted, isolation_level=level)
        found, failed = {}, None
        for place, future in asked.items():
            try:
                answer = admin.answer(future, doing)
            except KafkaException as error:
                failed = place.topic, error.args[0]
            else:
                found[place.topic, place.partition] = answer.offset, answer.timestamp
                if answer.offset == OFFSET_INVALID:  # the client's answer when the broker has died over the question
                    failed = place.topic, KafkaError(KafkaError._NOENT)
        if failed is None:
            return {place: found[place] for place in sorted(found)}
        topic, problem = failed
        if problem.code() in NO_LEADER and described(admin, topic) is None:
            raise UnknownTopicError(f"there is no topic '{topic}' at {admin.connection.address}")
        if problem.code() not in NO_LEADER or time.monotonic() > end:
            raise explained(problem, admin.connection, f"find the offsets of topic '{topic}'", topic, "Describe")
        time.sleep(_POLL_SECONDS)


def partition_counts(admin: Admin) -> dict[str, int]:
    """Return how many partitions each topic has that may be seen."""
    doing = "list the topics"
    # To list them is a call that waits without looking at errors: ask for something else first.
    admin.wait(admin.client.describe_cluster(), doing)
    try:
        metadata = admin.client.list_topics(timeout=admin.connection.patience)
    except KafkaException as error:
        raise explained(error.args[0], admin.connection, doing) from None
    return {name: len(found.partitions) for name, found in metadata.topics.items() if name not in INTERNAL}


def _with_rules(admin: Admin, counts: Mapping[str, int]) -> dict[str, TopicInfo]:
    """Return what is known of topics; where the settings may not be seen, as if there were no rules."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in counts]
    asked = admin.client.describe_configs(resources) if resources else {}
    rules: dict[str, dict[str, str]] = {}
    for resource, future in asked.items():
        with suppress(TopicError):  # not allowed, or deleted since
            entries = admin.wait(future, "read the settings of topics", resource.name, "DescribeConfigs")
            rules[resource.name] = {name: entry.value for name, entry in entries.items()}
    return {name: _info(name, count, rules.get(name, {})) for name, count in sorted(counts.items())}


def described(admin: Admin, name: str, operation: str = "Describe") -> Topic | None:
    """Return a topic; None when there is none."""
    if not name:
        return None
    # Asked for in another way, a topic that is not there would be created by brokers that do so.
    doing, asked = f"find topic '{name}'", admin.client.describe_topics(TopicCollection([str(name)]))
    try:
        found = admin.answer(asked[str(name)], doing)
    except KafkaException as error:
        if error.args[0].code() in UNKNOWN_TOPIC:
            return None
        raise explained(error.args[0], admin.connection, doing, name, operation) from None
    return Topic(found.name, str(found.topic_id), len(found.partitions))


def _wait_until(admin: Admin, name: str, *, there: bool) -> None:
    """Wait until the broker that is asked knows that a topic was made or deleted."""
    end = time.monotonic() + admin.connection.patience
    with suppress(TopicError):  # it may be made or deleted, but not be seen
        while True:
            is_late = time.monotonic() > end
            try:
                if (described(admin, name) is not None) == there:
                    return
            except UnavailableError:  # or not ready yet
                if is_late:
                    raise
            if is_late:
                done = "made" if there else "deleted"
                raise StreamsError(f"topic '{name}' was {done}, but {admin.connection.address} does not show it yet")
            time.sleep(_POLL_SECONDS)


def _info(name: str, partitions: int, settings: Mapping[str, str]) -> TopicInfo:
    policies = settings.get("cleanup.policy", "").split(",")
    retention = int(settings.get("retention.ms", -1)) if "delete" in policies else -1
    lag = int(settings.get("min.compaction.lag.ms", 0)) if "compact" in policies else 0
    return TopicInfo(name, partitions, "compact" in policies, retention if retention >= 0 else None, lag or None)


def _rules(wanted: TopicInfo) -> dict[str, str]:
    """Return the settings that a topic's rules mean; what is not said is left to the broker."""
    rules = {}
    policies = ["compact"] if wanted.compact else []
    if wanted.retention_ms is not None:
        policies.append("delete")
        rules["retention.ms"] = str(wanted.retention_ms)
    if policies:
        rules["cleanup.policy"] = ",".join(policies)
    if wanted.min_compaction_lag_ms is not None:
        rules["min.compaction.lag.ms"] = str(wanted.min_compaction_lag_ms)
    return rules
