"""From a topology to an application that can run: create its topics, plan it, and fit the plan to its checkpoint.

Tests: `tests/engine/test_in_process.py`.
"""

from __future__ import annotations

from pathlib import Path

from headrace.brokers.engine import EngineBroker
from headrace.config import StreamsConfig
from headrace.engine.application import Application
from headrace.engine.changelogs import changelogs
from headrace.engine.identity import Identity
from headrace.engine.plan import Plan, make_plan
from headrace.engine.topics import create_topics
from headrace.task.processors import check_supplier
from headrace.topology.topology import Topology


def plan_application(topology: Topology, config: StreamsConfig, broker: EngineBroker) -> Plan:
    """Check a topology, create the topics that are missing, and plan its tasks."""
    topology.validate()
    for node in topology.processors():
        if node.supplier is not None:
            check_supplier(node)
    return make_plan(topology, config, create_topics(topology, config, broker))


def make_application(
    topology: Topology,
    config: StreamsConfig,
    broker: EngineBroker,
    plan: Plan,
    identity: Identity,
    images: Path | None,
) -> Application:
    """Fit a plan to the checkpoint's identity. Raise if the state does not fit."""
    numbers = identity.take_up(plan, topology, config)
    logged = changelogs(topology, config, plan) if broker.keeps_changelogs else {}
    return Application(topology, config, plan, numbers, dict(identity.generations), images, logged)
