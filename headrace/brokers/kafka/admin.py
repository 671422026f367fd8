"""A client that manages topics, and answers within a time limit."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import NO_ANSWER, no_answer_error, readable_error
from headrace.brokers.kafka.patience import Patience

_STEP = 0.1  # seconds between two looks at a client's errors


class Admin:
    """A client that the threads of a process share."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._patience = Patience(connection)
        self.client = connection.admin(error_cb=self._patience)

    def wait(self, future: Future[Any], doing: str, topic: str | None = None, operation: str = "") -> Any:
        """Return the result of a call, or raise a readable error."""
        try:
            return self.answer(future, doing)
        except KafkaException as error:
            raise readable_error(error.args[0], self.connection, doing, topic, operation) from None

    def answer(self, future: Future[Any], doing: str) -> Any:
        """Return the result of a call, or raise Kafka's error. Raise a readable error only if there is no answer."""
        self._patience.begin()
        while True:
            try:
                result = future.result(_STEP)
            except TimeoutError:
                self.client.poll(0)
                self._patience.check(doing)
            except KafkaException as error:
                if error.args[0].code() not in NO_ANSWER:
                    raise
                self.client.poll(0)
                raise no_answer_error(self.connection, doing, self._patience.last or error.args[0]) from None
            else:
                self._patience.renew()
                return result
