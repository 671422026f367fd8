"""`Streams`: an application's life, from start to close."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.application.folder import ApplicationFolder
from headrace.application.progress import Progress
from headrace.application.reset import reset_application
from headrace.application.states import (
    ExceptionHandler,
    StateListener,
    StreamsState,
    StreamThreadExceptionResponse,
)
from headrace.config import StreamsConfig
from headrace.engine.metrics import Metrics
from headrace.errors import ConfigError, StreamsError, TopicError, TopologyError, UnavailableError
from headrace.topology.topology import Topology

if TYPE_CHECKING:
    from headrace.application.supervisor import Supervisor

_log = logging.getLogger("headrace")
_NO_ANSWER_SECONDS = 30.0
"""How long metrics do not ask a broker that did not answer."""


class Streams:
    """Runs a topology on Spark.

    An application is known by its `application_id`. When it is started again, it continues where it stopped, whatever
    stopped it.
    """

    def __init__(self, topology: Topology, config: StreamsConfig) -> None:
        if not isinstance(topology, Topology):
            raise TopologyError(
                f"Streams: expected a Topology, got {type(topology).__name__}. "
                "Call build() on a StreamsBuilder to get one"
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
        self._supervisor: Supervisor | None = None
        self._watcher: threading.Thread | None = None
        self._ask_again = 0.0

    # -- life -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> StreamsState:
        """What the application is doing."""
        return self._state

    @property
    def topology(self) -> Topology:
        """The topology that it runs."""
        return self._topology

    @property
    def error(self) -> BaseException | None:
        """The exception that ended the application, if one did."""
        return None if self._supervisor is None else self._supervisor.error

    def set_state_listener(self, listener: StateListener) -> None:
        """Call `listener(new, old)` at every change of state."""
        self._check_created("set_state_listener")
        self._listener = listener

    def set_uncaught_exception_handler(self, handler: ExceptionHandler) -> None:
        """Let `handler(exception)` decide what to do when a batch fails. Without a handler the application stops."""
        self._check_created("set_uncaught_exception_handler")
        self._handler = handler

    def start(self) -> None:
        """Process records in the background."""
        self._start(until_caught_up=False)

    def run(self, *, until_caught_up: bool = False, progress: bool | None = None) -> None:
        """Process records until interrupted, or until all present records have been processed.

        Raises the exception that ended the application, if one did. Shows its progress on a terminal, and elsewhere
        logs a line now and then; `progress` decides otherwise.
        """
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
        if self.error is not None:
            raise self.error

    def close(self, timeout: float | None = None) -> bool:
        """Finish the current batch and stop. Tell whether the application stopped within the timeout in seconds."""
        with self._lock:
            if self._state is StreamsState.CREATED:
                self._set_state(StreamsState.NOT_RUNNING)
                return True
            if self._state.is_running():
                self._set_state(StreamsState.PENDING_SHUTDOWN)
        if self._supervisor is not None:
            self._supervisor.closing.set()
        watcher = self._watcher
        if watcher is None or watcher is threading.current_thread():
            return True
        watcher.join(timeout)
        return not watcher.is_alive()

    def clean_up(self) -> None:
        """Delete the state and the positions: the next start begins at the beginning."""
        if self._state.is_running() or self._state is StreamsState.PENDING_SHUTDOWN:
            raise StreamsError("clean_up: the application is running. Close it first")
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
        """Return the counts so far, and the lag of each topic partition."""
        return self._metrics.as_dict(self._ends(), self._beginnings())

    def prometheus(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return self._metrics.as_prometheus(self._ends(), self._beginnings(), self._state.value)

    def _beginnings(self) -> dict[str, dict[int, int]]:
        return {} if self._supervisor is None else self._supervisor.started_from

    def _ends(self) -> dict[str, dict[int, int]]:
        supervisor = self._supervisor
        if supervisor is None or supervisor.setup is None or time.monotonic() < self._ask_again:
            return {}
        ends = {}
        for topic in supervisor.setup.application.plan.input_topics():
            try:
                ends[topic] = supervisor.broker.end_offsets(topic)
            except UnavailableError:  # after a long wait: other topics would take as long
                self._ask_again = time.monotonic() + _NO_ANSWER_SECONDS
                break
            except (TopicError, StreamsError):  # deleted: the application says so itself
                pass
        return ends

    # -- inside -----------------------------------------------------------------------------------------------------

    def _start(self, *, until_caught_up: bool) -> None:
        from headrace.application.supervisor import Supervisor  # imports Spark, which takes a second

        with self._lock:
            self._check_created("start")
            self._folder.lock()
            self._supervisor = Supervisor(
                self._topology,
                self._config,
                self._folder,
                self._metrics,
                self._handler,
                self._set_state,
                until_caught_up=until_caught_up,
            )
            self._supervisor.start()
            name = f"headrace-{self._config.application_id}"
            self._watcher = threading.Thread(target=self._supervisor.watch, name=name, daemon=True)
            self._watcher.start()

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
            raise StreamsError(f"{what}: the application is already {self._state.value}. Make a new Streams")


def _on_terminate(stop: Callable[[], None]) -> Any:
    """Let SIGTERM close the application. Only the main thread may ask for that."""
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGTERM, lambda *_: stop())


def _restore_terminate(before: Any) -> None:
    if before is not None:
        signal.signal(signal.SIGTERM, before)
