"""The supervisor: keeps an application's query running, also after failures, until the application is closed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from headrace.application.folder import ApplicationFolder
from headrace.application.preparation import prepare
from headrace.application.states import ExceptionHandler, StreamsState, StreamThreadExceptionResponse
from headrace.brokers.connecting import shared_broker
from headrace.brokers.engine import EngineBroker
from headrace.config import StreamsConfig
from headrace.engine.metrics import Metrics
from headrace.engine.topics import NoTopicYetError, topics_changed
from headrace.errors import HeadraceError, RecordsGoneError, StreamsError, SupersededError, UnavailableError
from headrace.spark.query import QuerySetup, RunningQuery, start_query
from headrace.spark.runtime.error_messages import is_of_a_shared_log, readable
from headrace.topology.topology import Topology

_log = logging.getLogger("headrace")
_LOOK_SECONDS = 3.0
"""How long between two checks for new topics and partitions."""
_BROKER_PAUSE = 1.0
_SOON_SECONDS, _SHORTEST_PAUSE, _LONGEST_PAUSE = 30.0, 0.1, 30.0


class _OlderRunError(StreamsError):
    """An older run noted a batch in the checkpoint before it was refused."""


class Supervisor:
    """Starts a query, and starts it again if it ended for a temporary reason."""

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig,
        folder: ApplicationFolder,
        metrics: Metrics,
        handler: ExceptionHandler,
        set_state: Callable[[StreamsState], None],
        *,
        until_caught_up: bool,
    ) -> None:
        self._topology, self._config, self._folder, self._metrics = topology, config, folder, metrics
        self._handler, self._set_state = handler, set_state
        self._until_caught_up = until_caught_up
        self.closing = threading.Event()
        self.error: BaseException | None = None
        """The error that ended the application, if one did."""
        self.setup: QuerySetup | None = None
        self.started_from: dict[str, dict[int, int]] = {}
        """The offsets at which reading began, as far as they were known before the first batch."""
        self._running: RunningQuery | None = None
        self._is_outdated = False
        self._away_since: tuple[float, float] | None = None
        self._launched, self._pause = 0.0, _SHORTEST_PAUSE
        self._told = ""

    @property
    def broker(self) -> EngineBroker:
        """The application's broker."""
        return shared_broker(self._config.bootstrap_servers, self._config.kafka)

    def start(self) -> None:
        """Start the query for the first time. Raise if it does not start, except to wait for a first topic."""
        try:
            self._set_state(StreamsState.REBALANCING)
            self._launch(anew=True)
            self._set_state(StreamsState.RUNNING)
        except BaseException as error:
            if not isinstance(error, NoTopicYetError) or self._until_caught_up:
                self._set_state(StreamsState.ERROR)
                self._folder.unlock()
                raise readable(error) from error.__cause__
            self._is_outdated = True

    def watch(self) -> None:
        """Watch the query until it ends for good."""
        try:
            self._end(self._keep_running())
        except BaseException as error:
            self._end(readable(error))

    # -- starting -----------------------------------------------------------------------------------------------------

    def _launch(self, *, anew: bool) -> None:
        """Start the query. With `anew`, first check the application against its topics and its checkpoint."""
        self._launched = time.monotonic()
        if anew:
            self.setup = prepare(self._topology, self._config, self._folder)
            self.started_from = self._beginnings(self.setup)
            self._is_outdated = False
        assert self.setup is not None
        self._running = start_query(self.setup, self._metrics, until_caught_up=self._until_caught_up)

    def _beginnings(self, setup: QuerySetup) -> dict[str, dict[int, int]]:
        known = self.broker.positions(self._config.application_id)
        for topic, reset in setup.read_plan.resets.items():
            if reset == "latest":
                known[topic] = {**self.broker.end_offsets(topic), **known.get(topic, {})}
        return known

    def _keep_running(self) -> BaseException | None:
        """Start the query again as often as needed. Return the error that ended it for good, if one did."""
        error: BaseException | None = None
        while True:
            error = self._wait() if self._running is not None else error
            if self.closing.is_set() and isinstance(error, UnavailableError):
                _log.warning("%s: closed without an answer: %s", self._config.application_id, error)
                error = None  # the next start does the rest
            if self.closing.is_set() or not (error or self._is_outdated or self._is_fed_by_itself()):
                return error
            if error is not None and not self._goes_on_after(error):
                return error
            if self.closing.is_set():  # while it waited to start again
                return None
            self._set_state(StreamsState.REBALANCING)
            self._end_run()
            error = self._restart()

    def _restart(self) -> BaseException | None:
        """Start the query again. If it did not start and the reason may be temporary, return the error."""
        try:
            if self._is_outdated and self.setup is not None:
                _log.info("%s: there are more topics or partitions to read", self._config.application_id)
            self._launch(anew=self._is_outdated)
        except NoTopicYetError as missing:
            if self._told != str(missing):
                self._told = str(missing)
                _log.warning("%s: waiting for a topic: %s", self._config.application_id, missing)
            self.closing.wait(_LOOK_SECONDS)
            return None
        except Exception as failed:  # the broker may still be down
            return readable(failed)
        if not self.closing.is_set():
            self._set_state(StreamsState.RUNNING)
        return None

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _wait(self) -> BaseException | None:
        """Wait until the query ends or must be stopped. Return its error if it failed."""
        running = self._running
        assert running is not None
        looked = time.monotonic()
        while running.query.isActive and not self.closing.is_set():
            with suppress(Exception):  # the query's own exception is read below
                running.query.awaitTermination(1)
            if not self._until_caught_up and time.monotonic() - looked > _LOOK_SECONDS:
                with suppress(HeadraceError):  # the broker does not answer: the query will notice that, too
                    if self._has_new_topics():
                        break
                looked = time.monotonic()
        if running.query.isActive:
            running.stop()
        failed = running.sink.failure or running.query.exception()
        if failed is not None and is_of_a_shared_log(failed):
            return self._shared_with_another(running)
        return None if failed is None else readable(failed)

    def _has_new_topics(self) -> bool:
        assert self.setup is not None
        self._is_outdated = topics_changed(self.setup.application, self.broker)
        return self._is_outdated

    def _shared_with_another(self, running: RunningQuery) -> HeadraceError | None:
        """Return the error to report if another run noted a batch in the checkpoint before this one did."""
        try:
            latest = self.broker.run_number(self._config.application_id)
        except HeadraceError as error:
            return error
        mine = running.run.number
        if latest == mine:
            said = "an older run that seemed to be dead has noted a batch in the checkpoint"
            return None if self.closing.is_set() else _OlderRunError(said)
        happened = f"started again elsewhere (run {latest}, this is run {mine})" if latest else "forgotten"
        return SupersededError(f"application '{self._config.application_id}' was {happened}: this one stops")

    def _is_fed_by_itself(self) -> bool:
        """Tell whether there are unread records that the application itself has written."""
        if self.setup is None or not self._until_caught_up:
            return False
        dynamic = any(callable(sink.topic) for sink in self._topology.sinks())
        written = self._topology.written_topics()
        mine = [topic for topic in self.setup.application.plan.input_topics() if dynamic or topic in written]
        done = self._metrics.positions()
        for topic in mine:
            known = {**self.started_from.get(topic, {}), **done.get(topic, {})}
            if any(end > known.get(number, 0) for number, end in self.broker.end_offsets(topic).items()):
                return True
        return False

    # -- after a failure ----------------------------------------------------------------------------------------------

    def _goes_on_after(self, error: BaseException) -> bool:
        """Decide whether to start again after an error; if so, wait a while first."""
        if isinstance(error, SupersededError):
            return False  # a new start would stop the other one, and so on for ever
        # Records were deleted while they were being read. Try the batch again with those that are left, and log it.
        are_given_up = isinstance(error, RecordsGoneError) and self._config.on_data_loss == "continue"
        # The older run can do nothing more. Continue from the batch that it noted.
        if are_given_up or isinstance(error, _OlderRunError):
            return self._wait_before_restart("starting again", error, _SHORTEST_PAUSE)
        if isinstance(error, UnavailableError) and self._still_waits():
            return self._wait_before_restart("waiting for the broker", error, _BROKER_PAUSE)
        response = self._handler(error)
        if not isinstance(response, StreamThreadExceptionResponse):
            known = ", ".join(f"StreamThreadExceptionResponse.{one.name}" for one in StreamThreadExceptionResponse)
            raise StreamsError(f"the uncaught exception handler must return one of {known}, got {response!r}")
        if response is not StreamThreadExceptionResponse.REPLACE_THREAD:
            return False
        # After a start that failed at once, wait longer each time: do not call a broker that is down all the time.
        soon = time.monotonic() - self._launched < _SOON_SECONDS
        self._pause = min(self._pause * 2, _LONGEST_PAUSE) if soon else _SHORTEST_PAUSE
        return self._wait_before_restart("starting again after", error, self._pause)

    def _wait_before_restart(self, doing: str, error: BaseException, seconds: float) -> bool:
        _log.warning("%s: %s: %s", self._config.application_id, doing, error)
        self.closing.wait(seconds)
        return True

    def _still_waits(self) -> bool:
        """Tell whether the broker has been away for less than `task_timeout_ms`."""
        done, now = self._metrics.batches(), time.monotonic()
        if self._away_since is None or self._away_since[0] != done:
            self._away_since = done, now
        return (now - self._away_since[1]) * 1000 < self._config.task_timeout_ms

    # -- ending -------------------------------------------------------------------------------------------------------

    def _end(self, error: BaseException | None) -> None:
        self.error = error
        if error is None and self._until_caught_up and self.setup is not None:
            outputs = set(self._topology.written_topics()) - self._topology.internal_topics.keys()
            with suppress(HeadraceError):  # the outputs are committed even so
                self.broker.wait_until_visible(outputs)
        self._end_run()
        self._folder.unlock()
        if error is not None:
            self._set_state(StreamsState.PENDING_ERROR)
            self._set_state(StreamsState.ERROR)
        else:
            self._set_state(StreamsState.PENDING_SHUTDOWN)
            self._set_state(StreamsState.NOT_RUNNING)

    def _end_run(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            self.broker.end_run(running.run)
