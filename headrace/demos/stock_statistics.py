"""Stock statistics: the lowest, highest and average ask price of each symbol in the last five seconds.

It shows windows that overlap. A window of five seconds begins every second, so a trade belongs to five windows. Each
window has its own row in the table: the key is the symbol together with the window. A window accepts late trades for
two seconds after its end. A trade that is later than that still counts in its other windows that are open.

    trades -> asks only -> by symbol, 5 s windows every 1 s -> fold -> stock-statistics

A key is a windowed string, so reading the results needs the window's size: `serdes.Windowed(serdes.String, 5000)`.

Run it on Spark over generated trades:

    headrace demo stock_statistics

or over your own topic `trades`:

    headrace run headrace.demos.stock_statistics:build_topology
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Literal

import msgspec

from headrace import HoppingWindows, Materialized, StreamsBuilder, Topology, Window, Windowed, serdes
from headrace.demos import START, Demo, InputRecord, Outputs

WINDOWS = HoppingWindows(timedelta(seconds=5), advance=timedelta(seconds=1), grace=timedelta(seconds=2))

OUTPUTS = {"stock-statistics": (serdes.Windowed(serdes.String, WINDOWS.size), serdes.Json)}
OUTPUT_TOPICS = tuple(OUTPUTS)


class Trade(msgspec.Struct, frozen=True):
    """A message of an exchange: someone asks or bids a price for a number of shares."""

    type: Literal["ask", "bid"]
    symbol: str
    price: float
    size: int


class Asks(msgspec.Struct, frozen=True):
    """The values that a window keeps to compute the statistics of its asks."""

    count: int = 0
    lowest: float = 0.0
    highest: float = 0.0
    total: float = 0.0


def build_topology() -> Topology:
    """Aggregate the asks of each symbol and window, and output the statistics whenever they change."""
    builder = StreamsBuilder()
    trades = builder.stream("trades", value_serde=serdes.Json(Trade))
    asks = trades.filter(lambda symbol, trade: trade.type == "ask").group_by_key()
    windowed = asks.windowed_by(WINDOWS).aggregate(
        Asks, add_ask, store=Materialized("asks", value_serde=serdes.Json(Asks))
    )
    windowed.to_stream().map_values(statistics_of).to("stock-statistics", value_serde=serdes.Json)
    return builder.build()


def add_ask(symbol: str, ask: Trade, asks: Asks) -> Asks:
    """Add an ask to the aggregate of its window."""
    if asks.count == 0:
        return Asks(1, ask.price, ask.price, ask.price)
    return Asks(asks.count + 1, min(asks.lowest, ask.price), max(asks.highest, ask.price), asks.total + ask.price)


def statistics_of(asks: Asks) -> dict[str, Any]:
    """Return the statistics as they are written to the topic.

    >>> statistics_of(Asks(count=3, lowest=9.5, highest=11.0, total=30.0))
    {'count': 3, 'min': 9.5, 'max': 11.0, 'average': 10.0}
    """
    average = round(asks.total / asks.count, 4)
    return {"count": asks.count, "min": asks.lowest, "max": asks.highest, "average": average}


def summarize(outputs: Outputs) -> list[str]:
    """Return the statistics of each symbol's busiest window."""
    rows: dict[Windowed[str], dict[str, Any]] = dict(outputs["stock-statistics"])  # the last row of each window
    busiest: dict[str, Window] = {}
    for symbol, window in sorted(rows):
        best = busiest.setdefault(symbol, window)
        if rows[Windowed(symbol, window)]["count"] > rows[Windowed(symbol, best)]["count"]:
            busiest[symbol] = window
    return [f"{len(rows):,} windows; the busiest of each symbol:"] + [
        f"{symbol:5} {_clock(window.start)}–{_clock(window.end)}  {row['count']:3} asks"
        f"  {row['min']:8.2f} to {row['max']:8.2f}, on average {row['average']:8.2f}"
        for symbol, window in busiest.items()
        for row in [rows[Windowed(symbol, window)]]
    ]


def _clock(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%H:%M:%S")


# -- generated trades -------------------------------------------------------------------------------------------------

_SYMBOLS = {"ALBA": 182.0, "BRIO": 41.5, "CORV": 310.0, "DUNE": 12.8, "ECHO": 96.0, "FLOE": 27.3, "GALE": 540.0}


def make_records(count: int, seed: int = 7) -> Iterator[InputRecord]:
    """Generate trades at drifting prices; one in fifty is late, but never too late for its windows."""
    random = Random(seed)
    prices = dict(_SYMBOLS)
    now = START
    for _ in range(count):
        symbol = random.choice(list(prices))
        prices[symbol] *= random.gauss(1, 0.001)
        side, spread = random.choice((("ask", 1.0005), ("bid", 0.9995)))
        trade = {
            "type": side,
            "symbol": symbol,
            "price": round(prices[symbol] * spread, 2),
            "size": 100 * random.choice((1, 1, 1, 2, 2, 5, 10)),
        }
        late = random.randint(1, WINDOWS.grace - 1) if random.random() < 0.02 else 0
        yield "trades", symbol.encode(), json.dumps(trade).encode(), now - late
        now += random.randint(0, 40)


DEMO = Demo(
    name="stock_statistics",
    title="Ask prices per symbol over the last five seconds",
    build_topology=build_topology,
    make_records=make_records,
    outputs=OUTPUTS,
    summarize=summarize,
)
