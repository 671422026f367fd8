"""Both ways in which outputs leave: in workspace, and through the driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace import StreamsBuilder, StreamsConfig, StreamsError, serdes
from headrace.engine.delivery import DeliveryInPlace, DeliveryThroughDriver, delivery_of, merged
from headrace.engine.messages import FOR_DRIVER, OutputRecords
from headrace.raw_records import OutputColumns
from headrace.task.lanes import Causes, Numbers
from tests.engine.memory_engine import MemoryEngine


def numbers(*given: int) -> Numbers:
    return np.array(given, np.int64)


CAUSES = Causes(numbers(10, 20, 30), numbers(1, 2, 3))
COLUMNS = OutputColumns([None, None], [b"a", None], [b"1", b"2"], [10, 20], [[], []], [0, 1])


def engine_of(folder: Path, *, in_place: bool) -> MemoryEngine:
    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.String).to("out", value_serde=serdes.String)
    return MemoryEngine(builder.build(), StreamsConfig(application_id="app"), folder, in_place=in_place)


def test_outputs_in_place_are_written_at_the_commit_and_send_no_message(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, in_place=True)

    with engine.delivery.open(engine.worker, 0) as outbox:
        sent = list(outbox.put("1", 0, "out", COLUMNS, CAUSES, sender=0))
        before = engine.records("out")
        outbox.commit()

    assert (sent, before) == ([], [])
    assert [record[3] for record in engine.records("out")] == [b"1", b"2"]
    assert outbox.numbers()["records_written"] == 2


def test_outputs_through_the_driver_are_messages_with_their_causes(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, in_place=False)

    with engine.delivery.open(engine.worker, 0) as outbox:
        [(to, message)] = outbox.put("1", 7, "out", COLUMNS, CAUSES, sender=0)
        outbox.commit()

    assert isinstance(message, OutputRecords)
    assert (to, message.topic, message.lane, message.number) == (FOR_DRIVER, "out", "1", 7)
    assert message.times == numbers(10, 20).tobytes()
    assert engine.records("out") == []


def test_the_driver_merges_the_outputs_of_tasks_by_cause() -> None:
    def outputs(lane: str, *times: int) -> OutputRecords:
        records = [(b"k", b"%d" % time, time, None) for time in times]
        return OutputRecords("out", 0, lane, 0, records, numbers(*times).tobytes(), numbers(*times).tobytes())

    [(topic, partition, records)] = merged([outputs("2", 2, 3), outputs("1", 1, 4)])

    assert (topic, partition) == ("out", 0)
    assert [value for _, value, _, _ in records] == [b"1", b"2", b"3", b"4"]


def test_a_permit_decides_where_outputs_are_written() -> None:
    assert isinstance(delivery_of(None), DeliveryThroughDriver)
    assert delivery_of("permit") == DeliveryInPlace("permit")


def test_a_second_attempt_of_a_task_is_refused_where_the_first_may_have_written() -> None:
    DeliveryThroughDriver().check_task_attempt(1)
    DeliveryInPlace(object()).check_task_attempt(0)

    with pytest.raises(StreamsError, match="tries the whole batch again"):
        DeliveryInPlace(object()).check_task_attempt(1)
