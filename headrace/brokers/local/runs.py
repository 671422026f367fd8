"""Applications in the embedded log: their runs, and batches that are written once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from headrace.brokers.batches import Offsets
from headrace.brokers.checking import LATEST, check_record, is_whole, stored_headers
from headrace.brokers.local.file import LogFile
from headrace.brokers.local.writing import AT_ONCE, Appender, Columns
from headrace.brokers.runs import NO_BATCH, Run
from headrace.brokers.writing import PartitionRecords
from headrace.errors import StreamsError, SupersededError
from headrace.raw_records import RecordToWrite

_BYTES: frozenset[type] = frozenset([bytes, type(None)])
_INT: frozenset[type] = frozenset([int])


def begin_run(file: LogFile, application_id: str, lineage: str) -> Run:
    """Begin a run of an application: from now on no earlier one can write."""

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
    """Return the number of an application's latest run; 0 when there was none."""
    found = file.read("SELECT run FROM applications WHERE application_id = ?", (application_id,))
    return found[0][0] if found else 0


def last_batch(file: LogFile, application_id: str) -> tuple[str, int] | None:
    """Return the lineage of an application's latest run and its last batch that was written, -1 for none."""
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
    """Forget an application's runs, batches and positions; what still runs of it cannot write any more."""

    def forget(connection: sqlite3.Connection) -> None:
        # Its numbers are not given out again: or a run of before would pass for one of the application made anew.
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
    """Append a batch's records and keep the positions, all or nothing; tell whether that was to be done."""
    if not is_whole(batch, 0):
        raise StreamsError(f"application '{run.application_id}': expected a batch of at least 0, got {batch!r}")
    parts = list(records)  # before the transaction: nobody has to wait for what makes the records

    def write(connection: sqlite3.Connection) -> bool:
        _check_latest(file, run)
        marked = connection.execute(
            "UPDATE applications SET batch = ? WHERE application_id = ? AND batch < ?",
            (batch, run.application_id, batch),
        )
        if not marked.rowcount:
            return False
        appender = Appender(file, connection, turns)
        for topic, partition, part in parts:
            for begin in range(0, len(part), AT_ONCE):
                _append(appender, topic, partition, part[begin : begin + AT_ONCE])
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
    keys, values, timestamps, headers = zip(*records)
    # All at once where all is well, and only then one by one.
    if not (
        _BYTES.issuperset(map(type, keys))
        and _BYTES.issuperset(map(type, values))
        and _INT.issuperset(map(type, timestamps))
        and 0 <= min(timestamps) <= max(timestamps) <= LATEST
    ):
        for key, value, timestamp, _ in records:
            check_record(topic, key, value, timestamp)
    encoded = [stored_headers(topic, said) if said else None for said in headers] if any(headers) else None
    columns = Columns(keys, values, timestamps, encoded, appender.next_sequences(len(records)))
    appender.append(topic, columns, [partition] * len(records))
