"""The work W1 to W5 in plain PySpark, as DataFrames or with `transformWithState`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

TRADE = "user string, symbol string, price double, size int"
USER = "name string, city string"


def trades_of(records: DataFrame) -> DataFrame:
    """Return keys, timestamps, and the columns of the trades."""
    parsed = records.select("key", "timestamp", f.from_json(f.col("value").cast("string"), TRADE).alias("trade"))
    return parsed.select("key", "timestamp", "trade.*")


def eight_bytes(number: Any) -> Any:
    return f.unhex(f.lpad(f.hex(number), 16, "0"))


def window_key(start: Any) -> Any:
    return f.concat(f.encode("symbol", "utf-8"), eight_bytes(start)).alias("key")


def parse(records: DataFrame, users: DataFrame) -> DataFrame:
    worth = f.struct("symbol", (f.col("price") * f.col("size")).alias("value"))
    return trades_of(records).where("price > 450").select("key", f.to_json(worth).alias("value"))


def count(records: DataFrame, users: DataFrame) -> DataFrame:
    return records.groupBy("key").count().select("key", eight_bytes(f.col("count")).alias("value"))


def statistics(records: DataFrame, users: DataFrame) -> DataFrame:
    price = f.col("price")
    windows = (
        trades_of(records)
        .withWatermark("timestamp", "2 seconds")
        .groupBy(f.window("timestamp", "10 seconds"), "symbol")
        .agg(
            f.count(price).cast("double").alias("n"),
            f.sum(price).alias("s"),
            f.min(price).alias("l"),
            f.max(price).alias("g"),
        )
    )
    value = f.to_json(f.array("n", "s", "l", "g")).alias("value")
    return windows.select(window_key(f.unix_millis(f.col("window.start"))), value)


def enrich(records: DataFrame, users: DataFrame) -> DataFrame:
    known = users.select(
        f.col("key").cast("string").alias("user"), f.from_json(f.col("value").cast("string"), USER).alias("row")
    ).cache()
    joined = trades_of(records).join(f.broadcast(known), "user")
    return joined.select("key", f.to_json(f.struct("symbol", "size", "row.city")).alias("value"))


class Count(StatefulProcessor):
    """Counts the records of a key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        number = (self._count.get()[0] if self._count.exists() else 0) + sum(1 for _ in rows)
        self._count.update((number,))
        yield Row(key=key[0], number=number)


class Statistics(StatefulProcessor):
    """Keeps the statistics of a symbol's windows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._windows = handle.getMapState("windows", "start long", "n long, s double, l double, g double")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        windows: dict[int, tuple[Any, ...]] = {}
        for row in rows:
            start, price = row.start, row.price
            so_far = windows.get(start)
            if so_far is None and self._windows.containsKey((start,)):
                so_far = tuple(self._windows.getValue((start,)))
            if so_far is None:
                windows[start] = (1, price, price, price)
            else:
                number, total, low, high = so_far
                windows[start] = (number + 1, total + price, min(low, price), max(high, price))
        for start, (number, total, low, high) in windows.items():
            self._windows.updateValue((start,), (number, total, low, high))
            yield Row(symbol=key[0], start=start, n=float(number), s=total, l=low, g=high)


def count_by_key(records: DataFrame, users: DataFrame) -> DataFrame:
    counts = (
        records.select("key").groupBy("key").transformWithState(Count(), "key binary, number long", "Update", "None")
    )
    return counts.select("key", eight_bytes(f.col("number")).alias("value"))


def statistics_by_key(records: DataFrame, users: DataFrame) -> DataFrame:
    start = f.floor(f.unix_millis("timestamp") / 10_000) * 10_000
    prices = trades_of(records).select("symbol", start.alias("start"), "price")
    windows = prices.groupBy("symbol").transformWithState(
        Statistics(), "symbol string, start long, n double, s double, l double, g double", "Update", "None"
    )
    return windows.select(window_key(f.col("start")), f.to_json(f.array("n", "s", "l", "g")).alias("value"))


NATIVE = {"W1": parse, "W2": count, "W3": count, "W4": statistics, "W5": enrich}
WITH_STATE = {"W2": count_by_key, "W3": count_by_key, "W4": statistics_by_key}


def main() -> None:
    given = json.loads(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable  # otherwise workers use the Python on the PATH
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", given["jars"])
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", given["partitions"])
        .config("spark.sql.session.timeZone", "UTC")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )
    options = {"kafka.bootstrap.servers": given["address"], "kafka.isolation.level": "read_committed"}
    records = spark.readStream.format("kafka").options(**options, subscribe=given["source"], startingOffsets="earliest")
    users = spark.read.format("kafka").options(**options, subscribe=given["users"])
    build = (NATIVE if given["how"] == "native" else WITH_STATE)[given["work"]]
    query = (
        build(records.load(), users.load())
        .writeStream.format("kafka")
        .options(**{"kafka.bootstrap.servers": given["address"], "topic": given["sink"]})
        .option("checkpointLocation", f"{given['folder']}/checkpoint")
        .outputMode("update")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
