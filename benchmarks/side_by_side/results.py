"""The correct results and the output of a peer, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from benchmarks.workloads import START, WINDOW, Produced

Results = dict[bytes, Any]

_decode = msgspec.json.Decoder().decode


@dataclass
class Output:
    """The output of a peer so far."""

    work: str
    records: int = 0
    results: Results = field(default_factory=dict)

    def take(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Add new output. A later result of a key replaces an earlier one."""
        read, results = _READ[self.work], self.results
        for key, value in records:
            self.records += 1
            results[key] = read(results.get(key), value)

    def right(self, wanted: Results) -> int:
        """Return how many keys have the correct result."""
        return sum(self.results.get(key) == result for key, result in wanted.items())


def wanted_results(work: str, records: Iterable[Produced]) -> Results:
    """Return the correct result of each key."""
    return _WANTED[work](records)


def judged(work: str, wanted: Results) -> Results:
    """Return the results by which to judge a peer. For W4, leave out the windows of the warm-up."""
    if work != "W4":
        return wanted
    return {key: result for key, result in wanted.items() if int.from_bytes(key[-8:], "big") > START - WINDOW}


# -- W1 and W5 output each record that passes: per key, how many there were and a sum over them ------------------------


def _worths(records: Iterable[Produced]) -> Results:
    found: Results = {}
    for key, value, _ in records:
        trade = _decode(value)
        if trade["price"] > 450:
            number, total = found.get(key or b"", (0, 0))
            found[key or b""] = number + 1, total + trade["price"] * trade["size"]
    return found


def _read_worth(before: Any, value: bytes) -> Any:
    number, total = before or (0, 0)
    return number + 1, total + _decode(value)["value"]


def _enriched(records: Iterable[Produced]) -> Results:
    found: Results = {}
    for key, value, _ in records:
        trade = _decode(value)
        number, total = found.get(key or b"", (0, 0))
        found[key or b""] = number + 1, total + (int(trade["user"][1:]) % 40) * 1000 + trade["size"]
    return found


def _read_enriched(before: Any, value: bytes) -> Any:
    number, total = before or (0, 0)
    row = _decode(value)
    return number + 1, total + int(row["city"][5:]) * 1000 + row["size"]


# -- W2 and W3 output a count as 8 bytes -------------------------------------------------------------------------------


def _counts(records: Iterable[Produced]) -> Results:
    found: Results = {}
    for key, _, _ in records:
        found[key or b""] = found.get(key or b"", 0) + 1
    return found


def _read_count(before: Any, value: bytes) -> Any:
    return int.from_bytes(value, "big")


# -- W4 outputs [count, sum, least, greatest] for a symbol and, in 8 bytes, the start of a window ----------------------


def _statistics(records: Iterable[Produced]) -> Results:
    found: Results = {}
    for _, value, timestamp in records:
        trade = _decode(value)
        price = trade["price"]
        key = trade["symbol"].encode() + (timestamp // WINDOW * WINDOW).to_bytes(8, "big")
        so_far = found.get(key)
        if so_far is None:
            found[key] = [1, price, price, price]
        else:
            so_far[0] += 1
            so_far[1] += price
            so_far[2] = min(so_far[2], price)
            so_far[3] = max(so_far[3], price)
    return found


def _read_statistics(before: Any, value: bytes) -> Any:
    return _decode(value)


_WANTED: dict[str, Callable[[Iterable[Produced]], Results]] = {
    "W1": _worths,
    "W2": _counts,
    "W3": _counts,
    "W4": _statistics,
    "W5": _enriched,
}
_READ: dict[str, Callable[[Any, bytes], Any]] = {
    "W1": _read_worth,
    "W2": _read_count,
    "W3": _read_count,
    "W4": _read_statistics,
    "W5": _read_enriched,
}
