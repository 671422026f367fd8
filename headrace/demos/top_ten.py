"""Top ten: the symbols with the largest traded volume, always up to date.

It shows an aggregation in two phases. First the volume of each symbol is added up, in all partitions. Then the rows of
that table are grouped under a single key, so that all of them reach one task, which keeps the list. The first phase
makes the second one cheap: it receives one update per symbol and commit instead of every trade.

    trades -> by symbol -> add up (a table) -> all under one key -> keep the ten largest -> top-ten

The aggregation of a table needs two functions. When a symbol's volume changes, `without_symbol` removes the old row
from the list and `with_symbol` adds the new one. Both happen in one step, and one list comes out.

Ten rows are enough, because volumes only grow: a symbol that has dropped out can come back only by a new row. If
volumes could shrink, the eleventh symbol might move up, and the aggregate would need all rows.

Run it on Spark over generated trades:

    headrace demo top_ten

or over your own topic `trades`:

    headrace run headrace.demos.top_ten:build_topology
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from string import ascii_uppercase
from typing import Any, TypedDict

from headrace import Materialized, StreamsBuilder, Topology, serdes
from headrace.demos import START, Demo, InputRecord, Outputs

OUTPUTS = {"top-ten": (serdes.String, serdes.Json)}
OUTPUT_TOPICS = tuple(OUTPUTS)


class Row(TypedDict):
    """A row of the list."""

    symbol: str
    volume: int


def build_topology() -> Topology:
    """Add up the volume of each symbol, then keep the ten largest in one list."""
    builder = StreamsBuilder()
    trades = builder.stream("trades")
    by_symbol = trades.group_by(lambda key, trade: trade["symbol"])
    volumes = by_symbol.aggregate(lambda: 0, add_size, store=Materialized("volumes", value_serde=serdes.Long))
    together = volumes.group_by(lambda symbol, volume: ("all", Row(symbol=symbol, volume=volume)))
    top = together.aggregate(list, with_symbol, without_symbol, store="top-ten")
    top.to_stream().to("top-ten")
    return builder.build()


def add_size(symbol: str, trade: dict[str, Any], volume: int) -> int:
    """Add a trade to its symbol's volume."""
    return volume + int(trade["size"])


def with_symbol(key: str, row: Row, top: list[Row]) -> list[Row]:
    """Add a row; the largest volume comes first, and equal volumes are in alphabetical order.

    >>> with_symbol("all", {"symbol": "B", "volume": 5}, [{"symbol": "A", "volume": 5}])
    [{'symbol': 'A', 'volume': 5}, {'symbol': 'B', 'volume': 5}]
    """
    return sorted([*top, row], key=lambda row: (-row["volume"], row["symbol"]))[:10]


def without_symbol(key: str, old: Row, top: list[Row]) -> list[Row]:
    """Remove a symbol's old row, if it is there."""
    return [row for row in top if row["symbol"] != old["symbol"]]


def summarize(outputs: Outputs) -> list[str]:
    """Return the last list."""
    lists = outputs["top-ten"]
    top: list[Row] = lists[-1][1] if lists else []
    return [f"{rank:4}. {row['symbol']:5} {row['volume']:12,}" for rank, row in enumerate(top, 1)]


# -- generated trades -------------------------------------------------------------------------------------------------


def make_records(count: int, seed: int = 7) -> Iterator[InputRecord]:
    """Generate trades without a key, of 200 symbols of different popularity."""
    random = Random(seed)
    tickers: dict[str, None] = {}
    while len(tickers) < 200:
        tickers["".join(random.choices(ascii_uppercase, k=random.choice((3, 4))))] = None
    symbols = list(tickers)
    weights = [1 / (rank + 10) for rank in range(len(symbols))]
    timestamp = START
    for symbol in random.choices(symbols, weights, k=count):
        trade = {"symbol": symbol, "size": 100 * random.choice((1, 1, 1, 2, 2, 5, 10))}
        yield "trades", None, json.dumps(trade).encode(), timestamp
        timestamp += random.randint(0, 20)


DEMO = Demo(
    name="top_ten",
    title="The ten symbols with the largest volume",
    build_topology=build_topology,
    make_records=make_records,
    outputs=OUTPUTS,
    summarize=summarize,
)
