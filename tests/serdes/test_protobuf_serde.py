"""Protobuf with a registry: the same bytes as Confluent's serializers, nested messages, imports, dicts and classes."""

import pickle
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pydantic
import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp

from headrace import SerializationError, serdes
from headrace.serdes.registry import Registry
from tests.serdes.messages import Delivery, NewerOrder, Order, Receipt

WHERE = SerializationContext("orders", MessageField.VALUE)
TEA = Order(id=7, items=[{"name": "tea"}], counts={"a": 1})


EVENING = datetime(2026, 1, 2, 20, 4, 5, 678901, tzinfo=UTC)


class Delivered(msgspec.Struct):
    at: datetime | None = None
    took: timedelta | None = None
    tries: list[datetime] = []
    seen: dict[str, datetime] = {}
    next: "Delivered | None" = None


class DeliveredModel(pydantic.BaseModel):
    at: datetime | None = None
    took: timedelta | None = None
    tries: list[datetime] = []
    seen: dict[str, datetime] = {}
    next: "DeliveredModel | None" = None


def client_of(url: str) -> Any:
    return Registry.of(url, "test").client


@pytest.mark.parametrize("value", [TEA, Order(), Receipt(number=300)], ids=["message", "empty", "nested"])
def test_bytes_are_those_of_confluents_serializers(mock_registry: str, value: Any) -> None:
    client = client_of(mock_registry)
    serde = serdes.Protobuf(type(value), mock_registry)

    data = serde.serialize("orders", value)

    assert data == ProtobufSerializer(type(value), client)(value, WHERE)
    assert ProtobufDeserializer(type(value), {}, client)(data, WHERE) == value
    assert serde.deserialize("orders", data) == value
    assert sorted(client.get_subjects()) == ["orders-value", "shop/items.proto"]


def test_the_index_of_a_message_comes_before_its_data(mock_registry: str) -> None:
    data = serdes.Protobuf(Receipt, mock_registry).serialize("receipts", Receipt(number=1))

    assert data == b"\x00\x00\x00\x00\x02\x04\x02\x00\x08\x01"


def test_fields_are_read_by_their_numbers(mock_registry: str) -> None:
    newer = serdes.Protobuf(NewerOrder, mock_registry)
    older = serdes.Protobuf(Order, mock_registry)

    assert newer.deserialize("orders", older.serialize("orders", Order(id=7))) == NewerOrder(id=7)
    read: Any = older.deserialize("orders", newer.serialize("orders", NewerOrder(id=7, paid=3)))
    assert read.id == 7


def test_messages_can_be_dicts(mock_registry: str) -> None:
    serde = serdes.Protobuf(Order, mock_registry, type=dict)
    order = {
        "id": 7,
        "note": None,
        "items": [{"name": "tea"}],
        "first": {"name": "tea"},
        "counts": {"a": 1},
        "at": Timestamp(seconds=5),
    }

    data = serde.serialize("orders", order)

    assert serdes.Protobuf(Order, mock_registry).deserialize("orders", data) == Order(**order)
    assert serde.deserialize("orders", data) == order
    assert serde.deserialize("orders", serde.serialize("orders", {})) == {
        "id": 0,
        "note": None,
        "items": [],
        "first": None,
        "counts": {},
        "at": None,
    }


def test_messages_can_be_instances_of_a_class(mock_registry: str) -> None:
    @dataclass
    class Item:
        name: str

    @dataclass
    class Ordered:
        id: int
        note: str | None = None
        items: list[Item] = field(default_factory=list)

    serde = serdes.Protobuf(Order, mock_registry, type=Ordered)
    ordered = Ordered(7, "quick", [Item("tea")])

    assert serde.deserialize("orders", serde.serialize("orders", ordered)) == ordered


