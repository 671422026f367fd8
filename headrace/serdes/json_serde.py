"""JSON by msgspec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from headrace.records import Headers
from headrace.serdes.base import Serde
from headrace.serdes.error_messages import READ_HINT, shown, shown_bytes

T = TypeVar("T")
S = TypeVar("S")

_encode = msgspec.json.Encoder().encode


class JsonSerde(Serde[T]):
    """Write values as compact JSON in UTF-8.

    >>> Json.serialize("orders", {"id": 7, "items": ["tea", None]})
    b'{"id":7,"items":["tea",null]}'

    With a schema (a ``msgspec.Struct``, dataclass, ``TypedDict``, ``list[int]``, …) data is checked and converted when
    it is read:

    >>> import msgspec
    >>> class Order(msgspec.Struct):
    ...     id: int
    >>> Json(Order).deserialize("orders", b'{"id":7}')
    Order(id=7)

    Types that JSON does not have change: a tuple or set becomes a list, a key of a dict a str, NaN and infinities None.
    Dates, decimals, UUIDs and bytes become strings, and a schema turns them back.
    """

    def __init__(self, schema: Any = None) -> None:
        self._schema = schema
        try:
            self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Any if schema is None else schema)
        except TypeError as error:
            raise TypeError(
                f"serdes.Json: expected a type that msgspec can read, got {shown(schema)}: {error}"
            ) from error

    @overload
    def __call__(self) -> JsonSerde[T]: ...
    @overload
    def __call__(self, schema: type[S]) -> JsonSerde[S]: ...
    @overload
    def __call__(self, schema: Any) -> JsonSerde[Any]: ...
    def __call__(self, schema: Any = None) -> JsonSerde[Any]:
        return self if schema is None else JsonSerde(schema)

    def __repr__(self) -> str:
        return "serdes.Json" if self._schema is None else f"serdes.Json({self._schema_name()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (JsonSerde, (self._schema,))  # msgspec's decoder cannot be pickled

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[T], bytes]:
        return _encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], T]:
        return self._decoder.decode

    def write_problem(self, value: Any, error: Exception) -> str:
        return f"expected a value that JSON can hold, got {shown(value)}: {error}"

    def read_problem(self, data: bytes, error: Exception) -> str:
        wanted = "JSON" if self._schema is None else f"JSON for {self._schema_name()}"
        return f"expected {wanted}, got {shown_bytes(data)}: {error}. {READ_HINT}"

    def _schema_name(self) -> str:
        return self._schema.__name__ if isinstance(self._schema, type) else repr(self._schema)


Json: JsonSerde[Any] = JsonSerde()
