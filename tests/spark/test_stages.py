"""How a stage knows that it has had all of its input, and how a run gets to the workers."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn, cast
from unittest.mock import Mock

import pytest
from pyspark import TaskContext

from headrace import StreamsBuilder, StreamsConfig, StreamsError, Topology, serdes
from headrace.engine.application import Application
from headrace.engine.delivery import Delivery, DeliveryInPlace, DeliveryThroughDriver
from headrace.engine.messages import FOR_DRIVER, Message, Report, TopicRange, decode
from headrace.engine.plan import make_plan
from headrace.engine.worker import Worker
from headrace.spark import stages
from headrace.spark.rows import batch_of
from headrace.spark.stages import PackedRun, RunInWorker
from tests.engine.memory_engine import MemoryEngine


class Unpacked:
    """A run that need not travel."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._run = RunInWorker(engine.worker, engine.delivery)

    def unpack(self) -> RunInWorker:
        return self._run


def in_batch(monkeypatch: pytest.MonkeyPatch, number: int, attempt: int = 0) -> None:
    context = Mock(**{"attemptNumber.return_value": attempt, "getLocalProperty.return_value": str(number)})
    monkeypatch.setattr(TaskContext, "get", lambda: context)


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut off"])
def test_records_that_do_not_arrive_to_their_end_are_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.String).map_values(str.upper).to("out", value_serde=serdes.String)
    engine = MemoryEngine(builder.build(), StreamsConfig(application_id="app"), tmp_path)
    engine.produce("in", b"k", b"v", 1)
    in_batch(monkeypatch, 0)
    (task,) = engine.application.units
    rows: list[tuple[int, Message]] = [(task, TopicRange("in", 0, 0, 1, 0)), (FOR_DRIVER, Report("reader", {}))]
    made: list[Message] = []

    def process() -> None:
        stage = stages._stateless(cast(PackedRun, Unpacked(engine)), [0])
        for batch in stage(iter([batch_of(rows if whole else rows[:1])])):
            made.extend(decode(data) for data in batch.column(1).to_pylist())

    if whole:
        process()
    else:
        with pytest.raises(StreamsError, match="a part of a batch did not arrive"):
            process()
    assert ("stateless tasks" in [message.name for message in made if isinstance(message, Report)]) == whole


def _no_broker() -> NoReturn:
    raise AssertionError("the broker is not needed")


def application_of(config: StreamsConfig) -> Application:
    topology = Topology().add_source("source", "in")
    return Application(topology, config, make_plan(topology, config, {"in": 1}), {0: [0]}, {}, None)


@pytest.mark.parametrize("delivery", [DeliveryInPlace(object()), DeliveryThroughDriver()])
def test_a_task_that_writes_does_not_run_twice_in_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivery: Delivery
) -> None:
    in_batch(monkeypatch, 7, attempt=1)
    worker = Worker(application_of(StreamsConfig(application_id="app")), _no_broker)
    run = RunInWorker(worker, delivery)

    if isinstance(delivery, DeliveryInPlace):
        with pytest.raises(StreamsError, match="Spark has lost an executor"):
            run.batch_number()
    else:
        assert run.batch_number() == 7


def test_runs_that_come_to_a_worker_share_a_broker_though_functions_are_among_its_settings() -> None:
    def token(config: str) -> tuple[str, float]:
        return "t", 0.0

    config = StreamsConfig(application_id="app", bootstrap_servers="localhost:1", kafka={"oauth_cb": token})
    application = application_of(config)

    arrived = [PackedRun(f"run {number % 3}", application, DeliveryThroughDriver()).unpack() for number in range(6)]

    assert len({id(run) for run in arrived}) > 1
    assert len({id(run.worker.broker) for run in arrived}) == 1
