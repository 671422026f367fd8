"""How a stage knows that it has had all of its input."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from headrace import StreamsBuilder, StreamsConfig, StreamsError, serdes
from headrace.spark import stages
from headrace.spark.blocks import Block, Report, Stretch, decode
from headrace.spark.reader import batch_of
from headrace.spark.routing import FOR_THE_WRITER
from headrace.spark.stages import Packed
from tests.spark.batches import BatchEngine


class Unpacked:
    """An application that need not travel."""

    def __init__(self, engine: BatchEngine) -> None:
        self._engine = engine

    def application(self) -> object:
        return self._engine.application


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut off"])
def test_what_a_reader_has_not_sent_to_its_end_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.String).map_values(str.upper).to("out", value_serde=serdes.String)
    config = StreamsConfig(application_id="app", bootstrap_servers=f"local:{tmp_path}/topics.db")
    engine = BatchEngine(builder.build(), config, tmp_path)
    engine.produce("in", b"k", b"v", 1)
    monkeypatch.setattr(stages, "_batch_number", lambda: 0)
    (task,) = engine.application.units
    rows: list[tuple[int, Block]] = [(task, Stretch("in", 0, 0, 1, 0)), (FOR_THE_WRITER, Report("reader", {}))]
    said: list[Block] = []

    def run() -> None:
        stage = stages._stateless(cast(Packed, Unpacked(engine)), [0])
        for batch in stage(iter([batch_of(rows if whole else rows[:1])])):
            said.extend(decode(data) for data in batch.column(1).to_pylist())

    if whole:
        run()
    else:
        with pytest.raises(StreamsError, match="a part of a batch has not come to its task"):
            run()
    assert ("stateless tasks" in [block.name for block in said if isinstance(block, Report)]) == whole
