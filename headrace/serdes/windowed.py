"""Windowed keys, in the formats of Kafka Streams' windowed serdes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from headrace import records
from headrace.durations import milliseconds
from headrace.records import Headers, Window
from headrace.serdes.base import Serde
from headrace.serdes.by_name import as_serde
from headrace.serdes.error_messages import READ_HINT, mistaken, quoted, shown

K = TypeVar("K")

_LATEST = 2**63 - 1
_start = struct.Struct(">q")
_end_and_start = struct.Struct(">qq")

# The constructor of a NamedTuple takes twice the time.
_new = tuple.__new__


class WindowedSerde(Serde[records.Windowed[K]]):
    """Write keys of tumbling, hopping and sliding windows.

    `size` is the size of the windows (for sliding windows the time difference), in milliseconds or as timedelta. It is
    not written, but reading needs it to give the window's end.

    Layout: the bytes of the key, then 8 bytes with the window's start, the highest first. An end after the largest
    possible timestamp becomes that timestamp. Empty data is read as None.

    >>> from headrace.records import Window
    >>> from headrace.serdes import String
    >>> serde = Windowed(String, 5000)
    >>> serde.serialize("counts", records.Windowed("a", Window(10_000, 15_000)))
    b"a\\x00\\x00\\x00\\x00\\x00\\x00'\\x10"
    >>> serde.deserialize("counts", b"a\\x00\\x00\\x00\\x00\\x00\\x00'\\x10")
    Windowed(key='a', window=Window(start=10000, end=15000))
    """

    def __init__(self, inner: Serde[K], size: int | timedelta) -> None:
        self.inner: Serde[K] = as_serde(inner, "inner serde of serdes.Windowed").for_keys()
        self.size = milliseconds(size, "size of serdes.Windowed", at_least=1)
        self.uses_headers = self.inner.uses_headers

    def __repr__(self) -> str:
        return f"serdes.Windowed({self.inner!r}, {self.size})"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[records.Windowed[K]], bytes]:
        encode_key = self.inner.encoder(topic, headers)
        pack = _start.pack

        def encode(windowed: records.Windowed[K]) -> bytes:
            key, (start, end) = windowed
            if key is None or not 0 <= start < end:
                raise ValueError("no key, or not a window")
            return encode_key(key) + pack(start)

        return encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], records.Windowed[K]]:
        decode_key = self.inner.decoder(topic, headers)
        unpack = _start.unpack
        size = self.size

        def decode(data: bytes) -> Any:
            if not data:
                return None
            (start,) = unpack(data[-8:])
            end = start + size
            if end > _LATEST:
                end = _LATEST
            if not 0 <= start < end:
                raise ValueError("not a window")
            return _new(records.Windowed, (decode_key(data[:-8]), _new(Window, (start, end))))

        return decode

    def write_problem(self, value: Any, error: Exception) -> str:
        return _write_problem(self.inner, value, error, shortest=1)

    def read_problem(self, data: bytes, error: Exception) -> str:
        if len(data) < 8:
            return f"expected a key and 8 bytes of window start, got {len(data)} ({quoted(data)}). {READ_HINT}"
        (start,) = _start.unpack(data[-8:])
        if not 0 <= start < _LATEST:
            return f"expected a window start of at least 0, got {start}. {READ_HINT}"
        return f"key: {self.inner.read_problem(data[:-8], error)}"


class SessionWindowedSerde(Serde[records.Windowed[K]]):
    """Write keys of sessions.

    Layout: the bytes of the key, then 8 bytes with the session's end, then 8 bytes with its start, the highest first.
    Empty data is read as None.

    >>> from headrace.records import Window
    >>> from headrace.serdes import String
    >>> SessionWindowed(String).serialize("visits", records.Windowed("a", Window(1, 2))).hex(" ", 8)
    '61 0000000000000002 0000000000000001'
    """

    def __init__(self, inner: Serde[K]) -> None:
        self.inner: Serde[K] = as_serde(inner, "inner serde of serdes.SessionWindowed").for_keys()
        self.uses_headers = self.inner.uses_headers

    def __repr__(self) -> str:
        return f"serdes.SessionWindowed({self.inner!r})"

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[records.Windowed[K]], bytes]:
        encode_key = self.inner.encoder(topic, headers)
        pack = _end_and_start.pack

        def encode(windowed: records.Windowed[K]) -> bytes:
            key, (start, end) = windowed
            if key is None or not 0 <= start <= end:
                raise ValueError("no key, or not a session")
            return encode_key(key) + pack(end, start)

        return encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], records.Windowed[K]]:
        decode_key = self.inner.decoder(topic, headers)
        unpack = _end_and_start.unpack

        def decode(data: bytes) -> Any:
            if not data:
                return None
            end, start = unpack(data[-16:])
            if not 0 <= start <= end:
                raise ValueError("not a session")
            return _new(records.Windowed, (decode_key(data[:-16]), _new(Window, (start, end))))

        return decode

    def write_problem(self, value: Any, error: Exception) -> str:
        return _write_problem(self.inner, value, error, shortest=0)

    def read_problem(self, data: bytes, error: Exception) -> str:
        if len(data) < 16:
            return (
                f"expected a key and 16 bytes of session end and start, got {len(data)} ({quoted(data)}). {READ_HINT}"
            )
        end, start = _end_and_start.unpack(data[-16:])
        if not 0 <= start <= end:
            return f"expected a session with 0 <= start <= end, got start {start} and end {end}. {READ_HINT}"
        return f"key: {self.inner.read_problem(data[:-16], error)}"


Windowed = WindowedSerde
SessionWindowed = SessionWindowedSerde


def _write_problem(inner: Serde[Any], value: Any, error: Exception, *, shortest: int) -> str:
    if not isinstance(value, records.Windowed):
        return mistaken("Windowed", value)
    if value.key is None:
        return f"expected a key that is not None, got {shown(value)}"
    match value.window:
        case (int(start), int(end)) if 0 <= start <= end - shortest and end <= _LATEST:
            return f"key: {inner.write_problem(value.key, error)}"
    bounds = "0 <= start < end" if shortest else "0 <= start <= end"
    return f"expected a window in milliseconds with {bounds}, got {shown(value.window)}"
