"""What the tasks of a process share: `worker`."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from headrace import StreamsBuilder, StreamsConfig, TopicError
from headrace.engine.messages import FOR_DRIVER, Failure, TopicRange
from headrace.engine.stateless import StatelessStage
from headrace.engine.worker import Worker
from tests.engine.memory_engine import MemoryEngine


def engine_of(folder: Path) -> MemoryEngine:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return MemoryEngine(builder.build(), StreamsConfig(application_id="app", num_partitions=3), folder)


def test_a_broker_that_cannot_be_opened_fails_the_task_with_its_own_error(tmp_path: Path) -> None:
    def refuse() -> NoReturn:
        raise TopicError("the embedded log cannot be opened")

    engine = engine_of(tmp_path)
    (task,) = engine.application.units

    with StatelessStage(Worker(engine.application, refuse), engine.delivery, 0) as stage:
        [sent] = stage.run(task, [TopicRange("in", 0, 0, 1, 0)])

    [(to, message)] = sent
    assert to == FOR_DRIVER
    assert isinstance(message, Failure)
    assert isinstance(message.error(), TopicError)


def test_topics_that_only_a_record_has_named_are_created(tmp_path: Path) -> None:
    worker = engine_of(tmp_path).worker

    worker.create_topics(["out", "letters"])

    assert worker.broker.partition_counts() == {"in": 1, "out": 3, "letters": 3}
    assert (worker.partition_count("letters"), worker.partition_count("later")) == (3, 3)
