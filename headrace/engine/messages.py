"""Blocks: what travels through Spark, many records in one binary value.

A row of a stage is (task, block). Spark plans, shuffles and checkpoints a handful of rows; what is in them is its
affair no more than a file's content is a file system's.
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

SCHEMA = "task int, block binary"
RECORDS_PER_BLOCK = 20_000


class Stretch(msgspec.Struct, array_like=True, tag=4, frozen=True):
    """Records for a task to read: those of a topic partition from one offset to before another.

    The task reads them where it processes them: they need not travel through Spark.
    """

    topic: str
    partition: int
    start: int
    end: int
    now: int
    """The wall clock of the batch."""


class Tick(msgspec.Struct, array_like=True, tag=5, frozen=True):
    """The time, for a task with punctuations by the wall clock, whether records come or not."""

    now: int


class Input(msgspec.Struct, array_like=True, tag=0, gc=False):
    """Records that one task sends to another, in a partition of an internal topic."""

    topic: str
    partition: int
    lane: str
    """Where they come from: the task, and what of it."""
    index: int
    """Which block of its lane this is."""
    now: int
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps: bytes
    headers: Sequence[Headers | None] | None
    """None when no record has any."""
    times: bytes
    """The times of their causes; like all numbers of many records, as an array of 64-bit integers."""
    sequences: bytes

    def records(self) -> Iterator[RawRecord]:
        """Walk the records; what orders them stands in for the offsets they do not have."""
        order = np.frombuffer(self.sequences, np.int64).tolist()
        timestamps = np.frombuffer(self.timestamps, np.int64).tolist()
        return zip(order, timestamps, self.keys, self.values, self.headers or repeat(None), order)


class Output(msgspec.Struct, array_like=True, tag=1, gc=False):
    """Records for a topic partition of the broker."""

    topic: str
    partition: int
    """-1 when the key decides, where it is written."""
    lane: str
    index: int
    records: Sequence[RecordToWrite]
    times: bytes = b""
    """Of their causes, for who puts the blocks of several tasks in order."""
    sequences: bytes = b""


class Report(msgspec.Struct, array_like=True, tag=2):
    """What a task or a reader did in a batch."""

    name: str
    numbers: dict[str, float]
    positions: dict[str, dict[int, int]] = {}
    """Where the next batch begins to read, by topic and partition."""
    notes: list[str] = []
    """What the user should know."""


class Failure(msgspec.Struct, array_like=True, tag=3):
    """An exception that ends the batch, pickled."""

    error: bytes


class End(msgspec.Struct, array_like=True, tag=6, frozen=True):
    """What comes last to a shuffle partition: when it is there, all tasks of the partition have had their blocks."""


ForTask: TypeAlias = Stretch | Input | Tick
Block: TypeAlias = Stretch | Input | Tick | Output | Report | Failure | End

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Stretch | Input | Tick | Output | Report | Failure | End).decode
_PLAIN, _PACKED = b"\0", b"\1"
_LARGE = 1 << 16
_CODEC = "lz4_raw"
_SIZE = struct.Struct(">I")


def encode(block: Block) -> bytes:
    """Write a block; a large one is compressed, for Spark copies it many times."""
    data = _encode(block)
    if len(data) < _LARGE:
        return data + _PLAIN
    return b"".join((pa.compress(data, _CODEC, asbytes=True), _SIZE.pack(len(data)), _PACKED))


def decode(data: bytes) -> Block:
    """Read a block."""
    packed: Any = memoryview(data)[:-1]
    if data[-1:] == _PACKED:
        (size,) = _SIZE.unpack_from(packed, len(packed) - _SIZE.size)
        packed = pa.decompress(packed[: -_SIZE.size], size, _CODEC)
    block: Block = _decode(packed)
    return block


def failure(error: BaseException) -> Failure:
    """Pack an exception with its cause; one that cannot be pickled becomes a StreamsError with its text."""
    try:
        packed = pickle.dumps((error, error.__cause__))
        pickle.loads(packed)
        return Failure(packed)
    except Exception:
        kept = type(error)(str(error)) if isinstance(error, HeadraceError) else StreamsError(_named(error))
        cause = None if error.__cause__ is None else StreamsError(_named(error.__cause__))
        return Failure(pickle.dumps((kept, cause)))


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def unpack_failure(block: Failure) -> BaseException:
    """Return the exception that a worker sent."""
    error, cause = pickle.loads(block.error)
    error.__cause__ = cause
    return error  # type: ignore[no-any-return]


def lanes_of(blocks: Sequence[Input]) -> list[Lane]:
    """Put the blocks of a batch in order and join those of a lane; lanes are in the same order in any batch."""
    by_lane: dict[tuple[str, str, int], list[Input]] = {}
    for block in sorted(blocks, key=lane_order):
        by_lane.setdefault((block.lane, block.topic, block.partition), []).append(block)
    return [_lane(by_lane[place]) for place in sorted(by_lane)]


def _lane(parts: list[Input]) -> Lane:
    first = parts[0]
    return Lane(first.topic, first.partition, list(chain.from_iterable(map(Input.records, parts))), causes_of(parts))


def causes_of(blocks: Sequence[Input] | Sequence[Output]) -> Causes:
    """Return the causes of what several blocks hold."""
    return joined(
        [Causes(np.frombuffer(part.times, np.int64), np.frombuffer(part.sequences, np.int64)) for part in blocks]
    )


def in_pieces(size: int, length: int) -> Iterator[slice]:
    """Cut a length into slices of at most a size."""
    for start in range(0, length, size):
        yield slice(start, start + size)


def lane_order(block: Input | Output) -> tuple[str, int]:
    """Return where a block stands: sort by it."""
    return block.lane, block.index
