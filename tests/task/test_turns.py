"""`TaskTurns`: which of the waiting records is next, and what happens after each."""

from typing import Any

import pytest

from headrace import Processor, Record, TaskError, Topology
from headrace.task.task import Task
from headrace.task.turns import TaskTurns
from tests.task.tasks import CONFIG, raw_lane, values


def two_tasks() -> tuple[list[Task], list[str]]:
    """Make two tasks, the first with two topics; the list gets the values that come out, in order."""
    topology = Topology().add_source("one", "a").add_source("two", "b").add_sink("left", "out", "one", "two")
    topology.add_source("three", "c").add_sink("right", "out", "three")
    return [Task(topology, sub, CONFIG) for sub in topology.sub_topologies()], []


def enqueue(turns: TaskTurns, topic: str, *records: tuple[int, str]) -> None:
    raw = [(offset, timestamp, b"k", value.encode(), None) for offset, (timestamp, value) in enumerate(records)]
    for record in raw_lane(topic, 0, raw).records:
        turns.enqueue(topic, 0, record)


def test_the_record_with_the_lowest_timestamp_at_the_head_of_a_queue_is_next() -> None:
    tasks, seen = two_tasks()
    turns = TaskTurns(tasks, lambda task: seen.extend(values(task)))
    enqueue(turns, "a", (1, "11"), (5, "15"), (3, "13"))
    enqueue(turns, "b", (2, "22"), (6, "26"))
    enqueue(turns, "c", (4, "34"), (7, "37"))

    turns.settle(0)

    assert seen == ["11", "22", "34", "15", "13", "26", "37"]


def test_of_equal_timestamps_the_first_task_and_its_first_queue_is_next() -> None:
    tasks, seen = two_tasks()
    turns = TaskTurns(tasks, lambda task: seen.extend(values(task)))
    for topic, value in (("c", "3"), ("b", "2"), ("a", "1")):
        enqueue(turns, topic, (5, value))

    turns.settle(0)

    assert seen == ["2", "1", "3"]


def test_what_comes_back_after_a_turn_is_processed_before_a_later_record() -> None:
    tasks, seen = two_tasks()

    def pass_on(task: Task) -> None:
        for _, _, _, value, timestamp, _, _ in task.outputs.take():
            seen.append(value.decode() if value else "")
            if task is tasks[0]:
                turns.enqueue("c", 0, (0, timestamp, b"k", b"0" if value is None else value + b"0", None, 0))

    turns = TaskTurns(tasks, pass_on)
    enqueue(turns, "a", (1, "1"), (2, "2"))

    turns.settle(0)

    assert seen == ["1", "10", "2", "20"]


def test_records_of_a_turn_need_a_reader_of_their_partition() -> None:
    tasks, seen = two_tasks()
    turns = TaskTurns(tasks, lambda task: seen.extend(values(task)))

    turns.process("a", 0, [(0, 1, b"k", b"1", None, 0), (1, 2, b"k", b"2", None, 1)], 0)
    turns.process("a", 1, [(0, 1, b"k", b"3", None, 2)], 2)
    turns.process("nowhere", 0, [(0, 1, b"k", b"4", None, 3)], 3)

    assert seen == ["1", "2"]


def test_every_task_is_closed_in_order_although_one_fails() -> None:
    closed: list[str] = []

    class Closing(Processor[Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            pass

        def close(self) -> None:
            closed.append(self.context.task_id)
            raise ValueError("stuck")

    topology = Topology()
    for name in ("one", "two"):
        topology.add_source(name, name).add_processor(f"close {name}", Closing, name)
    turns = TaskTurns([Task(topology, sub, CONFIG) for sub in topology.sub_topologies()], lambda task: None)

    with pytest.raises(TaskError, match=r"failed to close: ValueError: stuck"):
        turns.close()

    assert closed == ["0_0", "1_0"]
