"""The work W1 to W5 in Quix Streams: `python with_quix.py <JSON object>`."""

from __future__ import annotations

import json
import sys
from typing import Any

import orjson
from quixstreams import Application
from quixstreams.models import JSONSerializer
from quixstreams.state import State

WINDOW_MS, GRACE_MS = 10_000, 2_000


def parse(trades: Any, sink: Any, users: Any) -> None:
    trades = trades.filter(lambda trade: trade["price"] > 450)
    trades = trades.apply(lambda trade: {"symbol": trade["symbol"], "value": trade["price"] * trade["size"]})
    trades.to_topic(sink)


def count(trades: Any, sink: Any, users: Any) -> None:
    def add(trade: Any, state: State) -> bytes:
        number = state.get("count", 0) + 1
        state.set("count", number)
        return number.to_bytes(8, "big")

    trades.apply(add, stateful=True).to_topic(sink)


def statistics(trades: Any, sink: Any, users: Any) -> None:
    def begin(trade: Any) -> Any:
        price = trade["price"]
        return [1, price, price, price]

    def add(so_far: Any, trade: Any) -> Any:
        number, total, low, high = so_far
        price = trade["price"]
        return [number + 1, total + price, min(low, price), max(high, price)]

    trades = trades.apply(lambda trade: {"symbol": trade["symbol"], "price": trade["price"]})
    trades = trades.group_by("symbol", key_serializer="str", key_deserializer="str")
    windows = trades.tumbling_window(WINDOW_MS, GRACE_MS).reduce(add, begin).current()
    windows = windows.apply(
        lambda window, symbol, timestamp, headers: (
            symbol.encode() + window["start"].to_bytes(8, "big"),
            window["value"],
        ),
        metadata=True,
    )
    # The key is made from the value, so remove the value only afterwards.
    windows.to_topic(sink, key=lambda window: window[0])


def enrich(trades: Any, sink: Any, users: Any) -> None:
    """Join with a table that is kept up to date. It needs the same key: records go by user, then back by their key."""

    def join(trade: Any, user: Any) -> Any:
        return trade["key"], {"symbol": trade["symbol"], "size": trade["size"], "city": user["city"]}

    trades = trades.apply(lambda trade, key, timestamp, headers: {**trade, "key": key}, metadata=True)
    trades = trades.group_by("user", key_serializer="str", key_deserializer="str")
    trades.join_asof(users, on_merge=join).to_topic(sink, key=lambda result: result[0])


def enrich_from_dict(trades: Any, sink: Any, users: Any) -> None:
    def join(trade: Any) -> Any:
        return {"symbol": trade["symbol"], "size": trade["size"], "city": users[trade["user"]]["city"]}

    trades.apply(join).to_topic(sink)


def read_users(app: Application, topic: str, count: int = 1000) -> dict[str, Any]:
    """Read the table once: later changes do not show."""
    users: dict[str, Any] = {}
    with app.get_consumer(auto_commit_enable=False) as consumer:
        consumer.subscribe([topic])
        while len(users) < count:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                users[message.key().decode()] = json.loads(message.value())
    return users


def main() -> None:
    given = json.loads(sys.argv[1])
    exactly_once = given["guarantee"] == "exactly_once_v2"

    def application(group: str) -> Application:
        return Application(
            broker_address=given["address"],
            consumer_group=group,
            auto_offset_reset="earliest",
            state_dir=f"{given['folder']}/{given['process']}",
            processing_guarantee="exactly-once" if exactly_once else "at-least-once",
            **({"commit_interval": 0.1} if exactly_once else {}),
            loglevel="WARNING",
        )

    work = given["work"]
    app = application(given["application"])
    users: Any = None
    if given["users_once"]:
        users = read_users(application(f"{given['application']}-users-{given['process']}"), given["users"])
    elif work == "W5":
        users = app.dataframe(app.topic(given["users"], key_deserializer="str", value_deserializer="json"))
    source = app.topic(given["source"], key_deserializer="str", value_deserializer="json")
    second = JSONSerializer(dumps=lambda pair: orjson.dumps(pair[1]))
    kinds = {"W2": "bytes", "W3": "bytes", "W4": second, "W5": "json" if given["users_once"] else second}
    sink = app.topic(
        given["sink"], key_serializer="bytes" if work == "W4" else "str", value_serializer=kinds.get(work, "json")
    )
    enriching = enrich_from_dict if given["users_once"] else enrich
    build = {"W1": parse, "W2": count, "W3": count, "W4": statistics, "W5": enriching}[work]
    build(app.dataframe(source), sink, users)
    app.run()


if __name__ == "__main__":
    main()
