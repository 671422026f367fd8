"""Check an application against its topics and its checkpoint, before its query starts."""

from __future__ import annotations

from headrace.application.folder import ApplicationFolder
from headrace.application.reset import reset_command
from headrace.brokers.connecting import shared_broker
from headrace.brokers.engine import EngineBroker
from headrace.config import StreamsConfig
from headrace.engine.identity import Identity
from headrace.engine.images import current_images
from headrace.engine.plan import Plan
from headrace.engine.preparation import make_application, plan_application
from headrace.engine.read_plan import read_plan_of
from headrace.errors import StreamsError
from headrace.spark.query import QuerySetup
from headrace.spark.runtime.session import spark_session
from headrace.spark.runtime.settings import is_local
from headrace.topology.topology import Topology


def prepare(topology: Topology, config: StreamsConfig, folder: ApplicationFolder) -> QuerySetup:
    """Prepare everything that a query needs. This creates missing topics and writes the identity, but nothing else."""
    broker = shared_broker(config.bootstrap_servers, config.kafka)
    plan = plan_application(topology, config, broker)
    session = spark_session(config)
    identity = _identity(folder, plan, config, broker, session.sparkContext.defaultParallelism)
    # On a cluster state_dir is shared by its machines, and LMDB must not be used over a network.
    images = current_images(folder.images) if is_local(config.master) else None
    application = make_application(topology, config, broker, plan, identity, images)
    identity.save(folder.identity)
    return QuerySetup(
        session,
        application,
        read_plan_of(application),
        identity.shuffle_partitions,
        identity.lineage,
        folder.checkpoint,
        folder.stop_file,
    )


def _identity(
    folder: ApplicationFolder, plan: Plan, config: StreamsConfig, broker: EngineBroker, cores: int
) -> Identity:
    """Return the identity of the checkpoint. Raise if checkpoint and topics do not belong together."""
    known, begun = Identity.load(folder.identity), folder.has_begun()
    _check_they_fit(folder, config, known, begun, broker.last_batch(config.application_id))
    if known is not None:
        return known
    if not begun and config.auto_offset_reset == "none":
        raise StreamsError(
            f"application '{config.application_id}' has not read anything yet, and auto_offset_reset is 'none', which "
            "only continues an earlier run. Set it to 'earliest' or 'latest'"
        )
    widest = max((_tasks_of_level(plan, level) for level in plan.stateful_levels()), default=1)
    chosen = config.spark.get("spark.sql.shuffle.partitions")
    return Identity.new(int(chosen) if chosen else max(1, min(widest, cores)))


def _check_they_fit(
    folder: ApplicationFolder,
    config: StreamsConfig,
    known: Identity | None,
    begun: bool,
    committed: tuple[str, int] | None,
) -> None:
    if known is not None and begun and committed is None:
        raise StreamsError(
            f"application '{config.application_id}' has a checkpoint in '{folder.path}', but "
            f"{config.bootstrap_servers} has no record of it: these are not the topics it has read. "
            f"Set bootstrap_servers to the address of its topics, or start over with: {reset_command(config)}"
        )
    if committed is not None and committed[1] >= 0:
        lineage, batch = committed
        if known is None or (known.lineage == lineage and not folder.has_planned(batch)):
            raise StreamsError(
                f"application '{config.application_id}' has written {batch + 1} batches to its topics, but the "
                f"checkpoint in '{folder.path}' is missing or older. Set state_dir to the folder with its checkpoint, "
                f"or start over with: {reset_command(config)}"
            )


def _tasks_of_level(plan: Plan, level: int) -> int:
    return sum(unit.tasks for unit in plan.units if unit.level == level and unit.stateful)
