"""The engine in one process, over the embedded log.

Tests: headrace.engine.in_process, headrace.engine.commit, headrace.engine.worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import StreamsBuilder, StreamsConfig, TaskError, Topology, serdes
from headrace.brokers import LocalBroker
from headrace.engine.in_process import InProcessEngine


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path / "topics.db") as broker:
        broker.create_topic("lines", 2)
        yield broker


def engine_of(topology: Topology, broker: LocalBroker, folder: Path) -> InProcessEngine:
    config = StreamsConfig(application_id="app", statestore_cache_max_bytes=0, max_records_per_batch=2)
    return InProcessEngine(topology, config, broker, folder / "images")


def counts_of_words() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines", value_serde=serdes.String).flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="counts")
    counts.to_stream().to("counts", value_serde=serdes.Long)
    return builder.build()


def lines(broker: LocalBroker, *texts: str, start: int = 0) -> None:
    broker.produce("lines", [(b"%d" % n, text.encode(), start + n) for n, text in enumerate(texts)])


def test_words_are_counted_over_batches(tmp_path: Path, broker: LocalBroker) -> None:
    engine = engine_of(counts_of_words(), broker, tmp_path)
    lines(broker, "to be or", "not to be", "to be")

    engine.run_until_caught_up()
    lines(broker, "be", start=10)
    engine.run_until_caught_up()

    values = [(record.key, serdes.Long.deserialize("counts", record.value)) for record in broker.records("counts")]
    assert [count for word, count in values if word == b"be"] == [1, 2, 3, 4]
    assert broker.positions("app")["lines"] == broker.end_offsets("lines")
    assert engine.metrics.batches() > 1


def test_the_exception_of_a_function_ends_the_batch_and_commits_nothing(tmp_path: Path, broker: LocalBroker) -> None:
    builder = StreamsBuilder()
    builder.stream("lines", value_serde=serdes.String).map_values(int).to("out")
    engine = engine_of(builder.build(), broker, tmp_path)
    lines(broker, "1", "two")

    with pytest.raises(TaskError, match="invalid literal for int"):
        engine.run_until_caught_up()

    assert broker.end_offsets("out") == {0: 0}
    assert broker.positions("app") == {}
