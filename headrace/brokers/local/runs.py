"""Applications in the embedded log: their runs, and writing each batch once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from headrace.brokers.batches import Offsets
from headrace.brokers.checking import MAX_LONG, check_record, encode_column, is_whole
from headrace.brokers.local.file import LogFile
from headrace.brokers.local.writing import AT_ONCE, Appender
from headrace.brokers.runs import NO_BATCH, Run
from headrace.brokers.writing import PartitionRecords
from headrace.errors import StreamsError, SupersededError
from headrace.raw_records import RecordColumns, RecordToWrite

_BYTES: frozenset[type] = frozenset([bytes, type(None)])
_INT: frozenset[type] = frozenset([int])


def begin_run(file: LogFile, application_id: str, lineage: str) -> Run:
    """Begin a run of an application. From now on, earlier runs cannot write."""

    def begin(connection: sqlite3.Connection) -> Run:
        connection.execute(
            "INSERT INTO applications "
            "VALUES (?, 1 + (SELECT value FROM counters WHERE name = 'highest forgotten run'), ?, ?) "
            "ON CONFLICT (application_id) DO UPDATE SET run = run + 1, lineage = excluded.lineage, "
            "batch = CASE lineage WHEN excluded.lineage THEN batch ELSE excluded.batch END",
            (application_id, lineage, NO_BATCH),
        )
        return Run(application_id, run_number(file, application_id), lineage)

    return file.write(begin)


def run_number(file: LogFile, application_id: str) -> int:
    """Return the number of an application's latest run, 0 if there is none."""
    found = file.read("SELECT run FROM applications WHERE application_id = ?", (application_id,))
    return found[0][0] if found else 0


def last_batch(file: LogFile, application_id: str) -> tuple[str, int] | None:
    """Return the lineage of an application's latest run and the last batch written in it, -1 for none."""
    found = file.read("SELECT lineage, batch FROM applications WHERE application_id = ?", (application_id,))
    return found[0] if found else None


def positions(file: LogFile, application_id: str) -> dict[str, dict[int, int]]:
    """Return the next offset to read, by topic and partition, as of the last batch that was written."""
    result: dict[str, dict[int, int]] = {}
    for topic, partition, offset in file.read(
        "SELECT topic, partition, next_offset FROM positions WHERE application_id = ? ORDER BY topic, partition",
        (application_id,),
    ):
        result.setdefault(topic, {})[partition] = offset
    return result


def forget_application(file: LogFile, application_id: str) -> None:
    """Forget an application's runs, batches and positions. A process that still runs it cannot write any more."""

    def forget(connection: sqlite3.Connection) -> None:
        # Run numbers are not used again. Otherwise an old run could be mistaken for a run of the new application.
        connection.execute(
            "UPDATE counters SET value = max(value, ?) WHERE name = 'highest forgotten run'",
            (run_number(file, application_id),),
        )
        connection.execute("DELETE FROM applications WHERE application_id = ?", (application_id,))
        connection.execute("DELETE FROM positions WHERE application_id = ?", (application_id,))

    file.write(forget)


def write_batch(
    file: LogFile, turns: dict[int, int], run: Run, batch: int, records: Iterable[PartitionRecords], kept: Offsets
) -> bool:
    """Append a batch's records and save the positions, all or nothing. Return False if the batch was written before."""
    if not is_whole(batch, 0):
        raise StreamsError(f"application '{run.application_id}': expected a batch of at least 0, got {batch!r}")
    outputs = list(records)  # before the transaction: other writers need not wait while the records are made

    def write(connection: sqlite3.Connection) -> bool:
        _check_latest(file, run)
        marked = connection.execute(
            "UPDATE applications SET batch = ? WHERE application_id = ? AND batch < ?",
            (batch, run.application_id, batch),
        )
        if not marked.rowcount:
            return False
        appender = Appender(file, connection, turns)
        for topic, partition, written in outputs:
            for begin in range(0, len(written), AT_ONCE):
                _append(appender, topic, partition, written[begin : begin + AT_ONCE])
        appender.finish()
        connection.executemany(
            "INSERT INTO positions VALUES (?, ?, ?, ?) "
            "ON CONFLICT (application_id, topic, partition) DO UPDATE SET next_offset = excluded.next_offset",
            [(run.application_id, topic, *position) for topic, ends in kept.items() for position in ends.items()],
        )
        return True

    return file.write(write)


def _check_latest(file: LogFile, run: Run) -> None:
    latest = run_number(file, run.application_id)
    if latest == 0:
        raise SupersededError(
            f"application '{run.application_id}' was forgotten (this is run {run.number}): this one stops"
        )
    if latest != run.number:
        raise SupersededError(
            f"application '{run.application_id}' was started again elsewhere (run {latest}, this is run {run.number}): "
            "this one stops"
        )


def _append(appender: Appender, topic: str, partition: int | None, records: Sequence[RecordToWrite]) -> None:
    """Append records, at least one, to a topic."""
    appender.topic(topic)
    columns = RecordColumns.of(records)
    # Check whole columns, which is fast. Only if that finds something wrong, look for the record.
    if not (
        _BYTES.issuperset(map(type, columns.keys))
        and _BYTES.issuperset(map(type, columns.values))
        and _INT.issuperset(map(type, columns.timestamps))
        and 0 <= min(columns.timestamps) <= max(columns.timestamps) <= MAX_LONG
    ):
        for key, value, timestamp, _ in records:
            check_record(topic, key, value, timestamp)
    appender.append(topic, columns, encode_column(topic, columns.headers), [partition] * len(columns))
