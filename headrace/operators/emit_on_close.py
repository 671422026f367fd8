"""EmitStrategy.on_window_close: one final result per window, when the window closes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from headrace.records import Window, Windowed
from headrace.state.session import SessionStore
from headrace.state.window import WindowStore
from headrace.topology.nodes import Process, StepContext

Emit: TypeAlias = Callable[[int], None]
"""Takes the new close time and forwards the windows that it closes."""
ClosedRange: TypeAlias = Callable[[int, int], tuple[int, int]]
"""Takes the last and the new close time. Returns the first and the last window start (or session end) to emit."""
FinalResults: TypeAlias = Callable[[int, int], Iterator[tuple[Any, Any, int]]]
"""Takes these two, and walks (windowed key, value, timestamp) of the windows in it."""


def bind_emission(
    context: StepContext, forward: Process, closed_range: ClosedRange, final_results: FinalResults
) -> Emit:
    """Return the function that emits the final results of the windows that close."""
    last_close = context.cell("last_close", -1)

    def emit(close: int) -> None:
        if last_close[0] >= close:
            return
        earliest, latest = closed_range(last_close[0], close)
        if latest < 0:
            return
        last_close[0] = close
        for windowed, value, timestamp in final_results(earliest, latest):
            forward(windowed, value, None, timestamp)

    return emit


def window_results(store: WindowStore[Any, Any]) -> FinalResults:
    """Return the function that walks the windows that start in a range, by start, then key."""
    size = store.window_size

    def walk(earliest: int, latest: int) -> Iterator[tuple[Any, Any, int]]:
        # A list, because the steps downstream may write while this walks.
        for raw, start, (value, timestamp) in list(store.scan_by_time(earliest, latest)):
            yield Windowed(store.decode_key(raw), Window(start, start + size)), value, timestamp

    return walk


def session_results(store: SessionStore[Any, Any]) -> FinalResults:
    """Return the function that walks the sessions that end in a range, by end, then start, then key."""

    def walk(earliest: int, latest: int) -> Iterator[tuple[Any, Any, int]]:
        for raw, start, end, value in list(store.scan_by_time(earliest, latest)):
            yield Windowed(store.decode_key(raw), Window(start, end)), value, end

    return walk
