"""Work out what an application reads, for the planner of its batches.

The planner runs in processes of its own, which Spark starts one after the other for every query. They need the plan but
not the application, whose modules take 0.1 s to import.

Tests: `tests/engine/test_in_process.py`.
"""

from __future__ import annotations

from headrace.engine.application import Application
from headrace.engine.batches import ReadPlan
from headrace.engine.wall_clock import ticking_tasks


def read_plan_of(application: Application) -> ReadPlan:
    """Return which topics an application reads, which tasks read them, and how."""
    plan, config, numbers = application.plan, application.config, application.task_numbers
    tasks: dict[str, list[list[int]]] = {}
    for topic in plan.input_topics():
        readers: list[list[int]] = [[] for _ in range(plan.partitions[topic])]
        for partition, mine in enumerate(readers):
            if topic in plan.readers:
                unit = plan.units[plan.readers[topic]]
                mine.append(numbers[unit.number][plan.task_of(unit, partition)])
            for number in plan.global_readers.get(topic, ()):
                mine.extend(numbers[number])
        tasks[topic] = readers
    ticking, interval = ticking_tasks(application)
    return ReadPlan(
        tasks=tasks,
        resets={topic: _reset(application, topic) for topic in tasks},
        limit=config.max_records_per_batch,
        ticking=ticking,
        tick_ms=max(interval, config.commit_interval_ms),
        goes_on_after_loss=config.on_data_loss == "continue",
    )


def _reset(application: Application, topic: str) -> str:
    """Return where a topic begins. A global table is always read from its first record."""
    topology, usual = application.topology, application.config.auto_offset_reset
    for sub in topology.sub_topologies():
        for source in topology.sources(sub):
            if source.reads(topic):
                return "earliest" if sub.is_global else source.offset_reset or usual
    return usual
