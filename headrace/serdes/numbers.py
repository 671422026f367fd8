"""Serdes of numbers, in the formats of Kafka's own serdes.

Each is an instance. Calling it returns the instance, so that `Long` and `Long()` are the same. Encoders are the C
functions of `struct`, and decoders one Python call around them. That was measured to be faster than `int.to_bytes`, and
than `int.from_bytes` with a check of the size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from headrace.records import Headers
from headrace.serdes.base import ReadySerde
from headrace.serdes.error_messages import mistaken, shown, wrong_size

T = TypeVar("T")


class _NumberSerde(ReadySerde[T]):
    """A number in a fixed number of bytes, the highest first."""

    format: ClassVar[struct.Struct]

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[T], bytes]:
        return self.format.pack

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], T]:
        unpack = self.format.unpack

        def decode(data: bytes) -> T:
            return unpack(data)[0]  # type: ignore[no-any-return]

        return decode

    def read_problem(self, data: bytes, error: Exception) -> str:
        return wrong_size(self.format.size, data)


class _IntegralSerde(_NumberSerde[int]):
    exact_type = int

    def write_problem(self, value: Any, error: Exception) -> str:
        if not isinstance(value, int):
            return mistaken("int", value)
        high = 2 ** (8 * self.format.size - 1)
        wider = "serdes.Long or serdes.Json" if self.format.size < 8 else "serdes.Json"
        return f"expected int from {-high} to {high - 1}, got {shown(value)}. Use {wider} for larger numbers"


class IntegerSerde(_IntegralSerde):
    """Write int as 4 bytes. True and False count as 1 and 0, as everywhere in Python.

    >>> Integer.serialize("counts", 1)
    b'\\x00\\x00\\x00\\x01'
    """

    name = "Integer"
    format = struct.Struct(">i")
    list_entry_size = 4


class LongSerde(_IntegralSerde):
    """Write int as 8 bytes. True and False count as 1 and 0, as everywhere in Python.

    >>> Long.serialize("counts", -2)
    b'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe'
    """

    name = "Long"
    format = struct.Struct(">q")
    list_entry_size = 8


class ShortSerde(_IntegralSerde):
    """Write int as 2 bytes. True and False count as 1 and 0, as everywhere in Python.

    >>> Short.serialize("counts", 258)
    b'\\x01\\x02'
    """

    name = "Short"
    format = struct.Struct(">h")
    list_entry_size = 2


class _RealSerde(_NumberSerde[float]):
    def write_problem(self, value: Any, error: Exception) -> str:
        if isinstance(value, int | float):
            return f"expected float that fits {self.format.size} bytes, got {shown(value)}: {error}"
        return mistaken("float", value)


class FloatSerde(_RealSerde):
    """Write float as 4 bytes, in single precision. Reading gives the nearest number of that precision.

    >>> Float.deserialize("degrees", Float.serialize("degrees", 0.1))
    0.10000000149011612
    """

    name = "Float"
    format = struct.Struct(">f")
    list_entry_size = 4


class DoubleSerde(_RealSerde):
    """Write float as 8 bytes. Other numbers, such as int, are written too and read as float.

    >>> Double.deserialize("degrees", Double.serialize("degrees", 0.1))
    0.1
    """

    name = "Double"
    format = struct.Struct(">d")
    exact_type = float
    list_entry_size = 8


Integer = IntegerSerde()
Long = LongSerde()
Short = ShortSerde()
Float = FloatSerde()
Double = DoubleSerde()
