"""`TaskGroup`: a task and the global tables it reads."""

from headrace import DeadLetter, StreamsBuilder, StreamsConfig
from headrace.task.group import TaskGroup
from headrace.task.lanes import Lane
from headrace.task.task import Task


def test_dead_letters_of_a_stream_and_of_its_global_table_are_in_the_order_of_their_records() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("table")
    builder.stream("in").join(table, lambda left, right: f"{left} {right}", key=lambda key, value: key).to("out")
    topology = builder.build()
    config = StreamsConfig(application_id="app", deserialization_exception_handler=DeadLetter("dead"))
    global_sub, sub = sorted(topology.sub_topologies(), key=lambda sub: not sub.is_global)
    filling = Task(topology, global_sub, config)
    group = TaskGroup([filling, Task(topology, sub, config, global_stores=filling.stores)], lambda *_: 0)
    streamed = [(0, 1, b"k", b"not JSON", None, 0), (1, 4, b"k", b'"left"', None, 3)]
    tabled = [(0, 2, b"k", b"nor this", None, 1), (1, 3, b"k", b'"right"', None, 2)]

    group.process_lanes([Lane.of_source("in", 0, streamed), Lane.of_source("table", 0, tabled)])
    taken = dict(group.take_outputs())

    assert list(taken["dead"].values) == [b"not JSON", b"nor this"]
    assert list(taken["dead"].ordinals) == [0, 1]
    assert list(taken["out"].values) == [b'"left right"']
    assert group.take_outputs() == []
