"""Wait for a broker, with a limit.

librdkafka never stops trying, and reports errors on the side while its client is polled. So these errors are collected,
and a call that waits looks at them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaError

from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.error_messages import LOGIN_FAILED, TLS_FAILED, no_answer_error, readable_error

_DOWN_SECONDS = 10.0
"""How long to wait if no broker can be reached. A broker that restarts is back by then."""


class Patience:
    """Collects the errors of a client's connections, and limits how long to wait. The client gets it as `error_cb`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.last: KafkaError | None = None
        self.renew()

    def __call__(self, error: KafkaError) -> None:
        """Remember an error."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True
        else:
            self.last = error

    def renew(self) -> None:
        """Forget the errors, because the broker has answered."""
        self.last = None
        self._down = False
        self.begin()

    def begin(self) -> None:
        """Begin to wait."""
        self._begin = time.monotonic()

    def check(self, doing: str) -> None:
        """Raise if waiting any longer is useless."""
        self.check_login(doing)
        waited = time.monotonic() - self._begin
        if waited > self._connection.patience or (self._down and waited > _DOWN_SECONDS):
            raise no_answer_error(self._connection, doing, self.last)

    def check_login(self, doing: str) -> None:
        """Raise if the broker rejects this client's login or connection."""
        if self.last is not None and self.last.code() in (*LOGIN_FAILED, *TLS_FAILED):
            raise readable_error(self.last, self._connection, doing)


def returns_in_time(call: Callable[[], object], seconds: float) -> bool:
    """Make a call in a thread of its own, and tell whether it returned in time. Raise what it raises."""
    raised: list[BaseException] = []
    returned = threading.Event()

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)
        finally:
            returned.set()

    threading.Thread(target=run, name="headrace-call", daemon=True).start()
    if not returned.wait(seconds):
        return False
    if raised:
        raise raised[0]
    return True
