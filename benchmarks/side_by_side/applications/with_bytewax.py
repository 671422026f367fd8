"""The work W1 to W5 in Bytewax: `python with_bytewax.py <JSON object>`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from bytewax import operators as op
from bytewax._bytewax import cli_main
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing
from bytewax.recovery import RecoveryConfig, init_db_dir
from confluent_kafka import Consumer

WINDOW, GRACE = timedelta(seconds=10), timedelta(seconds=2)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SNAPSHOTS = timedelta(seconds=10)


def parse(records: Any, users: Any) -> Any:
    def worth(record: Any) -> Any:
        trade = orjson.loads(record.value)
        if trade["price"] <= 450:
            return None
        value = {"symbol": trade["symbol"], "value": trade["price"] * trade["size"]}
        return KafkaSinkMessage(record.key, orjson.dumps(value), timestamp=record.timestamp[1])

    return op.filter_map("work", records, worth)


def count(records: Any, users: Any) -> Any:
    def add(number: int | None, timestamp: int) -> Any:
        number = (number or 0) + 1
        return number, (number, timestamp)

    def keyed(record: Any) -> Any:
        orjson.loads(record.value)
        return record.key.decode(), record.timestamp[1]

    def put_out(counted: Any) -> Any:
        key, (number, timestamp) = counted
        return KafkaSinkMessage(key.encode(), number.to_bytes(8, "big"), timestamp=timestamp)

    return op.map("put-out", op.stateful_map("count", op.map("key", records, keyed), add), put_out)


class Statistics(windowing.WindowLogic[Any, Any, Any]):
    """The statistics of a window, output at every change."""

    def __init__(self, so_far: Any) -> None:
        self._so_far = so_far

    def on_value(self, value: Any) -> Iterable[Any]:
        price = value[0]
        if self._so_far is None:
            self._so_far = [1, price, price, price]
        else:
            number, total, low, high = self._so_far
            self._so_far = [number + 1, total + price, min(low, price), max(high, price)]
        return [self._so_far]

    def on_merge(self, original: Any) -> Iterable[Any]:
        return []

    def on_close(self) -> Iterable[Any]:
        return []

    def snapshot(self) -> Any:
        return self._so_far


def statistics(records: Any, users: Any) -> Any:
    def keyed(record: Any) -> Any:
        trade = orjson.loads(record.value)
        return trade["symbol"], (trade["price"], EPOCH + timedelta(milliseconds=record.timestamp[1]))

    def put_out(window: Any) -> Any:
        symbol, (number, so_far) = window
        start = number * int(WINDOW.total_seconds()) * 1000
        return KafkaSinkMessage(symbol.encode() + start.to_bytes(8, "big"), orjson.dumps(so_far))

    clock = windowing.EventClock(ts_getter=lambda value: value[1], wait_for_system_duration=GRACE)
    windower = windowing.TumblingWindower(length=WINDOW, align_to=EPOCH)
    prices = op.map("key", records, keyed)
    windows = windowing.window("statistics", prices, clock, windower, Statistics, ordered=False)
    return op.map("put-out", windows.down, put_out)


def enrich(records: Any, users: Any) -> Any:
    def join(record: Any) -> Any:
        trade = orjson.loads(record.value)
        value = {"symbol": trade["symbol"], "size": trade["size"], "city": users[trade["user"]]["city"]}
        return KafkaSinkMessage(record.key, orjson.dumps(value), timestamp=record.timestamp[1])

    return op.map("work", records, join)


def read_users(address: str, topic: str, count: int = 1000) -> dict[str, Any]:
    """Read the table once: Bytewax has no table that is kept up to date beside a stream."""
    users: dict[str, Any] = {}
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": f"users-{time.time_ns()}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    while len(users) < count:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            users[message.key().decode()] = json.loads(message.value())
    consumer.close()
    return users


def recovery(folder: Path, process: int, processes: int) -> RecoveryConfig:
    """Return where snapshots go. With them Bytewax runs at least once."""
    ready = folder / "ready"
    if process == 0:
        (folder / "recovery").mkdir()
        init_db_dir(folder / "recovery", processes)
        ready.touch()
    while not ready.exists():
        time.sleep(0.05)
    return RecoveryConfig(str(folder / "recovery"))


def main() -> None:
    given = json.loads(sys.argv[1])
    work = given["work"]
    users = read_users(given["address"], given["users"]) if work == "W5" else None
    builders: dict[str, Callable[[Any, Any], Any]] = {
        "W1": parse,
        "W2": count,
        "W3": count,
        "W4": statistics,
        "W5": enrich,
    }
    flow = Dataflow("peer")
    records = op.input("in", flow, KafkaSource([given["address"]], [given["source"]]))
    op.output("out", builders[work](records, users), KafkaSink([given["address"]], given["sink"]))
    cli_main(
        flow,
        process_id=given["process"],
        addresses=[f"127.0.0.1:{port}" for port in given["ports"]],
        epoch_interval=SNAPSHOTS,
        recovery_config=recovery(Path(given["folder"]), given["process"], given["processes"]),
    )


if __name__ == "__main__":
    main()
