"""The file of the embedded log: open it, read it, write it in transactions."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from headrace.brokers.local import forking
from headrace.errors import TopicError

T = TypeVar("T")

FORMAT = 2
_APPLICATION_ID = 0x48524C47
"""Marks a SQLite file as an embedded log: `HRLG`."""
_RETRY_SECONDS = 0.01
_BUSY_SECONDS = 60.0
_STATEMENTS = 512
"""A few for each partition, since each partition has a table of its own."""

# topics.id is never used again, so that a reader of a deleted topic does not continue in another topic.
# topics.largest is at least the size of any key and value together, so that a reader need not measure them.
# partitions.gaps says that records were deleted. Until then offsets count the records.
# A run number is never used again either: 'highest forgotten run' is the highest of any forgotten application.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS topics (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL, partitions INTEGER NOT NULL,
    compact INTEGER NOT NULL, retention_ms INTEGER, largest INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS partitions (
    topic INTEGER NOT NULL, partition INTEGER NOT NULL, end_offset INTEGER NOT NULL, gaps INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('next sequence', 0), ('highest forgotten run', 0);
CREATE TABLE IF NOT EXISTS applications (
    application_id TEXT PRIMARY KEY, run INTEGER NOT NULL, lineage TEXT NOT NULL, batch INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (
    application_id TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
    PRIMARY KEY (application_id, topic, partition)
) WITHOUT ROWID;
"""


class LogFile:
    """A SQLite file in WAL mode: any number of processes read while one writes, and writers take turns.

    The threads of a process share one connection.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection = self._open()
        self._closed_for_fork = False
        self.closed = False
        forking.watch(self)

    def read(self, query: str, arguments: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query."""
        return self.use(lambda connection: connection.execute(query, arguments).fetchall())

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function that reads."""
        with self._lock:
            try:
                return work(self._opened())
            except sqlite3.Error as error:
                raise TopicError(f"cannot read the embedded log '{self.path}': {error}") from error

    def read_together(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function that reads, and let it see one state of the file from beginning to end."""
        return self.use(lambda connection: _transaction(connection, "BEGIN", work))

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function in a transaction. If it raises, nothing is kept."""
        with self._lock:
            try:
                return _transaction(self._opened(), "BEGIN IMMEDIATE", work)
            except sqlite3.Error as error:
                raise TopicError(f"cannot write to the embedded log '{self.path}': {error}") from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if os.getpid() == self._process:
                self.closed = True
                self._connection.close()

    def before_fork(self) -> None:
        """Close the connection until its next use. Hold the lock until `after_fork`."""
        self._lock.acquire()
        # A transaction stays open. A process that forks in the middle of one must not use the log in the child.
        mine = os.getpid() == self._process and not self.closed and not self._closed_for_fork
        if mine and not self._connection.in_transaction:
            self._connection.close()
            self._closed_for_fork = True

    def after_fork(self) -> None:
        """Release the lock."""
        self._lock.release()

    def _opened(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise TopicError(
                f"the embedded log '{self.path}' was opened before this process was forked. "
                "Call connect() again in this process."
            )
        if self._closed_for_fork and not self.closed:
            self._connection = self._open()
            self._closed_for_fork = False
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = None
        try:
            if self.path.is_dir():
                raise TopicError(f"cannot open the embedded log '{self.path}': expected a file, got a directory")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # An absolute path, because SQLite gives names such as ':memory:' another meaning.
            connection = sqlite3.connect(
                self.path.absolute(),
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_STATEMENTS,
            )
            self._prepare(connection)
            return connection
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise TopicError(f"cannot open the embedded log '{self.path}': {error}{self._why()}") from error
            raise

    def _why(self) -> str:
        """Say which path may not be written to: SQLite does not."""
        paths = (path for path in (self.path, self.path.parent) if os.path.exists(path))
        effective = os.access in os.supports_effective_ids
        refused = next((path for path in paths if not os.access(path, os.W_OK, effective_ids=effective)), None)
        return "" if refused is None else f" (no permission to write to '{refused}')"

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make a new file a log, or check that it is one before changing anything in it."""
        if not self._is_log(connection):
            connection.execute("BEGIN IMMEDIATE")
            if not self._is_log(connection):  # no other process was faster
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")

    def _is_log(self, connection: sqlite3.Connection) -> bool:
        """Tell whether this is a log (True) or an empty file (False). Raise if it is neither."""
        marked, found, tables = connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if (marked, found, tables) == (0, 0, 0):
            return False
        if marked != _APPLICATION_ID:
            raise TopicError(f"'{self.path}': expected an embedded log, got another SQLite file")
        if found != FORMAT:
            raise TopicError(
                f"'{self.path}': expected an embedded log of format {FORMAT}, got format {found}. "
                "Another version of Headrace wrote it. Use that version, or another file."
            )
        return True


def _transaction(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        done = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return done


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL mode. SQLite needs the file for itself then, and does not wait until it has it."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
