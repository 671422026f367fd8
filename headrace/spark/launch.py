"""From a topology to a running Spark query."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass, replace
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headrace.application.folder import ApplicationFolder
from headrace.application.reset import reset_command
from headrace.brokers.connecting import shared_broker
from headrace.brokers.engine import EngineBroker
from headrace.brokers.runs import Run
from headrace.config import StreamsConfig
from headrace.engine.application import Application
from headrace.engine.changelogs import changelog_name, changelogs
from headrace.engine.identity import Identity, last_number
from headrace.engine.images import current_images
from headrace.engine.metrics import Metrics
from headrace.engine.plan import Plan, Unit, make_plan
from headrace.errors import StreamsError, TopicError
from headrace.spark.reader import READING, Reading, TopicsSource
from headrace.spark.runtime.session import is_local, spark_session
from headrace.spark.stages import Packed, chain
from headrace.spark.writer import Writer
from headrace.task.processors import check_supplier
from headrace.task.task import Task
from headrace.topology.nodes import ProcessorNode, SinkNode, SourceNode
from headrace.topology.processor import PunctuationType
from headrace.topology.topology import Topology


class NoTopicYetError(TopicError):
    """No topic matches a pattern: an application that runs on waits for one."""


@dataclass
class Prepared:
    """All that is settled before a query begins."""

    application: Application
    reading: Reading
    identity: Identity
    broker: EngineBroker
    session: SparkSession
    passing: list[int]
    """Numbers for what no task takes: the last of each shuffle partition."""

    @property
    def plan(self) -> Plan:
        return self.application.plan


def prepare(topology: Topology, config: StreamsConfig, folder: ApplicationFolder) -> Prepared:
    """Check an application against its topics and its checkpoint; nothing is read or written but what it needs."""
    topology.validate()
    for node in topology.nodes.values():
        if isinstance(node, ProcessorNode) and node.supplier is not None:
            check_supplier(node)
    broker = shared_broker(config.bootstrap_servers, config.kafka)
    known = _make_topics(topology, config, broker)
    plan = make_plan(topology, config, known)
    session = spark_session(config)
    identity = _identity(folder, plan, config, broker, session)
    numbers = identity.take_up(plan, topology, config)
    identity.save(folder.identity)
    logged = changelogs(topology, config, plan) if broker.keeps_changelogs else {}
    # On a cluster state_dir is shared_broker by its machines, and LMDB must not be used over a network.
    images = current_images(folder.images) if is_local(config.master) else None
    application = Application(topology, config, plan, numbers, dict(identity.generations), images, logged)
    session.conf.set("spark.sql.shuffle.partitions", str(identity.shuffle_partitions))
    count = identity.shuffle_partitions
    passing = [last_number(partition, count) for partition in range(count)]
    reading = _reading(application, folder, session.sparkContext.defaultParallelism, passing)
    return Prepared(application, reading, identity, broker, session, passing)


def topics_changed(prepared: Prepared) -> bool:
    """Tell whether there are topics or partitions that were not there when this was prepared."""
    application, plan = prepared.application, prepared.application.plan
    known = _known_topics(application.topology, application.config, prepared.broker)
    patterns = [
        node
        for node in application.topology.nodes.values()
        if isinstance(node, SourceNode) and node.pattern is not None
    ]
    added = {topic for topic in known if any(node.reads(topic) for node in patterns)} - set(plan.input_topics())
    others = known.keys() & plan.partitions.keys() - plan.internal
    return bool(added) or any(known[topic] != plan.partitions[topic] for topic in others)


def start_query(prepared: Prepared, folder: ApplicationFolder, metrics: Metrics, *, until_caught_up: bool) -> Running:
    """Begin a run: from now on no earlier one can write."""
    application, config = prepared.application, prepared.application.config
    run = prepared.broker.begin_run(
        config.application_id,
        prepared.identity.lineage,
        exactly_once=config.processing_guarantee == "exactly_once_v2",
        changelogs=application.changelogs.values(),
        replication_factor=config.replication_factor,
    )
    try:
        return _started(prepared, folder, metrics, run, until_caught_up)
    except BaseException:
        prepared.broker.end_run(run)
        raise


def _started(
    prepared: Prepared, folder: ApplicationFolder, metrics: Metrics, run: Run, until_caught_up: bool
) -> Running:
    application, config = prepared.application, prepared.application.config
    writer = Writer(application, run, metrics)
    prepared.session.dataSource.register(TopicsSource)
    rows = prepared.session.readStream.format("headrace").option(READING, prepared.reading.dumps()).load()
    application = replace(application, permit=prepared.broker.permit(run))
    packed = Packed(f"{config.application_id} {run.number} {uuid4().hex}", application)
    stages = chain(rows, packed, application, prepared.passing)
    starting = (
        stages.writeStream.queryName(f"{config.application_id}-{run.number}")
        .foreachBatch(writer)
        .option("checkpointLocation", f"file://{folder.checkpoint}")
    )
    if until_caught_up:
        starting = starting.trigger(availableNow=True)
    else:
        starting = starting.trigger(processingTime=f"{config.commit_interval_ms} milliseconds")
    return Running(starting.start(), writer, run, folder)


@dataclass
class Running:
    """A query and its writer."""

    query: StreamingQuery
    writer: Writer
    run: Run
    folder: ApplicationFolder

    def stop(self) -> None:
        """Let the running batch end and begin no other, then stop the query.

        Stopping in the middle of a batch would interrupt the callback that writes, and Spark's way out of that is an
        overflow of its stack.
        """
        self.folder.stop_file.touch()
        try:
            # A trigger that begins after that finds the file, and has nothing to do.
            while self.query.isActive and self.query.status["isTriggerActive"]:
                time.sleep(0.02)
            self.query.stop()
        finally:
            self.folder.stop_file.unlink(missing_ok=True)


def _make_topics(topology: Topology, config: StreamsConfig, broker: EngineBroker) -> dict[str, int]:
    """Create the topics that the application names and that are not there; return all there are."""
    wanted: dict[str, int] = {}
    for node in topology.nodes.values():
        if isinstance(node, SourceNode):
            wanted.update(dict.fromkeys(node.topics, config.num_partitions))
        elif isinstance(node, SinkNode) and isinstance(node.topic, str):
            wanted[node.topic] = config.num_partitions
    wanted = {topic: count for topic, count in wanted.items() if topic not in topology.internal_topics}
    broker.ensure_topics(wanted, config.replication_factor)
    known = _known_topics(topology, config, broker)
    for node in topology.nodes.values():
        if isinstance(node, SourceNode) and node.pattern is not None and not any(map(node.reads, known)):
            raise NoTopicYetError(f"source '{node.name}': no topic matches the pattern '{node.pattern.pattern}'")
    return known


def _known_topics(topology: Topology, config: StreamsConfig, broker: EngineBroker) -> dict[str, int]:
    """Return the topics there are, without what the application keeps in them for itself: no pattern means that."""
    named = {topic for node in topology.nodes.values() if isinstance(node, SourceNode) for topic in node.topics}
    own = {f"{config.application_id}-commits", *(changelog_name(config, store) for store in topology.stores)} - named
    return {topic: count for topic, count in broker.partition_counts().items() if topic not in own}


def _identity(
    folder: ApplicationFolder, plan: Plan, config: StreamsConfig, broker: EngineBroker, session: SparkSession
) -> Identity:
    known = Identity.load(folder.identity)
    committed = broker.last_batch(config.application_id)
    begun = folder.has_begun()
    if known is not None and begun and committed is None:
        raise StreamsError(
            f"application '{config.application_id}' has a checkpoint in '{folder.path}', but "
            f"{config.bootstrap_servers} knows nothing of it: these are not the topics it has read. "
            "Set bootstrap_servers to where they are, or "
            f"start over with: {reset_command(config)}"
        )
    if committed is not None and committed[1] >= 0:
        lineage, batch = committed
        if known is None or (known.lineage == lineage and not (folder.checkpoint / "offsets" / str(batch)).exists()):
            raise StreamsError(
                f"application '{config.application_id}' has written {batch + 1} batches to its topics, but there is no "
                f"checkpoint as new as that in '{folder.path}'. Set state_dir to where it is, or start over with: "
                f"{reset_command(config)}"
            )
    if known is not None:
        return known
    if not begun and config.auto_offset_reset == "none":
        raise StreamsError(
            f"application '{config.application_id}' has not read anything yet, and auto_offset_reset is 'none': "
            "expected to go on from an earlier run. Set it to 'earliest' or 'latest'"
        )
    widest = max((_tasks_of_level(plan, level) for level in plan.stateful_levels()), default=1)
    chosen = config.spark.get("spark.sql.shuffle.partitions")
    return Identity.new(int(chosen) if chosen else max(1, min(widest, session.sparkContext.defaultParallelism)))


def _tasks_of_level(plan: Plan, level: int) -> int:
    return sum(unit.tasks for unit in plan.units if unit.level == level and unit.stateful)


def _reading(application: Application, folder: ApplicationFolder, readers: int, passing: list[int]) -> Reading:
    plan, config, topology = application.plan, application.config, application.topology
    numbers = application.task_numbers
    tasks: dict[str, list[list[int]]] = {}
    for topic in plan.input_topics():
        takers: list[list[int]] = [[] for _ in range(plan.partitions[topic])]
        for partition, mine in enumerate(takers):
            if topic in plan.readers:
                unit = plan.units[plan.readers[topic]]
                mine.append(numbers[unit.number][plan.task_of(unit, partition)])
            for number in plan.global_readers.get(topic, ()):
                mine.extend(numbers[number])
        tasks[topic] = takers
    ticking, interval = _ticking(application)
    return Reading(
        address=config.bootstrap_servers,
        settings=pickle.dumps(config.kafka),
        tasks=tasks,
        resets={topic: _reset(topology, topic, config) for topic in tasks},
        limit=config.max_records_per_batch,
        ticking=ticking,
        tick_ms=max(interval, config.commit_interval_ms),
        last=passing,
        stop_file=str(folder.stop_file),
        readers=readers,
        goes_on=config.on_data_loss == "continue",
    )


def _reset(topology: Topology, topic: str, config: StreamsConfig) -> str:
    """Return where a topic begins; a global table is always the whole of it."""
    for sub in topology.sub_topologies():
        for node in map(topology.nodes.__getitem__, sub.nodes):
            if isinstance(node, SourceNode) and node.reads(topic):
                return "earliest" if sub.is_global else node.offset_reset or config.auto_offset_reset
    return config.auto_offset_reset


def _ticking(application: Application) -> tuple[list[int], int]:
    """Return the tasks with punctuations by the wall clock, and the shortest interval of these.

    Only the processors themselves know: each is made once and asked to schedule.
    """
    found: list[int] = []
    intervals: list[int] = []
    for unit in application.plan.units:
        mine = [interval for sub in unit.subs for interval in _wall_clock_intervals(application, unit, sub)]
        if mine:
            found.extend(application.task_numbers[unit.number])
            intervals.extend(mine)
    return found, min(intervals, default=0)


def _wall_clock_intervals(application: Application, unit: Unit, sub: int) -> list[int]:
    topology, tables = application.topology, {}
    nodes = [topology.nodes[name] for name in application.subs[sub].nodes]
    if not any(isinstance(node, ProcessorNode) and node.supplier is not None for node in nodes):
        return []
    for table in unit.global_subs:
        tables.update(Task(topology, application.subs[table], application.config).stores)
    task = Task(topology, application.subs[sub], application.config, global_stores=tables)
    try:
        return [schedule.interval for schedule in task.schedules[PunctuationType.WALL_CLOCK_TIME].entries]
    finally:
        task.close()
