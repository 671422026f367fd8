"""An image on a host's disk, shared by the processes of the host: one LMDB environment per task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from headrace.state.image import Changes
from headrace.state.lmdb_table import Entry, Table, Tables, Transaction
from headrace.state.ordered_map import TimeKey

_CHUNK_BYTES = 1 << 20

# Every kind of table has its own prefix, so that no store's name can be the name of another table. "position/" has
# the keys by time.
_DATA, _ORDER = "data/", "position/"
_META, _MARKS = "meta", "marks"
_ORDERED, _UNCOUNTED = b"ordered/", b"uncounted/"  # the two kinds of marks, each with the name of a space


class LmdbSpace:
    """The committed entries of one store, in the order of their keys' bytes."""

    __slots__ = ("_data", "_marks", "_order", "_ordered", "_tables", "_uncounted", "time_key")

    def __init__(self, tables: Tables, name: str, time_key: TimeKey | None = None) -> None:
        self._tables = tables
        self._data = tables.table(_DATA + name)
        self._order = None if time_key is None else tables.table(_ORDER + name)
        self._marks = tables.table(_MARKS)
        self._ordered = _ORDERED + name.encode()
        self._uncounted = _UNCOUNTED + name.encode()
        self.time_key = time_key

    def get(self, key: bytes) -> bytes | None:
        # A closure with the body of `Table.get` would save the second call: 15 of 270 ns, once for a key and a batch.
        return self._data.get(self._tables.reader, key)

    def between(self, low: bytes | None, high: bytes | None) -> list[Entry]:
        return list(self._data.walk(self._tables.reader, low, high))

    def iterate(self, low: bytes | None, high: bytes | None, *, reverse: bool = False) -> Iterator[Entry]:
        for page in self._data.pages(self._tables.current, low, high, reverse=reverse):
            yield from page

    def iterate_by_time(self, low: bytes, high: bytes) -> Iterator[Entry]:
        assert self._order is not None
        for page in self._order.pages(self._tables.current, low, high):
            for _, key in page:
                value = self.get(key)
                if value is not None:
                    yield key, value

    def apply(self, changes: Changes) -> None:
        """Do nothing.

        Stores call this when they commit. But the image must not have changes that Spark has not committed: a batch
        that fails is repeated from the state before it. The engine calls `LmdbImage.update` once the batch is
        committed.
        """

    def __len__(self) -> int:
        reader = self._tables.reader
        return reader.stat(self._data.database)["entries"] + self._count_uncounted(reader)

    def write(self, transaction: Transaction, changes: Changes) -> None:
        """Put and delete entries, and update the time order; without the time-key function mark it as out of date."""
        if self.time_key is not None and self._order is not None:
            self.put_in_order(transaction)
            time_key = self.time_key
            keys = {time_key(key): None if value is None else key for key, value in changes.items()}
            # The time key of an entry never changes: seeing that it is there is cheaper than writing it again.
            self._order.write(transaction, keys, replace=False)
        elif self.is_in_order(transaction):
            self._marks.write(transaction, {self._ordered: None})
        uncounted = self._data.write(transaction, changes)
        if uncounted:
            uncounted += self._count_uncounted(transaction)
            self._marks.write(transaction, {self._uncounted: str(uncounted).encode()})

    def is_in_order(self, transaction: Transaction) -> bool:
        """Tell whether the time order has all entries."""
        return self._marks.get(transaction, self._ordered) is not None

    def put_in_order(self, transaction: Transaction) -> None:
        """Build the time order from the entries, unless it has all of them."""
        if self.time_key is None or self._order is None or self.is_in_order(transaction):
            return
        transaction.drop(self._order.database, delete=False)
        for page in self._data.pages(lambda: transaction, None, None, page_bytes=_CHUNK_BYTES):
            self._order.write(transaction, {self.time_key(key): key for key, _ in page})
        self._marks.write(transaction, {self._ordered: b""})

    def _count_uncounted(self, transaction: Transaction) -> int:
        """Return how many more entries there are than LMDB counts: it counts a bucket as one."""
        return int(self._marks.get(transaction, self._uncounted) or 0)


