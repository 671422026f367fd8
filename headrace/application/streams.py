"""`Streams`: an application's life, from start to close."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.application.folder import ApplicationFolder
from headrace.application.reset import reset_application
from headrace.config import StreamsConfig
from headrace.engine.metrics import Metrics
from headrace.errors import (
    ConfigError,
    HeadraceError,
    RecordsGoneError,
    StreamsError,
    SupersededError,
    TopicError,
    TopologyError,
    UnavailableError,
)
from headrace.spark.runtime.error_messages import is_of_a_shared_log, readable
from headrace.topology.nodes import SinkNode
from headrace.topology.topology import Topology

if TYPE_CHECKING:
    from headrace.spark.query import Prepared, Running

_log = logging.getLogger("headrace")
_LOOK_SECONDS = 3.0
"""Between two looks for new topics and partitions."""
_BROKER_PAUSE = 1.0
_NO_ANSWER_SECONDS = 30.0
"""How long metrics do without a broker that did not answer."""
_SOON_SECONDS, _SHORTEST_PAUSE, _LONGEST_PAUSE = 30.0, 0.1, 30.0


class StreamsState(Enum):
    """What an application is doing, in Kafka Streams' words."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    """Starting, or starting again after a failure."""
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending shutdown"
    """Finishing the running batch."""
    NOT_RUNNING = "not running"
    PENDING_ERROR = "pending error"
    ERROR = "error"

    def is_running(self) -> bool:
        """Tell whether records are processed, or will be in a moment."""
        return self in (StreamsState.REBALANCING, StreamsState.RUNNING)


class StreamThreadExceptionResponse(Enum):
    """What to do about an exception that ended the running query."""

    REPLACE_THREAD = "replace thread"
    """Start again from the last committed batch."""
    SHUTDOWN_CLIENT = "shutdown client"
    SHUTDOWN_APPLICATION = "shutdown application"


StateListener = Callable[[StreamsState, StreamsState], None]
ExceptionHandler = Callable[[BaseException], StreamThreadExceptionResponse]


class _OlderRunError(StreamsError):
    """An older run has noted a batch in the checkpoint, before it was refused."""


