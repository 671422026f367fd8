"""Records as bytes: the shapes in which they are read, output and written, and the reason for each.

Values travel through a topology as a `Record`; topics are read and written by users as `TopicRecord` and `Produced`
(`headrace.brokers`). Inside the engine a record is bytes, in one of these shapes:

- `RawRecord`: read from a topic or sent by another task. A plain tuple: a named one takes 0.1 µs longer to make.
- `RawOutput`: an output of a step. `Outputs` keeps no such tuple, only its fields, one after the other in one list.
- `OutputColumns`: the outputs of a task to one topic, by columns. So no record needs its own tuple, and partitions
  are chosen and causes looked up for a whole column at once.
- `RecordColumns`: on its way to a topic partition, by columns, as the brokers' clients take them.
- `RecordToWrite`: one record of `RecordColumns`, for code that looks at records one by one.

Tests: `tests/test_raw_records.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from headrace.records import Headers

RawRecord: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers | None, int]
"""A record that was read: (offset, timestamp, key, value, headers, sequence)."""

RawOutput: TypeAlias = tuple[str, int | None, bytes | None, bytes | None, int, Headers, int]
"""An output of a step: (topic, partition, key, value, timestamp, headers, ordinal of the record that caused it).

The partition is None where the key decides.
"""

RecordToWrite: TypeAlias = tuple[bytes | None, bytes | None, int, Headers | None]
"""A record to write: (key, value, timestamp, headers)."""


class RecordColumns(Sequence[RecordToWrite]):
    """Records to write, kept by columns; a record becomes a tuple only when code looks at it alone.

    >>> rows = RecordColumns.of([(b"a", b"1", 5, None), (b"b", None, 6, None)])
    >>> rows.keys, rows[1]
    ((b'a', b'b'), (b'b', None, 6, None))
    """

    __slots__ = ("headers", "keys", "timestamps", "values")

    def __init__(
        self,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        timestamps: Sequence[int],
        headers: Sequence[Headers | None],
    ) -> None:
        self.keys, self.values, self.timestamps, self.headers = keys, values, timestamps, headers

    @classmethod
    def of(cls, records: Sequence[RecordToWrite]) -> RecordColumns:
        """Return records by columns."""
        if isinstance(records, RecordColumns):
            return records
        return cls(*zip(*records)) if records else cls((), (), (), ())

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[RecordToWrite]:
        return zip(self.keys, self.values, self.timestamps, self.headers)

    def __getitem__(self, index: Any) -> Any:
        """Return the record at an index, or a list of the records in a slice."""
        found = self.keys[index], self.values[index], self.timestamps[index], self.headers[index]
        return list(zip(*found)) if isinstance(index, slice) else found


class OutputColumns(NamedTuple):
    """The outputs of a task to one topic, by columns."""

    partitions: Sequence[int | None]
    """None where the key decides."""
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    timestamps: Sequence[int]
    headers: Sequence[Headers | None]
    ordinals: Sequence[int]
    """The ordinals of the records that caused these."""

    def at(self, indexes: Sequence[int]) -> OutputColumns:
        """Return the records at some indexes."""
        if len(indexes) == len(self.keys):
            return self
        if len(indexes) == 1:
            alone = slice(indexes[0], indexes[0] + 1)
            return OutputColumns._make(column[alone] for column in self)
        return OutputColumns._make(map(itemgetter(*indexes), self))
