"""An application as its tasks know it: a value that travels to the workers.

Tests: `tests/engine/test_in_process.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from headrace.brokers.broker import TopicInfo
from headrace.config import StreamsConfig
from headrace.engine.plan import Plan, Unit
from headrace.engine.routing import Routes
from headrace.topology.topology import SubTopology, Topology


@dataclass(frozen=True)
class Application:
    """What runs: a topology, its configuration, and the tasks that were planned for it."""

    topology: Topology
    config: StreamsConfig
    plan: Plan
    task_numbers: Mapping[int, list[int]]
    """The numbers of each unit's tasks."""
    generations: Mapping[str, int]
    """How often each store was dropped. Its contents from before are out of reach."""
    image_dir: Path | None
    """The folder of the images; None: on each executor's own disk."""
    changelogs: Mapping[str, TopicInfo] = field(default_factory=dict)
    """The topic that each store's changes go to."""

    @cached_property
    def sub_topologies(self) -> Mapping[int, SubTopology]:
        """The sub-topologies by their ids."""
        return {sub.id: sub for sub in self.topology.sub_topologies()}

    @cached_property
    def units(self) -> Mapping[int, tuple[Unit, int]]:
        """The unit and the partition of each task number."""
        return {
            number: (unit, partition)
            for unit in self.plan.units
            for partition, number in enumerate(self.task_numbers[unit.number])
        }

    @cached_property
    def routes(self) -> Routes:
        """The ways from the topics that tasks write."""
        plan = self.plan
        tasks = {
            topic: [self.task_numbers[unit][plan.task_of(plan.units[unit], n)] for n in range(plan.partitions[topic])]
            for topic, unit in plan.readers.items()
            if topic in plan.internal
        }
        return Routes(plan.partitions, tasks, plan.key_suffixes)

    @cached_property
    def changelog_topics(self) -> frozenset[str]:
        """The names of the changelog topics."""
        return frozenset(topic.name for topic in self.changelogs.values())

    def is_of_level(self, task: int, level: int) -> bool:
        """Tell whether a task has state and belongs to a level."""
        found = self.units.get(task)
        return found is not None and found[0].stateful and found[0].level == level

    def is_stateless(self, task: int) -> bool:
        """Tell whether a task has no state, so that it can run anywhere."""
        found = self.units.get(task)
        return found is not None and not found[0].stateful
