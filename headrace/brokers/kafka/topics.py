"""Topics on Kafka: create, find and delete them, and find where their partitions begin and end."""

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
from headrace.brokers.kafka.error_messages import NO_LEADER, UNKNOWN_TOPIC, readable_error
from headrace.brokers.kafka.partition_offsets import PartitionId
from headrace.errors import StreamsError, TopicError, UnavailableError, UnknownTopicError

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka's own topics."""
_POLL_SECONDS = 0.02
_SHOWN = 10  # topics in an error message


class Topic(NamedTuple):
    """A topic as the cluster describes it."""

    name: str
    id: str
    partitions: int


def all_topics(admin: Admin) -> dict[str, TopicInfo]:
    """Return all topics that this client may see, by name."""
    return _with_settings(admin, partition_counts(admin))


def find_topic(admin: Admin, name: str, operation: str = "Describe") -> Topic:
    """Return a topic. If it does not exist, raise a TopicError that names existing topics.

    The operation says what the topic is wanted for, and which ACL may be missing.
    """
    found = look_up_topic(admin, name, operation)
    if found is None:
        known = sorted(partition_counts(admin))
        shown = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
        raise UnknownTopicError(f"there is no topic '{name}' at {admin.connection.address} (topics: {shown or 'none'})")
    return found


def still_exists(admin: Admin, topic: Topic) -> bool:
    """Tell whether a topic still exists. Another topic of the same name does not count."""
    found = look_up_topic(admin, topic.name)
    return found is not None and found.id == topic.id


def create_topic(
    admin: Admin, wanted: TopicInfo, *, replication_factor: int = -1, settings: Mapping[str, str] | None = None
) -> TopicInfo:
    """Create a topic and wait until it shows. With -1 the broker chooses the number of replicas.

    The result has the settings that the broker has added.
    """
    check_topic(wanted.name, wanted.partitions, wanted.retention_ms)
    config = {**_settings(wanted), **(settings or {})}
    new = NewTopic(wanted.name, wanted.partitions, replication_factor, config=config)
    asked = admin.client.create_topics([new])
    admin.wait(asked[wanted.name], f"create topic '{wanted.name}'", wanted.name, "Create")
    _wait_until(admin, wanted.name, exists=True)
    return _with_settings(admin, {wanted.name: wanted.partitions})[wanted.name]


def ensure_topics(
    admin: Admin, wanted: Iterable[TopicInfo], replication_factor: int, settings: Mapping[str, str] | None = None
) -> None:
    """Create the missing topics. Leave existing topics as they are."""
    known = partition_counts(admin)
    for info in wanted:
        if info.name not in known:
            try:
                create_topic(admin, info, replication_factor=replication_factor, settings=settings)
            except (TopicError, UnavailableError):  # another process was faster, or this client may not see the topic
                if look_up_topic(admin, info.name, "Read or Write, or Create if there is none,") is None:
                    raise


def delete_topic(admin: Admin, name: str) -> None:
    """Delete a topic and wait until it is gone. Raise a TopicError if it does not exist."""
    find_topic(admin, name, "Delete")
    asked = admin.client.delete_topics([name])
    admin.wait(asked[name], f"delete topic '{name}'", name, "Delete")
    _wait_until(admin, name, exists=False)


def end_offsets(admin: Admin, topic: Topic, *, read_committed: bool = False) -> dict[int, int]:
    """Return where each partition ends; with `read_committed`, before its first open transaction."""
    level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    return _offsets(admin, topic, OffsetSpec.latest(), level)


def first_offsets(admin: Admin, topic: Topic) -> dict[int, int]:
    """Return the first offset of each partition. Retention may have deleted earlier records."""
    return _offsets(admin, topic, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)


def _offsets(admin: Admin, topic: Topic, spec: OffsetSpec, level: IsolationLevel) -> dict[int, int]:
    wanted = [(topic.name, partition) for partition in range(topic.partitions)]
    return {partition: offset for (_, partition), (offset, _) in list_offsets(admin, wanted, spec, level).items()}