class Streams:
    """Runs a topology on Spark.

    An application is known by its `application_id`: started again it goes on where it stopped, whatever stopped it.
    """

    def __init__(self, topology: Topology, config: StreamsConfig) -> None:
        if not isinstance(topology, Topology):
            raise TopologyError(
                f"Streams: expected a Topology, got {type(topology).__name__}. A StreamsBuilder gives one with build()"
            )
        if not isinstance(config, StreamsConfig):
            raise ConfigError(f"Streams: expected a StreamsConfig, got {type(config).__name__}")
        topology.validate()
        self._topology, self._config = topology, config
        self._folder = ApplicationFolder(config.state_dir, config.application_id)
        self._metrics = Metrics(config.application_id)
        self._state = StreamsState.CREATED
        self._lock = threading.RLock()
        self._listener: StateListener | None = None
        self._handler: ExceptionHandler = lambda error: StreamThreadExceptionResponse.SHUTDOWN_CLIENT
        self._prepared: Prepared | None = None
        self._running: Running | None = None
        self._watcher: threading.Thread | None = None
        self._error: BaseException | None = None
        self._until_caught_up = False
        self._is_outdated = False
        self._away_since: tuple[float, float] | None = None
        self._launched, self._pause = 0.0, _SHORTEST_PAUSE
        self._closing = threading.Event()
        self._started_from: dict[str, dict[int, int]] = {}
        self._ask_again = 0.0

    # -- life -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> StreamsState:
        """What the application is doing."""
        return self._state

    @property
    def topology(self) -> Topology:
        """What it runs."""
        return self._topology

    @property
    def error(self) -> BaseException | None:
        """What ended the application, if something did."""
        return self._error

    def set_state_listener(self, listener: StateListener) -> None:
        """Call `listener(new, old)` at every change of state."""
        self._check_created("set_state_listener")
        self._listener = listener

    def set_uncaught_exception_handler(self, handler: ExceptionHandler) -> None:
        """Let `handler(exception)` decide what to do when a batch fails; without one the application stops."""
        self._check_created("set_uncaught_exception_handler")
        self._handler = handler

    def start(self) -> None:
        """Begin to process records, in the background."""
        self._start(until_caught_up=False)

    def run(self, *, until_caught_up: bool = False, progress: bool | None = None) -> None:
        """Process records until interrupted, or until all that is there has been processed.

        Raises what ended it, if something did. Shows how far it is when this is a terminal, or as asked for by
        `progress`; otherwise it logs a line now and then.
        """
        from headrace.application.progress import Progress

        self._check_created("run")
        stop = threading.Event()
        before = _on_terminate(stop.set)
        try:
            self._start(until_caught_up=until_caught_up)
            with Progress(self._config.application_id, self.metrics, show=progress) as display:
                while self._watcher is not None and self._watcher.is_alive() and not stop.is_set():
                    self._watcher.join(0.1)
                    display.update(self._state.value)
        except KeyboardInterrupt:
            pass
        finally:
            _restore_terminate(before)
            self.close()
        if self._error is not None:
            raise self._error

    def close(self, timeout: float | None = None) -> bool:
        """Finish the running batch and stop; tell whether that was done in time (seconds)."""
        with self._lock:
            if self._state is StreamsState.CREATED:
                self._set_state(StreamsState.NOT_RUNNING)
                return True
            if self._state.is_running():
                self._set_state(StreamsState.PENDING_SHUTDOWN)
        self._closing.set()
        watcher = self._watcher
        if watcher is None or watcher is threading.current_thread():
            return True
        watcher.join(timeout)
        return not watcher.is_alive()

    def clean_up(self) -> None:
        """Forget everything: state, and how far the topics were read; the next start begins at the beginning."""
        if self._state.is_running() or self._state is StreamsState.PENDING_SHUTDOWN:
            raise StreamsError("clean_up: the application is running, close it first")
        reset_application(self._config)

    def __enter__(self) -> Streams:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def with_settings(self, settings: Mapping[str, Any]) -> Streams:
        """Return the same application with other settings, not started."""
        own = {name: getattr(self._config, name) for name in self._config.model_fields_set}
        other = Streams(self._topology, StreamsConfig(**{**own, **settings}))
        other._listener, other._handler = self._listener, self._handler
        return other

    # -- watching ---------------------------------------------------------------------------------------------------

    def metrics(self) -> dict[str, Any]:
        """Return what was done so far, and the lag of each topic partition."""
        return self._metrics.as_dict(self._ends(), self._started_from)

    def prometheus(self) -> str:
        """Return the metrics as text that Prometheus reads."""
        return self._metrics.as_prometheus(self._ends(), self._started_from, self._state.value)

    def _ends(self) -> dict[str, dict[int, int]]:
        prepared = self._prepared
        if prepared is None or time.monotonic() < self._ask_again:
            return {}
        ends = {}
        for topic in prepared.plan.input_topics():
            try:
                ends[topic] = prepared.broker.end_offsets(topic)
            except UnavailableError:  # after a long wait: the others would take as long
                self._ask_again = time.monotonic() + _NO_ANSWER_SECONDS
                break
            except (TopicError, StreamsError):  # deleted: the application says so itself
                pass
        return ends

    # -- inside -----------------------------------------------------------------------------------------------------

    def _start(self, *, until_caught_up: bool) -> None:
        from headrace.spark.query import NoTopicYetError  # brings Spark along, which takes a second

        with self._lock:
            self._check_created("start")
            self._folder.lock()
            self._until_caught_up = until_caught_up
            try:
                self._set_state(StreamsState.REBALANCING)
                self._launched = time.monotonic()
                self._prepare()
                self._running = self._launch()
                self._set_state(StreamsState.RUNNING)
            except BaseException as error:
                if not isinstance(error, NoTopicYetError) or until_caught_up:
                    self._set_state(StreamsState.ERROR)
                    self._folder.unlock()
                    raise readable(error) from error.__cause__
                self._is_outdated = True
            self._watcher = threading.Thread(target=self._watch, name=f"headrace-{self._config.application_id}")
            self._watcher.daemon = True
            self._watcher.start()

    def _prepare(self) -> None:
        from headrace.spark.query import prepare

        self._prepared = prepare(self._topology, self._config, self._folder)
        self._started_from = self._beginnings(self._prepared)
        self._is_outdated = False

    def _beginnings(self, prepared: Prepared) -> dict[str, dict[int, int]]:
        """Return where reading begins, as far as it is known before the first batch."""
        known = prepared.broker.positions(self._config.application_id)
        for topic, reset in prepared.reading.resets.items():
            if reset == "latest":
                known[topic] = {**prepared.broker.end_offsets(topic), **known.get(topic, {})}
        return known

    def _launch(self) -> Running:
        from headrace.spark.query import start_query

        assert self._prepared is not None
        return start_query(self._prepared, self._folder, self._metrics, until_caught_up=self._until_caught_up)

    def _watch(self) -> None:
        """Stay with the query until it ends for good."""
        from headrace.spark.query import NoTopicYetError

        error: BaseException | None = None
        told = ""
        try:
            while True:
                error = self._wait() if self._running is not None else error
                if self._closing.is_set() and isinstance(error, UnavailableError):
                    _log.warning("%s: closed without an answer: %s", self._config.application_id, error)
                    error = None  # what was not done is done at the next start
                if self._closing.is_set() or not (error or self._is_outdated or self._is_fed_by_itself()):
                    self._end(error)
                    return
                if error is not None and not self._goes_on_after(error):
                    self._end(error)
                    return
                if self._closing.is_set():  # while it waited to start again
                    self._end(None)
                    return
                self._set_state(StreamsState.REBALANCING)
                self._end_run()
                self._launched = time.monotonic()
                try:
                    if self._is_outdated:
                        if self._prepared is not None:
                            _log.info("%s: there are more topics or partitions to read", self._config.application_id)
                        self._prepare()
                    self._running = self._launch()
                except NoTopicYetError as missing:
                    error = None
                    if told != str(missing):
                        told = str(missing)
                        _log.warning("%s: waiting for a topic: %s", self._config.application_id, told)
                    self._closing.wait(_LOOK_SECONDS)
                    continue
                except Exception as failed:  # the broker may still be down
                    error = readable(failed)
                    continue
                if not self._closing.is_set():
                    self._set_state(StreamsState.RUNNING)
        except BaseException as error:
            self._end(readable(error))

    def _wait(self) -> BaseException | None:
        """Wait until the query ends or is to be ended; return why it failed, if it did."""
        running = self._running
        assert running is not None
        looked = time.monotonic()
        while running.query.isActive and not self._closing.is_set():
            with suppress(Exception):  # the query's own exception comes up below
                running.query.awaitTermination(1)
            if not self._until_caught_up and time.monotonic() - looked > _LOOK_SECONDS:
                with suppress(HeadraceError):  # no answer: the query finds out by itself
                    if self._has_new_topics():
                        break
                looked = time.monotonic()
        if running.query.isActive:
            running.stop()
        failed = running.writer.failure or running.query.exception()
        if failed is not None and is_of_a_shared_log(failed):
            return self._shared_with_another(running)
        return None if failed is None else readable(failed)

    def _shared_with_another(self, running: Running) -> HeadraceError | None:
        """Return what it means that another run has noted a batch in the checkpoint before this one did."""
        assert self._prepared is not None
        try:
            latest = self._prepared.broker.run_number(self._config.application_id)
        except HeadraceError as error:
            return error
        if latest == running.run.number:
            said = "an older run, thought dead, has noted a batch in the checkpoint"
            return None if self._closing.is_set() else _OlderRunError(said)
        what = f"started again elsewhere (run {latest}, this is run {running.run.number})" if latest else "forgotten"
        return SupersededError(f"application '{self._config.application_id}' was {what}: this one stops")

    def _has_new_topics(self) -> bool:
        from headrace.spark.query import topics_changed

        assert self._prepared is not None
        self._is_outdated = topics_changed(self._prepared)
        return self._is_outdated

    def _goes_on_after(self, error: BaseException) -> bool:
        if isinstance(error, SupersededError):
            return False  # to start again would stop the other one, and so on without end
        # While they were to be read: the batch is done again with what there is, and says what is missing.
        are_given_up = isinstance(error, RecordsGoneError) and self._config.on_data_loss == "continue"
        # An older run can do no more: what it noted is where this one goes on.
        if are_given_up or isinstance(error, _OlderRunError):
            _log.warning("%s: starting again: %s", self._config.application_id, error)
            self._closing.wait(_SHORTEST_PAUSE)
            return True
        if isinstance(error, UnavailableError) and self._still_waits():
            _log.warning("%s: waiting for the broker: %s", self._config.application_id, error)
            self._closing.wait(_BROKER_PAUSE)
            return True
        response = self._handler(error)
        if not isinstance(response, StreamThreadExceptionResponse):
            known = ", ".join(f"StreamThreadExceptionResponse.{one.name}" for one in StreamThreadExceptionResponse)
            raise StreamsError(f"the uncaught exception handler must return one of {known}, got {response!r}")
        if response is StreamThreadExceptionResponse.REPLACE_THREAD:
            _log.warning("%s: starting again after: %s", self._config.application_id, error)
            # What fails at once is not tried again at once, so that a broker that is down is not called without end.
            soon = time.monotonic() - self._launched < _SOON_SECONDS
            self._pause = min(self._pause * 2, _LONGEST_PAUSE) if soon else _SHORTEST_PAUSE
            self._closing.wait(self._pause)
            return True
        return False

    def _still_waits(self) -> bool:
        """Tell whether the broker has not been away for longer than `task_timeout_ms`."""
        done, now = self._metrics.batches(), time.monotonic()
        if self._away_since is None or self._away_since[0] != done:
            self._away_since = done, now
        return (now - self._away_since[1]) * 1000 < self._config.task_timeout_ms

    def _is_fed_by_itself(self) -> bool:
        """Tell whether there is more to read that the application itself has written."""
        prepared = self._prepared
        if prepared is None or not self._until_caught_up:
            return False
        sinks = [node for node in self._topology.nodes.values() if isinstance(node, SinkNode)]
        dynamic = any(callable(sink.topic) for sink in sinks)
        written = {sink.topic for sink in sinks if isinstance(sink.topic, str)}
        mine = [topic for topic in prepared.plan.input_topics() if dynamic or topic in written]
        done = self._metrics.positions()
        for topic in mine:
            known = {**self._started_from.get(topic, {}), **done.get(topic, {})}
            if any(end > known.get(number, 0) for number, end in prepared.broker.end_offsets(topic).items()):
                return True
        return False

    def _end(self, error: BaseException | None) -> None:
        self._error = error
        if error is None and self._until_caught_up and self._prepared is not None:
            written = [node.topic for node in self._topology.nodes.values() if isinstance(node, SinkNode)]
            outputs = [topic for topic in written if isinstance(topic, str)]
            with suppress(HeadraceError):  # it is committed all the same
                self._prepared.broker.wait_until_visible(set(outputs) - self._topology.internal_topics.keys())
        self._end_run()
        self._folder.unlock()
        if error is not None:
            self._set_state(StreamsState.PENDING_ERROR)
            self._set_state(StreamsState.ERROR)
        else:
            if self._state.is_running():
                self._set_state(StreamsState.PENDING_SHUTDOWN)
            self._set_state(StreamsState.NOT_RUNNING)

    def _end_run(self) -> None:
        running, self._running = self._running, None
        if running is not None and self._prepared is not None:
            self._prepared.broker.end_run(running.run)

    def _set_state(self, new: StreamsState) -> None:
        with self._lock:
            old, self._state = self._state, new
        if self._listener is not None and old is not new:
            try:
                self._listener(new, old)
            except Exception:
                _log.exception("%s: the state listener failed", self._config.application_id)

    def _check_created(self, what: str) -> None:
        if self._state is not StreamsState.CREATED:
            raise StreamsError(f"{what}: the application is {self._state.value} already. Make a new Streams for that")


def _on_terminate(stop: Callable[[], None]) -> Any:
    """Let SIGTERM end the application in order; only the main thread may ask for that."""
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGTERM, lambda *_: stop())


def _restore_terminate(before: Any) -> None:
    if before is not None:
        signal.signal(signal.SIGTERM, before)
