"""The application of `earlier_checkpoint.tar.gz`, and the records that it reads.

The archive holds what Headrace 0.1.0 left behind after the first half of the records, before its engine was rebuilt:
the embedded log, Spark's checkpoint and the identity file. Spark writes the checkpoint's own path into it; in the
archive that is `/earlier`.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace import Buffer, StreamsBuilder, StreamsConfig, Suppressed, Topology, TumblingWindows, serdes
from headrace.brokers import Broker

TEXT: dict[str, Any] = {"key_serde": serdes.String, "value_serde": serdes.String}
OUTPUTS = ("counts", "closed", "joined")
HALF, ALL = 40, 80
_ARCHIVE = Path(__file__).with_name("earlier_checkpoint.tar.gz")


def topology() -> Topology:
    """Return counts, windows that are suppressed until they close, and a join on a foreign key."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", **TEXT)
    words = lines.flat_map_values(str.split).group_by(lambda key, word: word, **TEXT)
    words.count(store="counts").to_stream().to("counts", key_serde=serdes.String, value_serde=serdes.Long)
    windows = lines.group_by_key(**TEXT).windowed_by(TumblingWindows(50, grace=20)).count(store="windows")
    closed = windows.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream()
    closed.map(lambda key, value: (f"{key.key}@{key.window.start}", str(value))).to("closed", **TEXT)
    rows = builder.stream("rows", **TEXT).to_table(store="rows", **TEXT)
    latest = lines.to_table(store="latest", **TEXT)
    joined = latest.join(rows, lambda line, row: f"{line}|{row}", foreign_key=lambda line: line.split()[0])
    joined.to_stream().to("joined", **TEXT)
    return builder.build()


def config(folder: Path) -> StreamsConfig:
    return StreamsConfig(
        application_id="app",
        bootstrap_servers=f"local:{folder}/topics.db",
        state_dir=str(folder),
        master="local[*]",
        num_partitions=2,
        statestore_cache_max_bytes=0,
        max_records_per_batch=30,
    )


def produce(broker: Broker, first: int, last: int) -> None:
    """Write some of the records, as the archive has the first half."""
    by_topic: dict[str, list[tuple[bytes, bytes, int]]] = {}
    for topic, record in _records(first, last):
        by_topic.setdefault(topic, []).append(record)
    for topic, records in by_topic.items():
        broker.produce(topic, records)


def _records(first: int, last: int) -> Iterator[tuple[str, tuple[bytes, bytes, int]]]:
    for n in range(first, last):
        yield "lines", (b"k%d" % (n % 5), b"w%d all x%d" % (n % 4, n % 9), 1000 + n * 7)
        yield "rows", (b"w%d" % (n % 4), b"row%d" % n, 1002 + n * 7)


def unpack(folder: Path) -> None:
    """Lay out what the earlier application left behind."""
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for file in folder.glob("app/checkpoint/state/*/_metadata/v2/0"):
        file.write_text(file.read_text(encoding="utf-8").replace("/earlier", str(folder)), encoding="utf-8")