def list_offsets(
    admin: Admin, partitions: Iterable[PartitionId], spec: OffsetSpec, level: IsolationLevel
) -> dict[PartitionId, tuple[int, int]]:
    """Return an offset and its timestamp for each partition, in order. Wait while a partition has no leader."""
    wanted = {TopicPartition(*partition): spec for partition in sorted(partitions)}
    if not wanted:
        return {}
    doing = f"find the offsets of topic '{next(iter(wanted)).topic}'"
    end = time.monotonic() + admin.connection.patience
    while True:
        asked = admin.client.list_offsets(wanted, isolation_level=level)
        found, failed = {}, None
        for partition, future in asked.items():
            try:
                answer = admin.answer(future, doing)
            except KafkaException as error:
                failed = partition.topic, error.args[0]
            else:
                found[partition.topic, partition.partition] = answer.offset, answer.timestamp
                if answer.offset == OFFSET_INVALID:  # the client's answer if the broker died before it answered
                    failed = partition.topic, KafkaError(KafkaError._NOENT)
        if failed is None:
            return dict(sorted(found.items()))
        topic, problem = failed
        if problem.code() in NO_LEADER and look_up_topic(admin, topic) is None:
            raise UnknownTopicError(f"there is no topic '{topic}' at {admin.connection.address}")
        if problem.code() not in NO_LEADER or time.monotonic() > end:
            raise readable_error(problem, admin.connection, f"find the offsets of topic '{topic}'", topic, "Describe")
        time.sleep(_POLL_SECONDS)


def partition_counts(admin: Admin) -> dict[str, int]:
    """Return how many partitions each topic has that this client may see."""
    doing = "list the topics"
    # `list_topics` waits without looking at errors. So make another call first.
    admin.wait(admin.client.describe_cluster(), doing)
    try:
        metadata = admin.client.list_topics(timeout=admin.connection.patience)
    except KafkaException as error:
        raise readable_error(error.args[0], admin.connection, doing) from None
    return {name: len(found.partitions) for name, found in metadata.topics.items() if name not in INTERNAL}


def _with_settings(admin: Admin, counts: Mapping[str, int]) -> dict[str, TopicInfo]:
    """Return topics with their settings. A topic whose settings this client may not see seems to have none."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in counts]
    asked = admin.client.describe_configs(resources) if resources else {}
    settings: dict[str, dict[str, str]] = {}
    for resource, future in asked.items():
        with suppress(TopicError):  # not allowed, or deleted in the meantime
            entries = admin.wait(future, "read the settings of topics", resource.name, "DescribeConfigs")
            settings[resource.name] = {name: entry.value for name, entry in entries.items()}
    return {name: _info(name, count, settings.get(name, {})) for name, count in sorted(counts.items())}


def look_up_topic(admin: Admin, name: str, operation: str = "Describe") -> Topic | None:
    """Return a topic, None if it does not exist."""
    if not name:
        return None
    # Other requests for a topic that does not exist make some brokers create it.
    doing, asked = f"find topic '{name}'", admin.client.describe_topics(TopicCollection([str(name)]))
    try:
        found = admin.answer(asked[str(name)], doing)
    except KafkaException as error:
        if error.args[0].code() in UNKNOWN_TOPIC:
            return None
        raise readable_error(error.args[0], admin.connection, doing, name, operation) from None
    return Topic(found.name, str(found.topic_id), len(found.partitions))


def _wait_until(admin: Admin, name: str, *, exists: bool) -> None:
    """Wait until the broker that answers knows that a topic was created or deleted."""
    end = time.monotonic() + admin.connection.patience
    with suppress(TopicError):  # this client may create or delete the topic, but not see it
        while True:
            is_late = time.monotonic() > end
            try:
                if (look_up_topic(admin, name) is not None) == exists:
                    return
            except UnavailableError:  # or not ready yet
                if is_late:
                    raise
            if is_late:
                done = "created" if exists else "deleted"
                raise StreamsError(f"topic '{name}' was {done}, but {admin.connection.address} does not show it yet")
            time.sleep(_POLL_SECONDS)


def _info(name: str, partitions: int, settings: Mapping[str, str]) -> TopicInfo:
    policies = settings.get("cleanup.policy", "").split(",")
    retention = int(settings.get("retention.ms", -1)) if "delete" in policies else -1
    lag = int(settings.get("min.compaction.lag.ms", 0)) if "compact" in policies else 0
    return TopicInfo(name, partitions, "compact" in policies, retention if retention >= 0 else None, lag or None)


def _settings(wanted: TopicInfo) -> dict[str, str]:
    """Return the settings for a topic's retention and compaction. The broker decides the others."""
    result = {}
    policies = ["compact"] if wanted.compact else []
    if wanted.retention_ms is not None:
        policies.append("delete")
        result["retention.ms"] = str(wanted.retention_ms)
    if policies:
        result["cleanup.policy"] = ",".join(policies)
    if wanted.min_compaction_lag_ms is not None:
        result["min.compaction.lag.ms"] = str(wanted.min_compaction_lag_ms)
    return result
