"""Kafka's errors in readable words: what was attempted, where, and what to check."""

from __future__ import annotations

import re
from collections.abc import Iterable

from confluent_kafka import KafkaError

from headrace.brokers.kafka.connection import Connection
from headrace.errors import HeadraceError, StreamsError, TopicError, UnavailableError, UnknownTopicError

LOGIN_FAILED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
TLS_FAILED = (KafkaError._SSL,)
NOT_ALLOWED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._MSG_TIMED_OUT)
NO_LEADER = (  # for a moment: the topic is new, or a broker has stopped
    KafkaError._NOENT,  # of any partition
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
NOT_READY = (  # for a while: the cluster is starting, moves partitions or groups, or has too few brokers
    *NO_LEADER,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.CONCURRENT_TRANSACTIONS,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.REBOOTSTRAP_REQUIRED,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError._DESTROY_BROKER,
    KafkaError._FAIL,
    KafkaError._NODE_UPDATE,
    KafkaError._OUTDATED,
    KafkaError._RESOLVE,
    KafkaError._RETRY,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._UNKNOWN_BROKER,
    KafkaError._WAIT_CACHE,
    KafkaError._WAIT_COORD,
)
UNKNOWN_TOPIC = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.TOPIC_EXCEPTION,  # no topic can have this name
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
_HINTS = {
    KafkaError.INVALID_RECORD: "Every record of a compacted topic needs a key",
    KafkaError.INVALID_TIMESTAMP: "The topic's settings message.timestamp.*.max.ms limit how far it may be from now",
    KafkaError.MSG_SIZE_TOO_LARGE: "The topic's max.message.bytes and the client's message.max.bytes limit the size",
}
_BROKER_PREFIX = re.compile(r"^(\w+://)?\S+/(bootstrap|\d+): ")
_STATE_SUFFIX = re.compile(r" \(after \d+ms in state .*\)$")


def readable_error(
    error: KafkaError, connection: Connection, doing: str, topic: str | None = None, operation: str = ""
) -> HeadraceError:
    """Return the error to raise. The operation is the one that an ACL would have to allow."""
    where, code, text = f"cannot {doing} at {connection.address}", error.code(), _text_of(error, connection)
    if code in LOGIN_FAILED:
        check = "Check security.protocol and the settings that begin with 'sasl.'"
        return StreamsError(f"{where}: the broker did not accept the login ({text}). {check}")
    if code in TLS_FAILED:
        check = "Check security.protocol and the settings that begin with 'ssl.'"
        return StreamsError(f"{where}: there is no secure connection ({text}). {check}")
    if code in NOT_ALLOWED:
        what = "the cluster" if topic is None else f"topic '{topic}'"
        return not_allowed_error(connection, where, f"{operation} on {what}")
    if code in NO_ANSWER:
        return no_answer_error(connection, doing, error)
    if code in NOT_READY:
        return UnavailableError(f"{where}: the cluster is not ready ({text})")
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return TopicError(f"topic '{topic}' already exists at {connection.address}")
    if code == KafkaError._UNKNOWN_PARTITION and topic is not None:
        return TopicError(f"{where}: the partition does not exist")
    if code in UNKNOWN_TOPIC and topic is not None:
        return UnknownTopicError(f"there is no topic '{topic}' at {connection.address}")
    return TopicError(f"{where}: {text}" + (f". {_HINTS[code]}" if code in _HINTS else ""))


def readable_batch_error(
    error: KafkaError, connection: Connection, doing: str, application_id: str, written: Iterable[str]
) -> HeadraceError:
    """Return the error to raise if a batch of an application failed as a whole. It names a missing ACL."""
    own_id = f"Write on transactional ids that begin with '{application_id}'"
    needed = {
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: own_id,
        KafkaError.GROUP_AUTHORIZATION_FAILED: f"Read on group '{application_id}'",
        KafkaError.TOPIC_AUTHORIZATION_FAILED: " and ".join(f"Write on topic '{topic}'" for topic in sorted(written)),
    }
    if error.code() in needed:
        return not_allowed_error(connection, f"cannot {doing} at {connection.address}", needed[error.code()])
    return readable_error(error, connection, doing)


def not_allowed_error(connection: Connection, where: str, needed: str) -> TopicError:
    """Return the error for a client that lacks an ACL."""
    user = connection.settings.get("sasl.username")
    who = f"user {user!r}" if user else "this client"
    return TopicError(f"{where}: {who} is not allowed to. This needs an ACL that allows {needed}")


def no_answer_error(connection: Connection, doing: str, last: KafkaError | None) -> UnavailableError:
    """Return the error for a broker that does not exist or does not answer. The last error may tell why."""
    why = "" if last is None else f" ({_text_of(last, connection)})"
    return UnavailableError(
        f"cannot {doing}: no answer from {connection.address}{why}. Check the address, that the broker runs, and "
        "security.protocol"
    )


def _text_of(error: KafkaError, connection: Connection) -> str:
    return connection.without_secrets(_STATE_SUFFIX.sub("", _BROKER_PREFIX.sub("", error.str()))).rstrip(".")
