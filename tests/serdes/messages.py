"""Message classes as protoc makes them: of shop/deliveries.proto, shop/orders.proto and its import shop/items.proto."""

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import Default, DescriptorPool
from google.protobuf.duration_pb2 import DESCRIPTOR as DURATION
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP

_KINDS = {"int64": 3, "string": 9, "bytes": 12}


def _add(message: DescriptorProto, number: int, name: str, kind: str, label: int = 1) -> FieldDescriptorProto:
    field: FieldDescriptorProto = message.field.add(name=name, number=number, label=label)
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type, field.type_name = 11, kind
    return field


def _items() -> FileDescriptorProto:
    file = FileDescriptorProto(name="shop/items.proto", package="shop", syntax="proto3")
    _add(file.message_type.add(name="Item"), 1, "name", "string")
    return file


def _orders(**more_fields: str) -> FileDescriptorProto:
    file = FileDescriptorProto(name="shop/orders.proto", package="shop", syntax="proto3")
    file.dependency.extend(["shop/items.proto", TIMESTAMP.name])
    order = file.message_type.add(name="Order")
    _add(order, 1, "id", "int64")
    _add(order, 2, "note", "string").proto3_optional = True
    order.oneof_decl.add(name="_note")
    order.field[1].oneof_index = 0
    _add(order, 3, "items", ".shop.Item", label=3)
    _add(order, 4, "first", ".shop.Item")
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    _add(entry, 1, "key", "string")
    _add(entry, 2, "value", "int64")
    _add(order, 5, "counts", ".shop.Order.CountsEntry", label=3)
    _add(order, 6, "at", ".google.protobuf.Timestamp")
    for number, (name, kind) in enumerate(more_fields.items(), 7):
        _add(order, number, name, kind)
    payment = file.message_type.add(name="Payment")
    _add(payment.nested_type.add(name="Receipt"), 1, "number", "int64")
    return file


def _deliveries() -> FileDescriptorProto:
    file = FileDescriptorProto(name="shop/deliveries.proto", package="shop", syntax="proto3")
    file.dependency.extend([TIMESTAMP.name, DURATION.name])
    delivery = file.message_type.add(name="Delivery")
    _add(delivery, 1, "at", ".google.protobuf.Timestamp")
    _add(delivery, 2, "took", ".google.protobuf.Duration")
    _add(delivery, 3, "tries", ".google.protobuf.Timestamp", label=3)
    entry = delivery.nested_type.add(name="SeenEntry")
    entry.options.map_entry = True
    _add(entry, 1, "key", "string")
    _add(entry, 2, "value", ".google.protobuf.Timestamp")
    _add(delivery, 4, "seen", ".shop.Delivery.SeenEntry", label=3)
    _add(delivery, 5, "next", ".shop.Delivery")
    return file


def _class(name: str, file: FileDescriptorProto, pool: DescriptorPool) -> Any:
    for needed in (TIMESTAMP.serialized_pb, DURATION.serialized_pb, _items().SerializeToString()):
        pool.AddSerializedFile(needed)
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))


# As in a module that protoc made.
Order = _class("shop.Order", _orders(), Default())
Order.__module__ = __name__
Receipt = _class("shop.Payment.Receipt", _orders(), Default())
Delivery = _class("shop.Delivery", _deliveries(), Default())

NewerOrder = _class("shop.Order", _orders(paid="int64"), DescriptorPool())
