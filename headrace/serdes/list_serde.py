"""Lists, in the format of Kafka's ListSerializer."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.records import Headers
from headrace.serdes.base import Serde
from headrace.serdes.by_name import as_serde
from headrace.serdes.error_messages import READ_HINT, mistaken, shown, shown_bytes

T = TypeVar("T")

_CONSTANT_SIZE = 0
_VARIABLE_SIZE = 1
_NULL_SIZE = -1

_pack_int = struct.Struct(">i").pack
_unpack_int = struct.Struct(">i").unpack_from


class ListSerde(Serde[list[T]]):
    """Write a list or tuple, whose entries may be None; read a list.

    >>> from headrace.serdes import Short, String
    >>> List(String).deserialize("words", List(String).serialize("words", ["to", None, "be"]))
    ['to', None, 'be']

    Layout; all numbers are 4 bytes, the highest first:

    - a list of Short, Integer, Long, Float, Double or UUID: a byte 0; the number of None entries and the index of each;
      the number of entries; the bytes of the entries that are not None, one after the other;
    - any other list, such as of Boolean or String: a byte 1; the number of entries; each entry's size and bytes, and
      for None only the size -1.

    >>> List(Short).serialize("codes", [7, None]).hex(" ")
    '00 00 00 00 01 00 00 00 01 00 00 00 02 00 07'
    >>> List(String).serialize("words", ["to", None]).hex(" ")
    '01 00 00 00 02 00 00 00 02 74 6f ff ff ff ff'

    The first byte decides how a list is read. Unlike in Java, bytes that are left over are an error.
    """

    def __init__(self, inner: Serde[T]) -> None:
        self.inner: Serde[T] = as_serde(inner, "inner serde of serdes.List")
        self.uses_headers = self.inner.uses_headers

    def __repr__(self) -> str:
        return f"serdes.List({self.inner!r})"

    def for_keys(self) -> ListSerde[T]:
        return ListSerde(self.inner.for_keys())

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[list[T]], bytes]:
        encode_entry = self.inner.encoder(topic, headers)
        if self.inner.list_entry_size is None:
            return _variable_size_encoder(encode_entry)
        return _constant_size_encoder(encode_entry)

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], list[T]]:
        decode_entry = self.inner.decoder(topic, headers)
        inner = self.inner
        entry_size = inner.list_entry_size

        def decode(data: bytes) -> list[Any]:
            try:
                entries = _split(data, entry_size)
            except struct.error as error:
                raise ValueError(f"the data ends too early. {READ_HINT}") from error
            values: list[T | None] = []
            try:
                for entry in entries:
                    values.append(None if entry is None else decode_entry(entry))
            except Exception as error:
                problem = inner.read_problem(entries[len(values)] or b"", error)
                raise ValueError(f"entry {len(values)}: {problem}") from error
            return values

        return decode

    def write_problem(self, value: Any, error: Exception) -> str:
        if not isinstance(value, list | tuple):
            return mistaken("list or tuple", value)
        encode_entry = self.inner.encoder(None)
        for index, entry in enumerate(value):
            try:
                if entry is not None and encode_entry(entry) is None:
                    return f"entry {index}: {self.inner!r} wrote null for {shown(entry)}"
            except Exception as entry_error:
                return f"entry {index}: {self.inner.write_problem(entry, entry_error)}"
        return super().write_problem(value, error)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return f"expected a list, got {shown_bytes(data)}: {error}"


List = ListSerde


def _constant_size_encoder(encode_entry: Callable[[T], bytes]) -> Callable[[list[T]], bytes]:
    def encode(values: list[T]) -> bytes:
        _check_list(values)
        nulls = [index for index, value in enumerate(values) if value is None] if None in values else []
        parts = [b"\x00", _pack_int(len(nulls)), *map(_pack_int, nulls), _pack_int(len(values))]
        parts += [encode_entry(value) for value in values if value is not None]
        return b"".join(parts)

    return encode


def _variable_size_encoder(encode_entry: Callable[[T], bytes]) -> Callable[[list[T]], bytes]:
    null = _pack_int(_NULL_SIZE)

    def encode(values: list[T]) -> bytes:
        _check_list(values)
        parts = [b"\x01", _pack_int(len(values))]
        for value in values:
            if value is None:
                parts.append(null)
            else:
                data = encode_entry(value)
                parts += (_pack_int(len(data)), data)
        return b"".join(parts)

    return encode


def _check_list(values: object) -> None:
    if not isinstance(values, list | tuple):
        raise TypeError("not a list or tuple")


def _split(data: bytes, entry_size: int | None) -> list[bytes | None]:
    """Split a list into the bytes of its entries. `struct.error` means that the data ends too early."""
    strategy = data[0] if data else None
    if strategy == _VARIABLE_SIZE:
        entries, end = _split_by_sizes(data)
    elif strategy != _CONSTANT_SIZE:
        raise ValueError(f"the first byte must be 0 or 1, not {strategy}. {READ_HINT}")
    elif entry_size is None:
        raise ValueError(
            f"its entries have a constant size, but the inner serde writes entries of any size. {READ_HINT}"
        )
    else:
        entries, end = _split_by_size(data, entry_size)
    if end < len(data):
        raise ValueError(f"{len(data) - end} bytes are left over. {READ_HINT}")
    return entries


def _split_by_size(data: bytes, size: int) -> tuple[list[bytes | None], int]:
    null_count = _read_count(data, 1, "null entries")
    at = 9 + 4 * null_count
    count = _read_count(data, at - 4, "entries")
    nulls = set(struct.unpack_from(f">{null_count}i", data, 5)) if null_count else ()
    # Nulls take no bytes: without this check a corrupt count could ask for billions of entries.
    end = at + size * (count - len(nulls))
    if not at <= end <= len(data):
        entries_said = f"{count} entries of {size} bytes, {len(nulls)} of them null"
        raise ValueError(f"{entries_said}, but {len(data) - at} bytes are left. {READ_HINT}")
    entries: list[bytes | None] = [data[start : start + size] for start in range(at, end, size)]
    if nulls:
        if not 0 <= min(nulls) <= max(nulls) < count:
            raise ValueError(f"null entries from {min(nulls)} to {max(nulls)}, but {count} entries. {READ_HINT}")
        present = iter(entries)
        entries = [None if index in nulls else next(present) for index in range(count)]
    return entries, end


def _split_by_sizes(data: bytes) -> tuple[list[bytes | None], int]:
    entries: list[bytes | None] = []
    length = len(data)
    at = 5
    for _ in range(_read_count(data, 1, "entries")):
        (size,) = _unpack_int(data, at)
        at += 4
        if size >= 0:
            end = at + size
            if end > length:
                raise ValueError(f"an entry of {size} bytes, but {length - at} are left. {READ_HINT}")
            entries.append(data[at:end])
            at = end
        elif size == _NULL_SIZE:
            entries.append(None)
        else:
            raise ValueError(f"an entry of {size} bytes. {READ_HINT}")
    return entries, at


def _read_count(data: bytes, at: int, what: str) -> int:
    count: int = _unpack_int(data, at)[0]
    if count < 0:
        raise ValueError(f"{count} {what}. {READ_HINT}")
    return count
