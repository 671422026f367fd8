"""The wall clock: which tasks have punctuations by the wall clock, and how often.

Tests: `tests/conformance/test_engines.py`.
"""

from __future__ import annotations

from headrace.engine.application import Application
from headrace.engine.plan import Unit
from headrace.task.task import Task
from headrace.topology.processor import PunctuationType


def ticking_tasks(application: Application) -> tuple[list[int], int]:
    """Return the tasks with punctuations by the wall clock, and the shortest interval of these punctuations.

    Only the processors themselves know. So make each of them once, and see what its `init` schedules.
    """
    tasks: list[int] = []
    intervals: list[int] = []
    for unit in application.plan.units:
        mine = [interval for sub in unit.subs for interval in _intervals(application, unit, sub)]
        if mine:
            tasks.extend(application.task_numbers[unit.number])
            intervals.extend(mine)
    return tasks, min(intervals, default=0)


def _intervals(application: Application, unit: Unit, sub: int) -> list[int]:
    topology, config, subs = application.topology, application.config, application.sub_topologies
    if not any(node.supplier is not None for node in topology.processors(subs[sub])):
        return []
    tables = {
        name: store for table in unit.global_subs for name, store in Task(topology, subs[table], config).stores.items()
    }
    task = Task(topology, subs[sub], config, global_stores=tables)
    try:
        return [schedule.interval for schedule in task.schedules[PunctuationType.WALL_CLOCK_TIME].entries]
    finally:
        task.close()
