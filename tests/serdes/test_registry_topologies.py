"""Topologies with registry serdes: the registry rejects a subject with two incompatible schemas.

This also tests `serdes.incomplete` and `serdes.renamed_topic`, which give every topic its own subject.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from headrace import (
    JoinWindows,
    Materialized,
    StreamsBuilder,
    StreamsConfig,
    TumblingWindows,
    Window,
    Windowed,
    serdes,
)
from headrace.testing import TopologyTestDriver
from tests.registry import SchemaRegistry


def record(name: str, /, **fields: str) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


ORDER = record("Order", customer="long", item="string", amount="int")
TOTAL = record("Total", amount="long", orders="int")
CUSTOMER = record("Customer", name="string")


@dataclass
class Order:
    customer: int
    item: str
    amount: int


@dataclass
class Total:
    amount: int = 0
    orders: int = 0


def subjects(registry: SchemaRegistry) -> list[str]:
    found: list[str] = registry.answer("GET", "/subjects", {}, None)
    return found


def test_an_aggregation_behind_a_repartition(schema_registry: SchemaRegistry) -> None:
    url = schema_registry.url
    number, text = serdes.Avro("long", url), serdes.Avro("string", url)
    orders, totals = serdes.Avro(ORDER, url, type=Order), serdes.Avro(TOTAL, url, type=Total)
    builder = StreamsBuilder()
    (
        builder.stream("orders", key_serde=number, value_serde=orders)
        .group_by(lambda key, order: order.item, key_serde=text, value_serde=orders, name="by-item")
        .aggregate(
            Total,
            lambda item, order, total: Total(total.amount + order.amount, total.orders + 1),
            store=Materialized("totals", key_serde=text, value_serde=totals),
        )
        .to_stream()
        .to("per-item", key_serde=text, value_serde=totals)
    )

    with TopologyTestDriver(builder.build(), StreamsConfig(application_id="shop")) as driver:
        driver.create_input_topic("orders").pipe_key_values(
            [(1, Order(5, "tea", 2)), (2, Order(5, "milk", 1)), (3, Order(6, "tea", 4))]
        )
        results = driver.create_output_topic("per-item").read_key_values()
        kept = driver.state_store("totals").get("tea")

    assert results == [("tea", Total(2, 1)), ("milk", Total(1, 1)), ("tea", Total(6, 2))]
    assert kept == Total(6, 2)
    assert subjects(schema_registry) == [
        "orders-key",
        "orders-value",
        "per-item-key",
        "per-item-value",
        "shop-by-item-repartition-key",
        "shop-by-item-repartition-value",
        "shop-totals-changelog-key",
        "shop-totals-changelog-value",
    ]


def test_windowed_keys(schema_registry: SchemaRegistry) -> None:
    text = serdes.Avro("string", schema_registry.url)
    builder = StreamsBuilder()
    (
        builder.stream("in", key_serde=text, value_serde=serdes.Long)
        .group_by_key()
        .windowed_by(TumblingWindows(10))
        .count(store=Materialized("counts", key_serde=text))
        .to_stream()
        .to("out", key_serde=serdes.Windowed(text, 10))
    )

    with TopologyTestDriver(builder.build(), StreamsConfig(application_id="shop")) as driver:
        driver.create_input_topic("in").pipe_input("a", 1, 12)
        results = driver.create_output_topic("out").read_key_values()

    assert results == [(Windowed("a", Window(10, 20)), 1)]
    assert subjects(schema_registry) == ["in-key", "out-key", "shop-counts-changelog-key"]


def test_default_serdes(schema_registry: SchemaRegistry) -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(lambda key, value: True).to("out")
    text, order = serdes.Avro("string", schema_registry.url), serdes.Avro(ORDER, schema_registry.url)
    config = StreamsConfig(application_id="shop", default_key_serde=text, default_value_serde=order)
    value = {"customer": 5, "item": "tea", "amount": 2}

    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("in", key_serde=text, value_serde=order).pipe_input("a", value)
        results = driver.create_output_topic("out").read_key_values()

    assert results == [("a", value)]
    assert subjects(schema_registry) == ["in-key", "in-value", "out-key", "out-value"]


def test_a_join_by_foreign_key_whose_keys_and_rows_have_four_schemas(schema_registry: SchemaRegistry) -> None:
    url = schema_registry.url
    text, number = serdes.Avro("string", url), serdes.Avro("long", url)
    orders, customers = serdes.Avro(ORDER, url), serdes.Avro(CUSTOMER, url)
    builder = StreamsBuilder()
    left = builder.table("orders", key_serde=text, value_serde=orders)
    right = builder.table("customers", key_serde=number, value_serde=customers)
    joined = left.join(
        right, lambda order, by: f"{order['item']} for {by['name']}", foreign_key=lambda o: o["customer"]
    )
    joined.to_stream().to("out", key_serde=text, value_serde=serdes.String)

    with TopologyTestDriver(builder.build(), StreamsConfig(application_id="shop")) as driver:
        driver.create_input_topic("customers").pipe_input(5, {"name": "Ada"})
        driver.create_input_topic("orders").pipe_input("a", {"customer": 5, "item": "tea", "amount": 2})
        driver.create_input_topic("customers").pipe_input(5, {"name": "Bob"})
        results = driver.create_output_topic("out").read_key_values()

    assert results == [("a", "tea for Ada"), ("a", "tea for Bob")]
    ours = [name for name in subjects(schema_registry) if not name.startswith(("orders-", "customers-", "out-"))]
    assert all(name.startswith("shop-") for name in ours)


@pytest.mark.parametrize("side", ["left", "right"])
def test_an_outer_join_of_two_schemas(schema_registry: SchemaRegistry, side: str) -> None:
    url = schema_registry.url
    text, orders, customers = serdes.Avro("string", url), serdes.Avro(ORDER, url), serdes.Avro(CUSTOMER, url)
    builder = StreamsBuilder()
    left = builder.stream("left", key_serde=text, value_serde=orders)
    right = builder.stream("right", key_serde=text, value_serde=customers)
    joined = left.outer_join(right, lambda order, by: [order, by], window=JoinWindows(10))
    joined.to("out", key_serde=text, value_serde=serdes.Json)
    order, customer = {"customer": 5, "item": "tea", "amount": 2}, {"name": "Ada"}

    with TopologyTestDriver(builder.build(), StreamsConfig(application_id="shop")) as driver:
        driver.create_input_topic("left").pipe_input("a", order, 0)
        driver.create_input_topic("right").pipe_input("b", customer, 0)
        value: Any = order if side == "left" else customer
        driver.create_input_topic(side).pipe_input("c", value, 1000)
        results = driver.create_output_topic("out").read_key_values()

    assert sorted(results) == [("a", [order, None]), ("b", [None, customer])]
