"""The state log: how a task's state survives, in Spark's checkpoint and beside the worker.

Each batch that changes a task's stores adds one *epoch*, the changes of the batch, to the task's log. The image on the
host's disk is a copy of the state for fast reads. It applies only changes that Spark has committed: the changes of the
last batch are in the image as *pending*, until the next batch finds that Spark has them. So a batch that fails, or
that two processes try, does no harm, and an image may be lost at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import msgspec

from headrace.errors import ProcessorStateError
from headrace.state.image import Changes
from headrace.state.lmdb_image import LmdbImage

_PART_BYTES = 8 << 20
_SMALL_LOG_BYTES = 1 << 20
_GARBAGE_FACTOR = 1.5
"""The log is replaced when it is this much larger than the image. Spark then holds about twice the live state."""

_AT, _CELLS, _PENDING = b"at", b"cells", b"pending"


class Head(NamedTuple):
    """Where a task's log ends, and where to begin to read it."""

    epoch: int
    attempt: str
    """The id of the attempt that wrote the epoch. Each attempt at a batch has another id."""
    snapshot: int
    """The epoch of the last snapshot; 0 if there is none."""
    snapshot_parts: int
    logged_bytes: int


class EpochStore(Protocol):
    """Where the epochs of a task are kept: read at the start of a batch, committed with the batch."""

    def head(self) -> Head | None:
        """Return the head, or None for a task that has never committed."""

    def set_head(self, head: Head) -> None:
        """Replace the head."""

    def get(self, epoch: int, part: int) -> bytes | None:
        """Return an epoch part. From 0 on they are the changes of an epoch, below 0 the snapshot at its end."""

    def put(self, epoch: int, part: int, blob: bytes) -> None:
        """Write an epoch part."""

    def remove(self, epoch: int, part: int) -> None:
        """Delete an epoch part."""

    def keys(self) -> Iterator[tuple[int, int]]:
        """Walk the keys of all epoch parts: (epoch, part)."""


class EpochPart(msgspec.Struct, array_like=True):
    """A piece of an epoch's changes or of a snapshot."""

    attempt: str
    previous: str
    """The attempt of the epoch before. It identifies the state that the changes apply to."""
    parts: int
    spaces: dict[str, dict[bytes, bytes | None]]
    cells: dict[str, dict[str, Any]]


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """Which epoch an image holds, or which is pending in it."""

    epoch: int
    attempt: str
    previous: str = ""
    parts: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode_part = msgspec.msgpack.Decoder(EpochPart).decode
_decode_mark = msgspec.msgpack.Decoder(Mark).decode
_decode_cells = msgspec.msgpack.Decoder(dict[str, dict[str, Any]]).decode


