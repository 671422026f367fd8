"""Find the error to raise when a producer fails to write a batch."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import readable_batch_error, readable_error
from headrace.errors import StreamsError, SupersededError, UnavailableError

_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
_REPLACED = (KafkaError.FENCED_INSTANCE_ID,)
_FORGOTTEN = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.INVALID_PRODUCER_ID_MAPPING)
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_REFUSED = re.compile(r"ProduceRequest for (\S+) \[\d+\] ")  # how a transaction reports that records were refused


class ProducerErrors:
    """What a producer has written in a batch, which record was refused first, and what that means for the run."""

    def __init__(self, connection: Connection, application_id: str, limit_ms: int) -> None:
        self.is_latest: Callable[[], bool] = lambda: True
        """Tells whether no later run of the application has begun."""
        self.refused: KafkaError | None = None
        """Why the first record was refused."""
        self.written: set[tuple[str, int]] = set()
        """The topics and partitions that were written to."""
        self._refused_topic: str | None = None
        self._connection = connection
        self._application_id = application_id
        self._limit_ms = limit_ms
        self._begun = 0.0
        """When the batch began, by the clock: a transaction times out while the machine sleeps."""

    def begin(self) -> None:
        """Begin a batch."""
        self.refused, self._begun = None, time.time()

    def note(self, error: KafkaError | None, message: Message) -> None:
        """Remember a record that was refused. The client calls this as `on_delivery`."""
        if error is not None and error.code() not in _PURGED and self.refused is None:
            self.note_refused(error, message.topic())

    def note_refused(self, error: KafkaError, topic: str | None) -> None:
        """Remember why a record was refused."""
        self.refused, self._refused_topic = error, topic

    def readable(self, problem: KafkaError, producer: Producer) -> Exception:
        """Return the error to raise for a problem. The record that was refused first tells more than what followed."""
        if problem.code() in _REPLACED:
            return superseded_error(self._application_id)
        if any(is_fenced(one) or one.code() in _FORGOTTEN for one in (problem, self.refused) if one is not None):
            return self._fenced_error(problem)
        if self.refused is None:
            self._find_refused(problem, producer)
        if self.refused is None:
            return self.readable_as_a_whole(problem, "write a batch")
        topic = self._refused_topic
        return readable_error(self.refused, self._connection, f"write to topic '{topic}'", topic, "Write")

    def readable_as_a_whole(self, problem: KafkaError, doing: str) -> Exception:
        """Return the error to raise for a problem with the batch as a whole."""
        topics = {topic for topic, _ in self.written}
        return readable_batch_error(problem, self._connection, doing, self._application_id, topics)

    def _find_refused(self, problem: KafkaError, producer: Producer) -> None:
        """Find out why a record was refused, and for which topic, if that was the problem."""
        refused = _REFUSED.match(problem.str())
        if refused is not None:
            self.note_refused(KafkaError(problem.code()), refused[1])
        elif problem.code() == KafkaError._INCONSISTENT:  # from the client itself, which says no more
            with suppress(KafkaException):
                known = producer.list_topics(timeout=self._connection.patience).topics
                for topic, partition in sorted(self.written):
                    if topic not in known:
                        return self.note_refused(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), topic)
                    if partition not in known[topic].partitions:
                        return self.note_refused(KafkaError(KafkaError._UNKNOWN_PARTITION), topic)

    def _fenced_error(self, problem: KafkaError) -> Exception:
        """Return the error for a producer that was fenced, by a newer run or because the broker gave it up."""
        if not self.is_latest():
            return superseded_error(self._application_id)
        if time.time() - self._begun > self._limit_ms / 1000:
            return StreamsError(
                f"application '{self._application_id}': the broker aborted a batch because it was not written within "
                f"{self._limit_ms} ms. To allow more time, set transaction.timeout.ms."
            )
        if problem.code() in _FORGOTTEN:
            return UnavailableError(
                f"application '{self._application_id}': the broker has not heard from it for longer than "
                "session.timeout.ms"
            )
        return superseded_error(self._application_id)


def superseded_error(application_id: str) -> SupersededError:
    """Return the error for a run that is not the latest."""
    return SupersededError(f"application '{application_id}' was started again elsewhere: this one stops")


def is_fenced(problem: KafkaError) -> bool:
    """Tell whether the broker refuses a producer because a later one has its id."""
    return problem.code() in _FENCED or (problem.fatal() and "fenced" in problem.str().lower())
