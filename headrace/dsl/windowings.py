"""Windowings: an aggregation divides the records of a key into windows of time, into sessions, or not at all.

A windowing decides which store keeps the results, how a later step looks them up, how their keys are serialized, and
which operator folds the records.

Tests: `tests/operators/test_windowed_aggregate.py`, `test_session_aggregate.py` and `test_cogroup.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.dsl.materialized import Materialized
from headrace.errors import TopologyError
from headrace.operators.aggregate import Aggregate
from headrace.operators.session_aggregate import SessionAggregate
from headrace.operators.sliding_aggregate import SlidingAggregate
from headrace.operators.value_getters import Getter, StoreGetter
from headrace.operators.window_definitions import (
    HoppingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    TumblingWindows,
    UnlimitedWindows,
)
from headrace.operators.windowed_aggregate import WindowAggregate
from headrace.serdes import Serde
from headrace.serdes import SessionWindowed as SessionWindowedSerde
from headrace.serdes import Windowed as WindowedSerde
from headrace.serdes.incomplete import IncompleteSerde
from headrace.state.builders import StoreBuilder
from headrace.topology.argument_checks import check_function
from headrace.topology.nodes import Operator


@dataclass(frozen=True)
class Fold:
    """The user's functions of an aggregation."""

    initializer: Callable[[], Any]
    aggregator: Callable[[Any, Any, Any], Any]
    """From (key, value, aggregate) to the next aggregate."""
    merger: Callable[[Any, Any, Any], Any] | None = None
    """For sessions: from (key, left, right) to the aggregate of both."""


class Windowing(Protocol):
    """How an aggregation divides the records of a key."""

    @property
    def grace(self) -> int | None:
        """Return how long an aggregation waits for late records; None without windows."""

    def store(self, keep: Materialized, name: str) -> StoreBuilder:
        """Return the builder of the store that keeps the results."""

    def getter(self, store: str) -> Getter:
        """Return the getter of the results in that store."""

    def key_serde(self, keep: Materialized) -> Serde[Any] | None:
        """Return the serde of the results' keys."""

    def operator(self, fold: Fold, store: str, send_old: bool) -> Operator:
        """Return the operator that folds the records."""


@dataclass(frozen=True)
class NoWindowing:
    """All records of a key are folded into one result."""

    @property
    def grace(self) -> None:
        return None

    def store(self, keep: Materialized, name: str) -> StoreBuilder:
        return keep.key_value(name)

    def getter(self, store: str) -> Getter:
        return StoreGetter(store)

    def key_serde(self, keep: Materialized) -> Serde[Any] | None:
        return keep.key_serde

    def operator(self, fold: Fold, store: str, send_old: bool) -> Operator:
        return Aggregate(store, fold.initializer, fold.aggregator, send_old)


@dataclass(frozen=True)
class TimeWindowing:
    """Each window of a key has a result of its own."""

    windows: TimeWindows | SlidingWindows
    on_close: bool = False
    shared: bool = False
    """Whether several steps fold into the same windows, as in a cogroup."""

    @property
    def grace(self) -> int:
        return self.windows.grace

    def store(self, keep: Materialized, name: str) -> StoreBuilder:
        return keep.window(name, self.windows.size, self.windows.retention, self.on_close)

    def getter(self, store: str) -> Getter:
        return StoreGetter(store)

    def key_serde(self, keep: Materialized) -> Serde[Any]:
        inner, size = keep.key_serde, self.windows.size
        return IncompleteSerde(
            lambda fill_in: WindowedSerde(fill_in(inner, "key"), size), f"Windowed({inner!r}, {size})"
        )

    def operator(self, fold: Fold, store: str, send_old: bool) -> Operator:
        windows = self.windows
        if isinstance(windows, SlidingWindows):
            return SlidingAggregate(store, windows, fold.initializer, fold.aggregator, self.on_close, send_old)
        return WindowAggregate(store, windows, fold.initializer, fold.aggregator, self.on_close, send_old, self.shared)


@dataclass(frozen=True)
class SessionWindowing:
    """Each session of a key has a result of its own."""

    windows: SessionWindows
    on_close: bool = False

    @property
    def grace(self) -> int:
        return self.windows.gap + self.windows.grace

    def store(self, keep: Materialized, name: str) -> StoreBuilder:
        return keep.session(name, self.windows.retention, self.on_close)

    def getter(self, store: str) -> Getter:
        return StoreGetter(store)

    def key_serde(self, keep: Materialized) -> Serde[Any]:
        inner = keep.key_serde
        return IncompleteSerde(
            lambda fill_in: SessionWindowedSerde(fill_in(inner, "key")), f"SessionWindowed({inner!r})"
        )

    def operator(self, fold: Fold, store: str, send_old: bool) -> Operator:
        merger = check_function(fold.merger, "aggregate, merger")
        return SessionAggregate(store, self.windows, fold.initializer, fold.aggregator, merger, self.on_close, send_old)


def check_windows(windows: Any) -> Any:
    """Return windows that an aggregation can have."""
    if not isinstance(windows, TumblingWindows | HoppingWindows | SlidingWindows | UnlimitedWindows | SessionWindows):
        raise TopologyError(
            "windowed_by: expected TumblingWindows, HoppingWindows, SlidingWindows, SessionWindows or "
            f"UnlimitedWindows, got {type(windows).__name__} ({windows!r})"
        )
    return windows


def windowing_of(windows: Any, *, shared: bool = False) -> Windowing:
    """Return the windowing for these windows, or for none."""
    if windows is None:
        return NoWindowing()
    return SessionWindowing(windows) if isinstance(windows, SessionWindows) else TimeWindowing(windows, shared=shared)
