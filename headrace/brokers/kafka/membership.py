"""An application's consumer group, of which its latest run is the one member.

The member has the application's name: whoever joins under it takes the place of the one before, at once and for good.
"""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.brokers.kafka.batch_producer import STEP
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import explained_in_batch
from headrace.brokers.kafka.patience import Patience
from headrace.brokers.kafka.settings import number
from headrace.errors import HeadraceError

_SESSION_MS = 45_000
"""How long a run may be silent, as for Kafka's own clients. The next run need not wait for that, but others have to."""
_SHORTEST_MS = 6_000
"""The shortest session that a broker allows, unless it was told otherwise."""
_POLL_MS = 86_400_000


def join(connection: Connection, application_id: str, topic: str, session_ms: int = _SESSION_MS) -> Consumer:
    """Become the member; it reads nothing. Its topic is one that is there, for a group must have one."""
    session_ms = number(connection.settings, "session.timeout.ms", session_ms)
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

    def assigned(consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.assign([])
        joined.append(True)

    def refused(error: KafkaError) -> HeadraceError:
        return explained_in_batch(error, connection, doing, application_id, ())

    try:
        group.subscribe([topic], on_assign=assigned)
        while not joined:
            message = group.poll(STEP)
            if message is not None and message.error() is not None:
                raise refused(message.error())
            patience.check(doing)
    except KafkaException as error:
        raise refused(error.args[0]) from None
    return group


def leave_soon(connection: Connection, application_id: str, topic: str) -> None:
    """Take the member's place and be silent: a broker lets a member with a name go only when its session is over."""
    join(connection, application_id, topic, _SHORTEST_MS)
