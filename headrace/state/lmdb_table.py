"""Tables in LMDB with keys of any length. LMDB itself takes keys of 1 to 511 bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

import lmdb
import msgspec

from headrace.errors import ProcessorStateError

T = TypeVar("T")
Entry: TypeAlias = tuple[bytes, bytes]
Transaction: TypeAlias = "lmdb.Transaction[bytes]"

_FIRST = b"k"  # stands before every key, because LMDB refuses empty ones
_BEYOND = b"l"  # is greater than every key with `_FIRST` before it
_encode_bucket = msgspec.msgpack.encode
_decode_bucket = msgspec.msgpack.Decoder(list[Entry]).decode

_FIRST_PAGE_BYTES, _LARGEST_PAGE_BYTES = 1 << 10, 1 << 16
_FIRST_MAP_BYTES = 16 << 20
_MAX_DATABASES = 1024  # a transaction takes 50 bytes for each
_MAX_READERS = 512


class Tables:
    """The tables of one LMDB environment, read in one transaction until the next write, `renew` or `rest`.

    The environment is one memory map. When the map is full, it is enlarged.
    """

    def __init__(self, path: Path) -> None:
        self._environment = lmdb.open(
            str(path),
            map_size=_FIRST_MAP_BYTES,
            subdir=True,
            sync=False,
            metasync=False,
            writemap=False,
            max_readers=_MAX_READERS,
            max_dbs=_MAX_DATABASES,
            lock=True,
        )
        self._environment.set_mapsize(0)  # the size that other processes have set
        self._environment.reader_check()  # otherwise LMDB keeps the pages that a dead process was reading
        self._opened: dict[str, Table] = {}
        self._rests = True
        self._begin_reading()

    def current(self) -> Transaction:
        """Return the transaction that reads now."""
        return self.reader

    def table(self, name: str) -> Table:
        """Open a table. The first time this moves on to the latest state."""
        if name not in self._opened:
            try:
                database = self._between_reads(lambda: self._environment.open_db(name.encode()))
            except lmdb.DbsFullError:
                raise ProcessorStateError(
                    f"a task needs more than {_MAX_DATABASES - 2} tables for its stores. A foreign-key join keeps all "
                    "partitions of both sides in one task. Use input topics with fewer partitions"
                ) from None
            self._opened[name] = Table(database, self._environment.max_key_size())
        return self._opened[name]

    def open_all(self) -> dict[str, Table]:
        """Open all tables of one state, including those that other processes have made; return them by name."""
        while True:
            names = [name.decode() for name in self.reader.cursor().iternext(values=False)]
            new = [name for name in names if name not in self._opened]
            if not new:
                return {name: self._opened[name] for name in names}
            for name in new:  # meanwhile there may be more
                self.table(name)

    def renew(self) -> None:
        """Move on to the latest state."""
        self.rest()
        self._environment.reader_check()
        self._begin_reading()

    def rest(self) -> None:
        """Read nothing until `renew`. LMDB keeps the pages of a state that is being read, and the file grows."""
        if not self._rests:
            self.reader.abort()
            self._rests = True

    def _begin_reading(self) -> None:
        self.reader: Transaction = self._enlarging(self._environment.begin)
        self._rests = False

    def write(self, work: Callable[[Transaction], None]) -> None:
        """Run work in a write transaction, and again if there was no room for it. Then move on to the latest state."""

        def attempt() -> None:
            with self._environment.begin(write=True) as transaction:
                work(transaction)

        self._between_reads(attempt)

    def close(self) -> None:
        """Close the environment."""
        self.rest()
        self._environment.close()

    def _between_reads(self, attempt: Callable[[], T]) -> T:
        """Do something while no reader is open: with a reader the map cannot be enlarged."""
        self.rest()
        try:
            return self._enlarging(attempt)
        finally:
            self._begin_reading()

    def _enlarging(self, attempt: Callable[[], T]) -> T:
        """Try until the map is large enough: double it, or take the size that another process has set."""
        while True:
            try:
                return attempt()
            except lmdb.MapFullError:
                self._environment.set_mapsize(2 * self._environment.info()["map_size"])
            except lmdb.MapResizedError:
                self._environment.set_mapsize(0)


class Table:
    """A database of an environment, with entries in the order of their keys' bytes.

    A key is stored with one byte before it. A key that is then too long is stored in a bucket: an LMDB entry with the
    first bytes of the key, as many as LMDB takes, as its key, and as its value all entries that begin with them, in
    order. All other stored keys are shorter. So the length tells a bucket from a short key, and both sort correctly.
    """

    __slots__ = ("_longest", "_short", "database")

    def __init__(self, database: lmdb._Database, max_key_size: int) -> None:
        self.database = database
        self._longest = max_key_size
        self._short = max_key_size - len(_FIRST)

    def get(self, transaction: Transaction, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        if len(key) < self._short:
            return transaction.get(_FIRST + key, None, self.database)
        return dict(self._bucket(transaction, (_FIRST + key)[: self._longest])).get(key)

    def walk(
        self, transaction: Transaction, low: bytes | None, high: bytes | None, *, reverse: bool = False
    ) -> Iterator[Entry]:
        """Walk the entries from low to high, both included. The transaction must stay open during the walk."""
        longest = self._longest
        first = _FIRST if low is None else _FIRST + low
        last = _BEYOND if high is None else _FIRST + high
        start, stop = first[:longest], last[:longest]
        cursor = transaction.cursor(self.database)
        if reverse:
            there = _seek_back(cursor, stop)
            stored_entries = cursor.iterprev()
        else:
            there = cursor.set_range(start)
            stored_entries = cursor.iternext()
        if not there:
            return
        for stored, value in stored_entries:
            if stored < start if reverse else stored > stop:
                return
            if len(stored) < longest:
                yield stored[1:], value
            else:  # a bound may lie within a bucket
                bucket = [entry for entry in _decode_bucket(value) if first <= _FIRST + entry[0] <= last]
                yield from reversed(bucket) if reverse else bucket

    def pages(
        self,
        transaction: Callable[[], Transaction],
        low: bytes | None,
        high: bytes | None,
        *,
        reverse: bool = False,
        page_bytes: int | None = None,
    ) -> Iterator[list[Entry]]:
        """Walk the entries in lists, each read from the transaction that is open then.

        Lists have about `page_bytes`. By default the first ones are small, because a walk may end early.
        """
        budget = page_bytes or _FIRST_PAGE_BYTES
        past: bytes | None = None
        more = True
        while more:
            page, more = _page(self.walk(transaction(), low, high, reverse=reverse), past, budget)
            if page:
                yield page
                past = page[-1][0]
                low, high = (low, past) if reverse else (past, high)
            budget = page_bytes or min(budget * 4, _LARGEST_PAGE_BYTES)

    def write(self, transaction: Transaction, changes: Mapping[bytes, bytes | None], *, replace: bool = True) -> int:
        """Put and delete entries; return how many more entries were added than LMDB counts.

        Without `replace`, existing entries with short keys keep their values.
        """
        short, database = self._short, self.database
        # In the order they come: sorting takes as long as it saves.
        puts = [(_FIRST + key, value) for key, value in changes.items() if value is not None and len(key) < short]
        if puts:
            transaction.cursor(database).putmulti(puts, overwrite=replace)
        if len(puts) == len(changes):
            return 0
        buckets: dict[bytes, dict[bytes, bytes | None]] = {}
        for key, value in changes.items():
            if len(key) >= short:
                buckets.setdefault((_FIRST + key)[: self._longest], {})[key] = value
            elif value is None:
                transaction.delete(_FIRST + key, db=database)
        return sum(self._write_bucket(transaction, stored, changed) for stored, changed in buckets.items())

    def _write_bucket(self, transaction: Transaction, stored: bytes, changed: Mapping[bytes, bytes | None]) -> int:
        entries: dict[bytes, bytes | None] = dict(self._bucket(transaction, stored))
        before = len(entries)
        entries.update(changed)
        kept = sorted((key, value) for key, value in entries.items() if value is not None)
        if kept:
            transaction.put(stored, _encode_bucket(kept), db=self.database)
        elif before:
            transaction.delete(stored, db=self.database)
        return max(len(kept) - 1, 0) - max(before - 1, 0)

    def _bucket(self, transaction: Transaction, stored: bytes) -> list[Entry]:
        data = transaction.get(stored, None, self.database)
        return [] if data is None else _decode_bucket(data)


def _seek_back(cursor: lmdb.Cursor[bytes], stop: bytes) -> bool:
    """Go to the last entry that is not greater than `stop`."""
    if not cursor.set_range(stop):
        return cursor.last()
    return cursor.key() == stop or cursor.prev()


def _page(entries: Iterator[Entry], past: bytes | None, budget: int) -> tuple[list[Entry], bool]:
    """Take entries of about `budget` bytes, without the last page's last key; tell whether there may be more."""
    page = []
    for entry in entries:
        key, value = entry
        if key != past:
            page.append(entry)
            budget -= len(key) + len(value)
            if budget <= 0:
                return page, True
    return page, False
