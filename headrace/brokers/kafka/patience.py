"""Waiting for a broker, with a limit.

librdkafka goes on trying whatever happens, and tells of errors on the side, while its client is polled. So these are
collected, and a call that waits looks at them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaError

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import NOT_LET_IN, NOT_SECURE, explained, no_answer

_DOWN_SECONDS = 10.0
"""How long to wait while no broker can be reached: one that restarts comes back, one that is not there does not."""


class Patience:
    """The errors of one client's connections, and how long they are borne; give it to the client as `error_cb`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.last: KafkaError | None = None
        self.renew()

    def __call__(self, error: KafkaError) -> None:
        """Take note of an error."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True
        else:
            self.last = error

    def renew(self) -> None:
        """Forget the errors: the broker was heard of."""
        self.last = None
        self._down = False
        self.begin()

    def begin(self) -> None:
        """Begin to wait."""
        self._begin = time.monotonic()

    def check(self, doing: str) -> None:
        """Raise when there is no use in waiting any longer."""
        self.check_let_in(doing)
        waited = time.monotonic() - self._begin
        if waited > self._connection.patience or (self._down and waited > _DOWN_SECONDS):
            raise no_answer(self._connection, doing, self.last)

    def check_let_in(self, doing: str) -> None:
        """Raise when there is a broker, but it does not let this client in."""
        if self.last is not None and self.last.code() in (*NOT_LET_IN, *NOT_SECURE):
            raise explained(self.last, self._connection, doing)


def answered(call: Callable[[], object], seconds: float) -> bool:
    """Call, in a thread of its own, and tell whether it came back in time; what it raises is raised here."""
    raised: list[BaseException] = []
    is_back = threading.Event()

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)
        finally:
            is_back.set()

    threading.Thread(target=run, name="headrace-call", daemon=True).start()
    if not is_back.wait(seconds):
        return False
    if raised:
        raise raised[0]
    return True