@pytest.mark.parametrize("kind", [Delivered, DeliveredModel])
def test_times_of_a_class_are_pythons(mock_registry: str, kind: Any) -> None:
    serde = serdes.Protobuf(Delivery, mock_registry, type=kind)
    took = timedelta(seconds=-1.5)
    delivered = kind(at=EVENING, took=took, tries=[EVENING], seen={"bell": EVENING}, next=kind(at=EVENING))

    data = serde.serialize("deliveries", delivered)

    message: Any = serdes.Protobuf(Delivery, mock_registry).deserialize("deliveries", data)
    assert (message.at.ToDatetime(UTC), message.took.ToTimedelta()) == (EVENING, took)
    assert serde.deserialize("deliveries", data) == delivered
    assert serde.deserialize("deliveries", serde.serialize("deliveries", kind())) == kind()


def test_times_are_read_in_utc(mock_registry: str) -> None:
    serde = serdes.Protobuf(Delivery, mock_registry, type=Delivered)
    tokyo = EVENING.astimezone(timezone(timedelta(hours=9)))

    read: Any = serde.deserialize("deliveries", serde.serialize("deliveries", Delivered(at=tokyo)))
    without_zone: Any = serde.deserialize(
        "deliveries", serde.serialize("deliveries", Delivered(at=EVENING.replace(tzinfo=None)))
    )

    assert (read.at, read.at.tzinfo) == (EVENING, UTC)
    assert without_zone.at == EVENING


def test_equal_maps_have_equal_bytes(mock_registry: str) -> None:
    serde = serdes.Protobuf(Order, mock_registry)
    names = [str(number) for number in range(50)]

    one = serde.serialize("orders", Order(counts=dict.fromkeys(names, 1)))
    other = serde.serialize("orders", Order(counts=dict.fromkeys(reversed(names), 1)))

    assert one == other


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("topic", "orders-key"), ("record", "shop.Order"), ("topic_record", "orders-shop.Order")],
)
def test_subjects_are_named_by_the_strategy(mock_registry: str, strategy: str, subject: str) -> None:
    serdes.Protobuf(Order, mock_registry, subject=strategy).for_keys().serialize("orders", TEA)

    assert subject in client_of(mock_registry).get_subjects()


def test_nothing_is_registered_without_auto_register(mock_registry: str) -> None:
    serde = serdes.Protobuf(Order, mock_registry, auto_register=False)

    with pytest.raises(SerializationError, match=r"subject 'shop/items\.proto': the registry at .* has no such schema"):
        serde.serialize("orders", TEA)
    written = serdes.Protobuf(Order, mock_registry).serialize("orders", TEA)

    assert serde.serialize("orders", TEA) == written
    assert serdes.Protobuf(Order, mock_registry, use_latest=True).serialize("orders", TEA) == written


def test_a_serde_can_be_sent_to_another_process(mock_registry: str) -> None:
    serde = serdes.Protobuf(Order, mock_registry)

    arrived = pickle.loads(pickle.dumps(serde))

    assert arrived.deserialize("orders", serde.serialize("orders", TEA)) == TEA
    assert repr(arrived) == "serdes.Protobuf(shop.Order, registry)"


def test_other_messages_are_refused(mock_registry: str) -> None:
    serde = serdes.Protobuf(Order, mock_registry)

    with pytest.raises(SerializationError, match=r"expected a value for message shop\.Order, got Receipt"):
        serde.serialize("orders", Receipt())
    with pytest.raises(SerializationError, match=r"'orders': expected data for message shop\.Order, got 8 bytes"):
        serde.deserialize("orders", b"\x00\x00\x00\x00\x01\x00\xff\xff")
    with pytest.raises(SerializationError, match="expected a message of a schema registry"):
        serde.deserialize("orders", b"hello")
    with pytest.raises(SerializationError, match=r"expected data for message shop\.Order"):
        serde.deserialize("orders", b"\x00\x00\x00\x00\x01\x04")


def test_other_classes_than_messages_are_refused() -> None:
    with pytest.raises(TypeError, match=r"serdes\.Protobuf: expected a class of protobuf messages, got str"):
        serdes.Protobuf("shop.Order", "mock://unused")