class LmdbImage:
    """A task's stores in a directory of the local disk.

    Several processes may have it open. Each opens it once, and opens its own after a fork. Only one thread of a process
    may use it. All reads see one state of the image. `update`, `refresh` and `clear` move on to the latest state, and
    so does opening a space for the first time. Call `rest` when you keep the image open without using it.

    Nothing waits for the disk. Changes outlive the process, but not a crash of the host: the image is a copy of state
    that is committed elsewhere, and must be rebuilt after a crash.

    The time order of a space needs the time-key function, which only its store knows. When the space was opened with it
    before `update`, every change is written to the order, too. An update without it leaves the order out of date. A
    process that has the space open with the function then rebuilds the order from all entries, at the latest when it
    opens or refreshes the image.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._tables = Tables(self.path)
        self._meta = self._tables.table(_META)
        self._spaces: dict[str, LmdbSpace] = {}

    def space(self, name: str, time_key: TimeKey | None = None) -> LmdbSpace:
        """Open a space; `time_key` makes its time order, if it has one."""
        space = self._spaces.get(name)
        if space is None or (space.time_key is None and time_key is not None):
            space = self._spaces[name] = LmdbSpace(self._tables, name, time_key)
            self.refresh()
        return space

    def meta(self, key: bytes) -> bytes | None:
        """Return a value that is stored beside the spaces, or None."""
        return self._meta.get(self._tables.reader, key)

    def update(self, changes: Mapping[str, Changes] = {}, meta: Mapping[bytes, bytes | None] = {}) -> None:
        """Change spaces and set values of `meta` (None removes one), all together or not at all.

        A space need not be open; the docstring of the class says what happens to its time order.
        """
        spaces = dict(self._spaces)
        for name in changes:
            if name not in spaces:
                spaces[name] = LmdbSpace(self._tables, name)

        def work(transaction: Transaction) -> None:
            for name, changed in changes.items():
                spaces[name].write(transaction, changed)
            self._meta.write(transaction, meta)

        self._write(work)

    def refresh(self) -> None:
        """Move on to the latest state of the image."""
        self._tables.renew()
        self._complete_orders()

    def rest(self) -> None:
        """Hold no state of the image until `refresh`, so that LMDB can use the pages of old states again."""
        self._tables.rest()

    def entries(self, chunk_bytes: int = _CHUNK_BYTES) -> Iterator[tuple[str, list[Entry]]]:
        """Walk all entries of all spaces, in lists of about `chunk_bytes`.

        All are of one state, unless the image is updated or refreshed during the walk.
        """
        for name, table in self._data().items():
            for page in table.pages(self._tables.current, None, None, page_bytes=chunk_bytes):
                yield name, page

    def total_bytes(self) -> int:
        """Return the size of the pages that the keys and values are in: up to twice their own size."""
        stats = [self._tables.reader.stat(table.database) for table in self._data().values()]
        return sum((stat["leaf_pages"] + stat["overflow_pages"]) * stat["psize"] for stat in stats)

    def clear(self) -> None:
        """Remove all entries of all spaces, and all of `meta`."""
        tables = self._tables.open_all().values()

        def work(transaction: Transaction) -> None:
            for table in tables:  # emptied and not removed, because other processes have them open
                transaction.drop(table.database, delete=False)

        self._write(work)

    def close(self) -> None:
        """Close the environment."""
        self._tables.close()

    def __enter__(self) -> LmdbImage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _data(self) -> dict[str, Table]:
        """Return the tables with the entries of all spaces, by space."""
        tables = self._tables.open_all()
        self._complete_orders()  # opening a table moves on to the latest state
        return {name.removeprefix(_DATA): table for name, table in tables.items() if name.startswith(_DATA)}

    def _write(self, work: Callable[[Transaction], None]) -> None:
        try:
            self._tables.write(work)
        finally:
            self._complete_orders()

    def _complete_orders(self) -> None:
        """Rebuild the time orders that a process without their time-key functions has left out of date."""
        spaces = [space for space in self._spaces.values() if space.time_key is not None]

        def work(transaction: Transaction) -> None:
            for space in spaces:
                space.put_in_order(transaction)

        while not all(space.is_in_order(self._tables.reader) for space in spaces):
            self._tables.write(work)
