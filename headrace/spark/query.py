"""The query: an application as a streaming query of Spark.

Tests: `tests/application/test_streams.py`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.brokers.connecting import shared_broker
from headrace.brokers.runs import Run
from headrace.engine.application import Application
from headrace.engine.batches import ReadPlan
from headrace.engine.commit import BatchCommitter
from headrace.engine.delivery import delivery_of
from headrace.engine.identity import last_number
from headrace.engine.metrics import Metrics
from headrace.engine.worker import Worker
from headrace.spark.sink import Sink
from headrace.spark.source import FORMAT, OPTION, SourceSettings, TopicsSource
from headrace.spark.stages import PackedRun, chain

_LOOK_SECONDS = 0.02


@dataclass
class RunningQuery:
    """A query and its sink."""

    query: StreamingQuery
    sink: Sink
    run: Run
    stop_file: Path

    def stop(self) -> None:
        """Let the current batch end and begin no other, then stop the query.

        Stopping Spark in the middle of a batch would interrupt the callback that commits, and end in a stack overflow.
        """
        self.stop_file.touch()
        try:
            # A trigger that begins from now on finds the file and does nothing.
            while self.query.isActive and self.query.status["isTriggerActive"]:
                time.sleep(_LOOK_SECONDS)
            self.query.stop()
        finally:
            self.stop_file.unlink(missing_ok=True)


@dataclass(frozen=True)
class QuerySetup:
    """Everything that is decided before a query starts."""

    session: SparkSession
    application: Application
    read_plan: ReadPlan
    shuffle_partitions: int
    lineage: str
    checkpoint: Path
    stop_file: Path


def start_query(setup: QuerySetup, metrics: Metrics, *, until_caught_up: bool) -> RunningQuery:
    """Begin a run and start its query. From now on, earlier runs cannot write."""
    application = setup.application
    config = application.config
    broker = shared_broker(config.bootstrap_servers, config.kafka)
    run = broker.begin_run(
        config.application_id,
        setup.lineage,
        exactly_once=config.processing_guarantee == "exactly_once_v2",
        changelogs=application.changelogs.values(),
        replication_factor=config.replication_factor,
    )
    try:
        return _start(setup, run, metrics, until_caught_up)
    except BaseException:
        broker.end_run(run)
        raise


def _start(setup: QuerySetup, run: Run, metrics: Metrics, until_caught_up: bool) -> RunningQuery:
    session, application, count = setup.session, setup.application, setup.shuffle_partitions
    config = application.config
    broker = shared_broker(config.bootstrap_servers, config.kafka)
    session.conf.set("spark.sql.shuffle.partitions", str(count))
    session.dataSource.register(TopicsSource)
    last_numbers = [last_number(partition, count) for partition in range(count)]
    settings = SourceSettings(
        address=config.bootstrap_servers,
        client_settings=cloudpickle.dumps(config.kafka),
        plan=setup.read_plan,
        last_numbers=last_numbers,
        stop_file=str(setup.stop_file),
        readers=session.sparkContext.defaultParallelism,
    )
    rows = session.readStream.format(FORMAT).option(OPTION, settings.dumps()).load()
    name = f"{config.application_id} {run.number} {uuid4().hex}"
    packed = PackedRun(name, application, delivery_of(broker.permit(run)))
    worker = Worker(application, partial(shared_broker, config.bootstrap_servers, config.kafka))
    sink = Sink(BatchCommitter(worker, run, metrics))
    writing = (
        chain(rows, packed, application, last_numbers)
        .writeStream.queryName(f"{config.application_id}-{run.number}")
        .foreachBatch(sink)
        .option("checkpointLocation", f"file://{setup.checkpoint}")
    )
    if until_caught_up:
        writing = writing.trigger(availableNow=True)
    else:
        writing = writing.trigger(processingTime=f"{config.commit_interval_ms} milliseconds")
    return RunningQuery(writing.start(), sink, run, setup.stop_file)
