"""An application's consumer group. Its only member is the latest run.

The member has the application's id as its name. A run that joins under this name replaces the earlier run, at once and
for good.
"""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.brokers.kafka.batch_producer import STEP
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import readable_batch_error
from headrace.brokers.kafka.patience import Patience
from headrace.brokers.kafka.settings import whole_number
from headrace.errors import HeadraceError

_SESSION_MS = 45_000
"""How long a run may be silent, as for Kafka's own clients. The next run need not wait so long; other tools must."""
_SHORTEST_MS = 6_000
"""The shortest session that a broker allows, unless it is configured otherwise."""
_POLL_MS = 86_400_000


def join(connection: Connection, application_id: str, topic: str, session_ms: int = _SESSION_MS) -> Consumer:
    """Become the member. It reads nothing, but a group must have a topic, so it gets an existing one."""
    session_ms = whole_number(connection.settings, "session.timeout.ms", session_ms)
    patience, doing = Patience(connection), f"join the group '{application_id}'"
    group = connection.consumer(
        **{
            "group.id": application_id,
            "group.instance.id": application_id,
            "session.timeout.ms": session_ms,
            "max.poll.interval.ms": max(_POLL_MS, session_ms),
            "error_cb": patience,
        }
    )
    joined: list[bool] = []

    def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.assign([])
        joined.append(True)

    def join_error(error: KafkaError) -> HeadraceError:
        return readable_batch_error(error, connection, doing, application_id, ())

    try:
        group.subscribe([topic], on_assign=assigned)
        while not joined:
            message = group.poll(STEP)
            if message is not None and message.error() is not None:
                raise join_error(message.error())
            patience.check(doing)
    except KafkaException as error:
        raise join_error(error.args[0]) from None
    return group


def leave_soon(connection: Connection, application_id: str, topic: str) -> None:
    """Replace the member and stay silent: a broker removes a member with a name only after its session."""
    join(connection, application_id, topic, _SHORTEST_MS)