@dataclass
class StateLog:
    """The log of one task during one batch."""

    epochs: EpochStore
    image: LmdbImage
    wanted: frozenset[str] | None = None
    """The spaces that stores use; the next snapshot leaves out the others. None: all are used."""

    def restore(self) -> dict[str, dict[str, Any]]:
        """Bring the image to the last epoch that Spark has committed. Return the cells of the task."""
        self.image.refresh()
        head, at = self.epochs.head(), self._mark(_AT)
        self._head = head
        if head is None:
            if at is not None or self._mark(_PENDING) is not None:
                self.image.clear()
            return {}
        if at is None or (at.epoch, at.attempt) != (head.epoch, head.attempt):
            self._catch_up(head, at)
        cells = self.image.meta(_CELLS)
        return {} if cells is None else _decode_cells(cells)

    def shorten(self) -> bool:
        """Replace the log by a snapshot if most of it is out of date. Tell whether it was replaced.

        Call this after `restore`: then the image has the whole log applied.
        """
        head = self._head
        if head is None or head.logged_bytes <= _SMALL_LOG_BYTES + _GARBAGE_FACTOR * self.image.total_bytes():
            return False
        before = list(self.epochs.keys())
        written, number = 0, 0
        cells = _decode_cells(self.image.meta(_CELLS) or b"\x80")
        for spaces in self._live_spaces():
            blob = _encode(EpochPart(head.attempt, "", 0, spaces, {} if number else cells))
            number += 1
            self.epochs.put(head.epoch, -number, blob)
            written += len(blob)
        for epoch, part in before:
            if part >= 0 or epoch != head.epoch:
                self.epochs.remove(epoch, part)
        self._set_head(head._replace(snapshot=head.epoch, snapshot_parts=number, logged_bytes=written))
        return True

    @property
    def logged_bytes(self) -> int:
        """How many bytes the task's log takes."""
        return 0 if self._head is None else self._head.logged_bytes

    def commit(self, changes: Mapping[str, Changes], cells: dict[str, dict[str, Any]]) -> None:
        """Write the changes of a batch as the next epoch."""
        head = self._head or Head(0, "", 0, 0, 0)
        epoch, attempt = head.epoch + 1, uuid4().hex
        parts = list(_in_parts(changes))
        blobs = [
            _encode(EpochPart(attempt, head.attempt, len(parts), spaces, {} if number else cells))
            for number, spaces in enumerate(parts)
        ]
        for number, blob in enumerate(blobs):
            self.epochs.put(epoch, number, blob)
        logged = head.logged_bytes + sum(map(len, blobs))
        self._set_head(head._replace(epoch=epoch, attempt=attempt, logged_bytes=logged))
        old = self._mark(_PENDING)
        left: dict[bytes, bytes | None] = {_pending_key(number): None for number in range(old.parts if old else 0)}
        left.update({_pending_key(number): blob for number, blob in enumerate(blobs)})
        self.image.update(meta={**left, _PENDING: _encode(Mark(epoch, attempt, head.attempt, len(blobs)))})

    def _set_head(self, head: Head) -> None:
        self.epochs.set_head(head)
        self._head = head

    # -- catching up ------------------------------------------------------------------------------------------------

    def _catch_up(self, head: Head, at: Mark | None) -> None:
        pending = self._mark(_PENDING)
        if pending and (pending.epoch, pending.attempt) == (head.epoch, head.attempt) and _follows(pending, at):
            blobs: Iterable[bytes | None] = (self.image.meta(_pending_key(number)) for number in range(pending.parts))
            self._apply(head.epoch, head.attempt, map(_checked, blobs))
            return
        if at is not None and head.snapshot <= at.epoch < head.epoch:
            first = self.epochs.get(at.epoch + 1, 0)
            if first is not None and _decode_part(first).previous == at.attempt:
                self._replay(at.epoch + 1, head)
                return
        self.image.clear()
        if head.snapshot:
            blobs = (self.epochs.get(head.snapshot, -number) for number in range(1, head.snapshot_parts + 1))
            self._apply(head.snapshot, None, map(_checked, blobs))
        self._replay(head.snapshot + 1, head)

    def _replay(self, first: int, head: Head) -> None:
        for epoch in range(first, head.epoch + 1):
            self._apply(epoch, None, self._parts_of(epoch))
        at = self._mark(_AT)
        if at is None or at.attempt != head.attempt:
            raise ProcessorStateError(
                f"the state of a task in Spark's checkpoint is inconsistent: expected epoch {head.epoch} "
                f"({head.attempt}), got {at}. Restore the checkpoint from a copy, or start over with headrace reset"
            )

    def _parts_of(self, epoch: int) -> Iterator[bytes]:
        first = _checked(self.epochs.get(epoch, 0))
        yield first
        for number in range(1, _decode_part(first).parts):
            yield _checked(self.epochs.get(epoch, number))

    def _apply(self, epoch: int, attempt: str | None, blobs: Iterable[bytes]) -> None:
        """Apply epoch parts one by one. The last one marks the image, so that an interrupted epoch is applied again."""
        cells: bytes | None = None
        waiting: EpochPart | None = None
        for blob in blobs:
            if waiting is not None:
                self.image.update(waiting.spaces)
            waiting = _decode_part(blob)
            attempt = attempt or waiting.attempt
            if waiting.cells:
                cells = _encode(waiting.cells)
        kept = {} if cells is None else {_CELLS: cells}
        done = {_AT: _encode(Mark(epoch, attempt or "")), **kept}
        self.image.update(waiting.spaces if waiting is not None else {}, done)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _mark(self, name: bytes) -> Mark | None:
        data = self.image.meta(name)
        return None if data is None else _decode_mark(data)

    def _live_spaces(self) -> Iterator[dict[str, dict[bytes, bytes | None]]]:
        """Walk the image in pieces. There is at least one, for the cells."""
        yield {}
        for name, entries in self.image.entries(_PART_BYTES):
            if self.wanted is None or name in self.wanted:
                yield {name: dict(entries)}


def _follows(pending: Mark, at: Mark | None) -> bool:
    """Tell whether a pending epoch has the changes that come next in an image."""
    if at is None:
        return pending.epoch == 1
    return (at.epoch, at.attempt) == (pending.epoch - 1, pending.previous)


def _in_parts(changes: Mapping[str, Changes]) -> Iterator[dict[str, Changes]]:
    """Cut changes into parts, at least one. Each is so small that several fit into memory."""
    part: dict[str, Changes] = {}
    size = 0
    for name, changed in changes.items():
        mine: Changes = {}
        for key, value in changed.items():
            mine[key] = value
            size += len(key) + (0 if value is None else len(value)) + 8
            if size >= _PART_BYTES:
                part[name] = mine
                yield part
                part, mine, size = {}, {}, 0
        if mine:
            part[name] = mine
    yield part


def _pending_key(number: int) -> bytes:
    return b"pending/%d" % number


def _checked(blob: bytes | None) -> bytes:
    if blob is None:
        raise ProcessorStateError(
            "a part of a task's state is missing in Spark's checkpoint. Restore the checkpoint from a copy, or start "
            "over with headrace reset"
        )
    return blob
