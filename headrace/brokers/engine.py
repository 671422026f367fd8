"""What an engine needs of a broker: batches to read, and writing each of them once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, cast

from headrace.brokers.broker import Broker, TopicInfo, connect
from headrace.records import Headers

Offsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""An offset for each partition of each topic."""

Row: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers | None, int]
"""A record that is read: (offset, timestamp, key, value, headers, sequence)."""

WrittenRecord: TypeAlias = tuple[bytes | None, bytes | None, int, Headers | None]
"""A record to write: (key, value, timestamp, headers)."""


class WrittenRecords(Sequence[WrittenRecord]):
    """Records to write that are kept by columns; each becomes a tuple only when somebody looks at it by itself.

    >>> rows = WrittenRecords.of([(b"a", b"1", 5, None), (b"b", None, 6, None)])
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
    def of(cls, records: Sequence[WrittenRecord]) -> WrittenRecords:
        """Return records by columns."""
        if isinstance(records, WrittenRecords):
            return records
        return cls(*zip(*records)) if records else cls((), (), (), ())

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[WrittenRecord]:
        return zip(self.keys, self.values, self.timestamps, self.headers)

    def __getitem__(self, place: Any) -> Any:
        """Return the record at a place, or those of a slice."""
        found = self.keys[place], self.values[place], self.timestamps[place], self.headers[place]
        return list(zip(*found)) if isinstance(place, slice) else found


Written: TypeAlias = tuple[str, int | None, Sequence[WrittenRecord]]
"""Records to write to a topic partition. Without a partition the key decides."""

NO_BATCH = -1
"""The batch of an application that has not written any."""


@dataclass(frozen=True)
class Run:
    """One start of an application: only the latest may write.

    The lineage names the engine's own counting of batches: in another lineage the same number is another batch.
    """

    application_id: str
    run: int
    lineage: str


class Writing(Protocol):
    """What tasks write in a batch, in the process where they run: all of it, or nothing."""

    def send(self, task: str, topic: str, partition: int | None, records: Sequence[WrittenRecord]) -> int:
        """Write records of a task, unless an earlier run has; return how many. Without a partition the key decides."""

    def commit(self) -> None:
        """Have them all there; one that is left without that is taken back."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class EngineBroker(Broker, Protocol):
    """A broker that an engine can run on."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    @property
    def keeps_changelogs(self) -> bool:
        """Whether the changes of stores go to topics, where other tools read them."""

    def ensure_topics(self, wanted: Mapping[str, int], replication_factor: int = -1) -> None:
        """Create the topics that are missing, with so many partitions; leave the others as they are."""

    def partition_counts(self) -> dict[str, int]:
        """Return how many partitions each topic has: less to ask than `topics`."""

    def topic_id(self, topic: str) -> str:
        """Return what tells a topic from another one of the same name, made after it was deleted."""

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return where each partition begins."""

    def missing(self, start: Offsets) -> dict[str, dict[int, int]]:
        """Return where to go on in the partitions whose records from these offsets on were deleted unread."""

    def plan_batch(self, start: Offsets, limit: int | None) -> dict[str, dict[int, int]]:
        """Return where the next batch ends that begins at these offsets: so many records at most.

        Records have one order across all partitions: next is always the one, of those that are first in their
        partition, with the lowest timestamp, and of equal timestamps the one that was appended first. A batch is a
        beginning of this order. So it ends at one time in all partitions, and however the records are cut into
        batches, their order is the same.
        """

    def read_rows(self, topic: str, partition: int, start: int, end: int) -> Iterator[list[Row]]:
        """Walk one partition's records from one offset to before another, page by page.

        The sequence is the order in which records were appended, over all topics.
        """

    def begin_run(
        self,
        application_id: str,
        lineage: str,
        *,
        exactly_once: bool = True,
        changelogs: Iterable[TopicInfo] = (),
        replication_factor: int = -1,
    ) -> Run:
        """Begin a run of an application: from now on no earlier one can write."""

    def end_run(self, run: Run) -> None:
        """Let go of what is open for a run that writes no more; the application can be begun again at any time."""

    def run_number(self, application_id: str) -> int:
        """Return the number of an application's latest run; 0 when there was none."""

    def last_batch(self, application_id: str) -> tuple[str, int] | None:
        """Return the lineage of an application's latest run and its last batch that was written, -1 for none."""

    def write_batch(self, run: Run, batch: int, records: Iterable[Written], positions: Offsets) -> bool:
        """Append a batch's records and keep the positions, all or nothing; tell whether that was to be done.

        A batch that was written before is left alone. A run that is not the latest gets a StreamsError.
        """

    def permit(self, run: Run) -> object | None:
        """Return what tasks need to write where they run; None when only who began the run can write."""

    def begin_writing(self, permit: object, batch: int) -> Writing:
        """Begin to write what tasks put out in a batch. Each names itself: the same name in the same batch is the same.

        A task's records are there once, although a batch may be run again after some of its tasks have written.
        """

    def wait_until_visible(self, topics: Iterable[str]) -> None:
        """Wait until what was committed to topics shows to those who read them."""

    def positions(self, application_id: str) -> dict[str, dict[int, int]]:
        """Return the next offset to read, by topic and partition, as of the last batch that was written."""

    def forget_application(self, application_id: str) -> None:
        """Forget an application's runs, batches and positions; what still runs of it cannot write any more."""


_shared: dict[tuple[int, str, str], EngineBroker] = {}


def shared(address: str, settings: Mapping[str, Any] | None = None) -> EngineBroker:
    """Return this process's broker at an address, which stays open for all that use it."""
    given = {} if address.startswith("local:") else dict(settings or {})
    place = os.getpid(), address, repr(sorted(map(str, given.items())))  # a forked process opens its own
    broker = _shared.get(place)
    if broker is not None and not broker.closed:
        return broker
    opened = cast(EngineBroker, connect(address, **given))  # every broker there is can run an engine
    if broker is not None:
        _shared.pop(place, None)
    # Without a lock, which another thread might hold while this process forks: the first to come wins.
    broker = _shared.setdefault(place, opened)
    if broker is not opened:
        opened.close()
    return broker
