"""The work W1 to W5 in Faust: `python with_faust.py <JSON object>`."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from typing import Any

import aiokafka
import faust

WINDOW_S, GRACE_S = 10.0, 2.0


def read_committed() -> None:
    """Make clients read only committed records. Faust has a setting for this only with exactly once."""
    begin = aiokafka.AIOKafkaConsumer.__init__

    @functools.wraps(begin)
    def begin_committed(self: Any, *topics: Any, **settings: Any) -> None:
        begin(self, *topics, **{**settings, "isolation_level": "read_committed"})

    aiokafka.AIOKafkaConsumer.__init__ = begin_committed


def parse(app: Any, source: Any, sink: Any, users: Any) -> None:
    @app.agent(source)
    async def work(trades: Any) -> None:
        async for key, trade in trades.items():
            if trade["price"] > 450:
                await sink.send(key=key, value={"symbol": trade["symbol"], "value": trade["price"] * trade["size"]})


def count(app: Any, source: Any, sink: Any, users: Any) -> None:
    counts = app.Table("counts", default=int, partitions=2)

    @app.agent(source)
    async def work(trades: Any) -> None:
        async for key, _ in trades.items():
            number = counts[key] + 1
            counts[key] = number
            await sink.send(key=key, value=number.to_bytes(8, "big"))


def statistics(app: Any, source: Any, sink: Any, users: Any) -> None:
    # Faust's own group_by would give the records the time of the clock.
    by_symbol = app.topic(f"{app.conf.id}-by-symbol", partitions=2, internal=True, key_type=str, key_serializer="raw")
    windows = app.Table("windows", default=list, partitions=2).tumbling(WINDOW_S, expires=WINDOW_S + GRACE_S)
    windows = windows.relative_to_stream()

    @app.agent(source)
    async def repartition(trades: Any) -> None:
        async for event in trades.events():
            trade = event.value
            await by_symbol.send(key=trade["symbol"], value=trade["price"], timestamp=event.message.timestamp)

    @app.agent(by_symbol)
    async def work(prices: Any) -> None:
        async for event in prices.events():
            symbol, price = event.key, event.value
            so_far = windows[symbol].current()
            if so_far:
                number, total, low, high = so_far
                so_far = [number + 1, total + price, min(low, price), max(high, price)]
            else:
                so_far = [1, price, price, price]
            windows[symbol] = so_far
            start = int(event.message.timestamp // WINDOW_S * WINDOW_S) * 1000
            await sink.send(key=symbol.encode() + start.to_bytes(8, "big"), value=so_far)


def enrich(app: Any, source: Any, sink: Any, users: Any) -> None:
    @app.agent(source)
    async def work(trades: Any) -> None:
        async for key, trade in trades.items():
            city = users[trade["user"]]["city"]
            await sink.send(key=key, value={"symbol": trade["symbol"], "size": trade["size"], "city": city})


async def read_users(address: str, topic: str, count: int = 1000) -> dict[str, Any]:
    """Read the table once: a GlobalTable is only for records that Faust itself has written."""
    users: dict[str, Any] = {}
    consumer = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    try:
        while len(users) < count:
            for messages in (await consumer.getmany(timeout_ms=1000)).values():
                users.update((message.key.decode(), json.loads(message.value)) for message in messages)
    finally:
        await consumer.stop()
    return users


def main() -> None:
    given = json.loads(sys.argv[1])
    work = given["work"]
    users = asyncio.run(read_users(given["address"], given["users"])) if work == "W5" else None
    read_committed()
    app = faust.App(
        given["application"],
        broker=f"kafka://{given['address']}",
        store="memory://",
        datadir=f"{given['folder']}/{given['process']}",
        topic_partitions=given["partitions"],
        topic_replication_factor=1,
        consumer_auto_offset_reset="earliest",
        producer_linger=0.005,  # otherwise nearly every record is a request of its own
    )
    source = app.topic(given["source"], key_type=str, key_serializer="raw", value_serializer="json")
    in_bytes = (
        {"value_type": bytes, "value_serializer": "raw"} if work in ("W2", "W3") else {"value_serializer": "json"}
    )
    sink = app.topic(given["sink"], key_type=bytes if work == "W4" else str, key_serializer="raw", **in_bytes)
    build = {"W1": parse, "W2": count, "W3": count, "W4": statistics, "W5": enrich}[work]
    build(app, source, sink, users)
    sys.argv[1:] = ["worker", "--loglevel=warn", "--without-web"]
    app.main()


if __name__ == "__main__":
    main()
