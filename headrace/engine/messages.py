"""Messages: what travels between stages. One binary value can have many records.

A row of a stage is (task, message). Spark plans, shuffles and checkpoints a handful of rows, and does not look into
them.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from headrace.errors import HeadraceError, StreamsError
from headrace.raw_records import RawRecord, RecordToWrite
from headrace.records import Headers
from headrace.task.lanes import Causes, Lane, joined

FOR_DRIVER = -1
"""The task number of a message that is for the driver."""
RECORDS_PER_MESSAGE = 20_000


class TopicRange(msgspec.Struct, array_like=True, tag=4, frozen=True):
    """A range for a task to read.

    The task reads the records itself, so they need not travel through Spark.
    """

    topic: str
    partition: int
    start: int
    end: int
    now: int
    """The wall clock of the batch."""


class ClockTick(msgspec.Struct, array_like=True, tag=5, frozen=True):
    """The time, for a task with punctuations by the wall clock, even if no records come."""

    now: int


class SentRecords(msgspec.Struct, array_like=True, tag=0, gc=False):
    """Records that one task sends to another, for a partition of an internal topic."""

    topic: str
    partition: int
    lane: str
    """The lane, named after the task that sent the records."""
    number: int
    """The number of this message in its lane."""
    now: int
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps: bytes
    headers: Sequence[Headers | None] | None
    """None if no record has any."""
    times: bytes
    """The times of their causes. Columns of numbers are arrays of 64-bit integers."""
    sequences: bytes

    def records(self) -> Iterator[RawRecord]:
        """Walk the records. They have no offsets, so the sequences of their causes take the place of offsets."""
        sequences = np.frombuffer(self.sequences, np.int64).tolist()
        timestamps = np.frombuffer(self.timestamps, np.int64).tolist()
        return zip(sequences, timestamps, self.keys, self.values, self.headers or repeat(None), sequences)


class OutputRecords(msgspec.Struct, array_like=True, tag=1, gc=False):
    """Records for a topic partition of the broker, which the driver writes."""

    topic: str
    partition: int
    """-1 if the key decides when the records are written."""
    lane: str
    number: int
    records: Sequence[RecordToWrite]
    times: bytes = b""
    """The times of their causes, by which the driver merges the outputs of several tasks."""
    sequences: bytes = b""


class Report(msgspec.Struct, array_like=True, tag=2):
    """What a task or the source did in a batch."""

    name: str
    numbers: dict[str, float]
    positions: dict[str, dict[int, int]] = {}
    """Where the next batch begins to read, by topic and partition."""
    notes: list[str] = []
    """What the user should know."""


class Failure(msgspec.Struct, array_like=True, tag=3):
    """An exception that ends the batch, pickled with its cause."""

    pickled: bytes

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Pack an exception. One that cannot be pickled becomes a `StreamsError` with its text."""
        try:
            pickled = pickle.dumps((error, error.__cause__))
            pickle.loads(pickled)
            return cls(pickled)
        except Exception:
            kept = type(error)(str(error)) if isinstance(error, HeadraceError) else StreamsError(_text_of(error))
            cause = None if error.__cause__ is None else StreamsError(_text_of(error.__cause__))
            return cls(pickle.dumps((kept, cause)))

    def error(self) -> BaseException:
        """Return the exception."""
        error, cause = pickle.loads(self.pickled)
        error.__cause__ = cause
        return error  # type: ignore[no-any-return]


class EndOfInput(msgspec.Struct, array_like=True, tag=6, frozen=True):
    """The last message of a shuffle partition: all tasks of the partition have received their messages."""


ForTask: TypeAlias = TopicRange | SentRecords | ClockTick
Message: TypeAlias = TopicRange | SentRecords | ClockTick | OutputRecords | Report | Failure | EndOfInput
Routed: TypeAlias = tuple[int, Message]
"""A message and the task that takes it, or `FOR_DRIVER`."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(
    TopicRange | SentRecords | ClockTick | OutputRecords | Report | Failure | EndOfInput
).decode
_PLAIN, _PACKED = b"\0", b"\1"
_LARGE = 1 << 16
_CODEC = "lz4_raw"
_SIZE = struct.Struct(">I")


def encode(message: Message) -> bytes:
    """Turn a message into bytes. Compress a large one, because Spark copies it many times."""
    data = _encode(message)
    if len(data) < _LARGE:
        return data + _PLAIN
    return b"".join((pa.compress(data, _CODEC, asbytes=True), _SIZE.pack(len(data)), _PACKED))


def decode(data: bytes) -> Message:
    """Read a message."""
    packed: Any = memoryview(data)[:-1]
    if data[-1:] == _PACKED:
        (size,) = _SIZE.unpack_from(packed, len(packed) - _SIZE.size)
        packed = pa.decompress(packed[: -_SIZE.size], size, _CODEC)
    message: Message = _decode(packed)
    return message


def lanes_of(messages: Sequence[SentRecords]) -> list[Lane]:
    """Join the messages of each lane, in order. The lanes have the same order every time."""
    by_lane: dict[tuple[str, str, int], list[SentRecords]] = {}
    for message in sorted(messages, key=lane_order):
        by_lane.setdefault((message.lane, message.topic, message.partition), []).append(message)
    return [_joined_lane(by_lane[lane]) for lane in sorted(by_lane)]


def _joined_lane(messages: list[SentRecords]) -> Lane:
    first = messages[0]
    records = list(chain.from_iterable(map(SentRecords.records, messages)))
    return Lane(first.topic, first.partition, records, causes_of(messages))


def causes_of(messages: Sequence[SentRecords] | Sequence[OutputRecords]) -> Causes:
    """Return the causes of the records in several messages."""
    return joined(
        [
            Causes(np.frombuffer(message.times, np.int64), np.frombuffer(message.sequences, np.int64))
            for message in messages
        ]
    )


def slices(size: int, length: int) -> Iterator[slice]:
    """Cut a length into slices of at most a size."""
    for start in range(0, length, size):
        yield slice(start, start + size)


def lane_order(message: SentRecords | OutputRecords) -> tuple[str, int]:
    """Return the key to sort messages by: the lane, and the number in the lane."""
    return message.lane, message.number


def _text_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
