"""Keep the epochs of a task in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.engine.state_log import Head


class SparkEpochStore:
    """The epochs of a task in Spark's state store.

    They are in a single map from numbers to bytes. Spark opens every map and every column again in each batch, which
    takes longer than the task itself.
    """

    _HEAD = 0
    _PARTS = 1 << 20
    """How many numbers an epoch has, half of them for parts below 0. Epochs begin with 1."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def head(self) -> Head | None:
        found = self._blob(self._HEAD)
        return None if found is None else msgspec.msgpack.decode(found, type=Head)

    def set_head(self, head: Head) -> None:
        self._log.updateValue((self._HEAD,), (msgspec.msgpack.encode(head),))

    def get(self, epoch: int, part: int) -> bytes | None:
        return self._blob(epoch * self._PARTS + part)

    def put(self, epoch: int, part: int, blob: bytes) -> None:
        self._log.updateValue((epoch * self._PARTS + part,), (blob,))

    def remove(self, epoch: int, part: int) -> None:
        self._log.removeKey((epoch * self._PARTS + part,))

    def keys(self) -> Iterator[tuple[int, int]]:
        half = self._PARTS // 2
        for (number,) in self._log.keys():  # noqa: SIM118, it is no dict
            if number != self._HEAD:
                epoch, part = divmod(int(number) + half, self._PARTS)
                yield epoch, part - half

    def _blob(self, number: int) -> bytes | None:
        found = self._log.getValue((number,))
        return None if found is None else bytes(found[0])
