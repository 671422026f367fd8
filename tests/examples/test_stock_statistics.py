"""Stock statistics: windows that overlap, late trades, windowed keys.

Tests: headrace.demos.stock_statistics
"""

import json
from itertools import pairwise
from typing import Any

import pytest

from headrace import TaskError, Window, Windowed
from headrace.demos import InputRecord
from headrace.demos.stock_statistics import DEMO, WINDOWS, make_records, summarize
from headrace.testing import TopologyTestDriver
from tests.examples.running import outputs_of, record


def trade(symbol: str, price: float, second: float, side: str = "ask") -> InputRecord:
    value = {"type": side, "symbol": symbol, "price": price, "size": 100}
    return record("trades", symbol, value, int(second * 1000))


def updates_of(*trades: InputRecord) -> list[tuple[str, int, dict[str, Any]]]:
    """Return (symbol, second in which the window starts, statistics) of every update."""
    rows = outputs_of(DEMO, trades)["stock-statistics"]
    return [(key.key, key.window.start // 1000, value) for key, value in rows]


def statistics_of(*trades: InputRecord) -> dict[tuple[str, int], dict[str, Any]]:
    return {(symbol, start): value for symbol, start, value in updates_of(*trades)}


def counts_of(*trades: InputRecord) -> dict[tuple[str, int], int]:
    return {key: value["count"] for key, value in statistics_of(*trades).items()}


def one(price: float) -> dict[str, Any]:
    return {"count": 1, "min": price, "max": price, "average": price}


def test_a_trade_is_in_the_five_windows_that_hold_its_second() -> None:
    assert updates_of(trade("ALBA", 10.0, 7.5)) == [("ALBA", start, one(10.0)) for start in (3, 4, 5, 6, 7)]


def test_a_window_has_its_start_but_not_its_end() -> None:
    assert list(counts_of(trade("ALBA", 10.0, 7.0))) == [("ALBA", start) for start in (3, 4, 5, 6, 7)]
    assert list(counts_of(trade("ALBA", 10.0, 6.999))) == [("ALBA", start) for start in (2, 3, 4, 5, 6)]


def test_windows_do_not_start_before_time_does() -> None:
    assert list(counts_of(trade("ALBA", 10.0, 1.0))) == [("ALBA", 0), ("ALBA", 1)]


def test_a_key_is_the_symbol_with_its_window_of_five_seconds() -> None:
    keys = [key for key, _ in outputs_of(DEMO, [trade("ALBA", 10.0, 0.0)])["stock-statistics"]]

    assert keys == [Windowed("ALBA", Window(0, 5000))]


def test_statistics_are_those_of_the_asks_in_the_window() -> None:
    rows = statistics_of(trade("ALBA", 10.0, 10), trade("ALBA", 13.0, 12), trade("ALBA", 8.5, 13))

    assert rows["ALBA", 9] == {"count": 3, "min": 8.5, "max": 13.0, "average": 10.5}
    assert rows["ALBA", 8] == {"count": 2, "min": 10.0, "max": 13.0, "average": 11.5}
    assert rows["ALBA", 11] == {"count": 2, "min": 8.5, "max": 13.0, "average": 10.75}
    assert rows["ALBA", 6] == one(10.0)
    assert rows["ALBA", 13] == one(8.5)


def test_every_update_comes_out() -> None:
    updates = updates_of(trade("ALBA", 10.0, 0), trade("ALBA", 12.0, 0))

    assert updates == [
        ("ALBA", 0, one(10.0)),
        ("ALBA", 0, {"count": 2, "min": 10.0, "max": 12.0, "average": 11.0}),
    ]


def test_an_average_has_four_digits() -> None:
    prices = statistics_of(trade("ALBA", 1.0, 0), trade("ALBA", 1.0, 0), trade("ALBA", 1.01, 0))

    assert prices["ALBA", 0]["average"] == 1.0033


def test_bids_do_not_count() -> None:
    assert updates_of(trade("ALBA", 10.0, 7, side="bid")) == []


def test_symbols_do_not_mix() -> None:
    rows = statistics_of(trade("ALBA", 10.0, 0), trade("BRIO", 20.0, 0))

    assert rows == {("ALBA", 0): one(10.0), ("BRIO", 0): one(20.0)}


def test_a_late_trade_counts_within_the_grace_of_its_windows() -> None:
    counts = counts_of(trade("ALBA", 10.0, 4), trade("ALBA", 10.0, 6.999), trade("ALBA", 10.0, 3))

    assert [counts["ALBA", start] for start in range(7)] == [2, 2, 3, 3, 2, 1, 1]


def test_a_later_trade_counts_in_those_of_its_windows_that_are_open() -> None:
    """Stream time 8 closes windows that ended at 5 and 6."""
    counts = counts_of(trade("ALBA", 10.0, 4), trade("ALBA", 10.0, 8), trade("ALBA", 10.0, 4))

    assert [counts["ALBA", start] for start in range(9)] == [1, 1, 2, 2, 3, 1, 1, 1, 1]


def test_a_trade_is_dropped_when_all_its_windows_are_closed() -> None:
    before = counts_of(trade("ALBA", 10.0, 4), trade("ALBA", 10.0, 11))

    assert counts_of(trade("ALBA", 10.0, 4), trade("ALBA", 10.0, 11), trade("ALBA", 10.0, 4)) == before


def test_another_symbol_makes_a_trade_late_too() -> None:
    assert ("ALBA", 0) not in counts_of(trade("BRIO", 10.0, 11), trade("ALBA", 10.0, 0))


def test_a_bid_does_not_make_asks_late() -> None:
    assert ("ALBA", 0) in counts_of(trade("ALBA", 10.0, 11, side="bid"), trade("ALBA", 10.0, 0))


def test_a_trade_that_is_none_stops_with_the_reason() -> None:
    with pytest.raises(TaskError, match=r"price"):
        outputs_of(DEMO, [record("trades", "ALBA", {"type": "ask", "symbol": "ALBA", "price": "?", "size": 1}, 0)])


def test_the_store_keeps_what_the_statistics_are_made_of() -> None:
    with TopologyTestDriver(DEMO.build_topology()) as driver:
        for topic, key, value, timestamp in [trade("ALBA", 10.0, 0), trade("ALBA", 12.0, 0)]:
            driver.pipe(topic, key, value, timestamp, [])

        asks = driver.state_store("asks").fetch("ALBA", 0)

    assert (asks.count, asks.lowest, asks.highest, asks.total) == (2, 10.0, 12.0, 22.0)


def test_generated_trades_give_what_plain_python_computes() -> None:
    records = list(make_records(1500))
    prices: dict[Windowed[str], list[float]] = {}
    for _, _, value, timestamp in records:
        trade = json.loads(value)
        first = timestamp // 1000 * 1000 - 4000
        for start in range(first, first + 5000, 1000) if trade["type"] == "ask" else ():
            prices.setdefault(Windowed(trade["symbol"], Window(start, start + 5000)), []).append(trade["price"])

    rows = dict(outputs_of(DEMO, records)["stock-statistics"])

    assert rows == {
        key: {
            "count": len(asks),
            "min": min(asks),
            "max": max(asks),
            "average": pytest.approx(sum(asks) / len(asks), abs=0.0001),
        }
        for key, asks in prices.items()
    }


def test_generated_trades_are_late_at_times_but_never_too_late() -> None:
    latest, delays = 0, []
    for _, _, _, timestamp in make_records(2000):
        latest = max(latest, timestamp)
        delays.append(latest - timestamp)

    assert 20 < sum(delay > 0 for delay in delays) < 100
    assert 1000 < max(delays) < WINDOWS.grace


def test_generated_trades_have_the_symbol_as_the_key_and_prices_that_wander() -> None:
    prices: dict[str, list[float]] = {}
    for _, key, value, _ in make_records(3000):
        trade = json.loads(value)
        assert key == trade["symbol"].encode()
        assert trade["size"] % 100 == 0
        prices.setdefault(trade["symbol"], []).append(trade["price"])

    assert len(prices) == 7
    assert all(abs(after / before - 1) < 0.02 for wandering in prices.values() for before, after in pairwise(wandering))


def test_the_summary_has_the_last_statistics_of_the_busiest_window_of_each_symbol() -> None:
    def row(symbol: str, start: int, count: int) -> tuple[Windowed[str], dict[str, Any]]:
        key = Windowed(symbol, Window(start, start + 5000))
        return key, {"count": count, "min": 9.0, "max": 1234.5, "average": 10.25}

    updates = [row("B", 1000, 4), row("A", 2000, 9), row("A", 1000, 1), row("A", 2000, 2), row("A", 0, 2)]

    assert summarize({"stock-statistics": updates}) == [
        "4 windows; the busiest of each symbol:",
        "A     00:00:00–00:00:05    2 asks      9.00 to  1234.50, on average    10.25",
        "B     00:00:01–00:00:06    4 asks      9.00 to  1234.50, on average    10.25",
    ]
