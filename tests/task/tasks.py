"""Tasks of a topology without a broker: their input as lanes, their output as tuples."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from headrace import Processor, Record, StreamsConfig, Topology
from headrace.records import Headers
from headrace.state.image import Changes, MemoryImage
from headrace.task.lanes import Lane
from headrace.task.task import Commit, Task

Output = tuple[str, int | None, bytes | None, bytes | None, int, Headers | None]
"""(topic, partition, key, value, timestamp, headers)."""

Unnumbered = tuple[int, int, bytes | None, bytes | None, Headers | None]
"""A raw record without its sequence."""

CONFIG = StreamsConfig(application_id="app")


def task_of(topology: Topology, config: StreamsConfig = CONFIG, **options: Any) -> Task:
    """Make the task of a topology that has one sub-topology."""
    [sub_topology] = topology.sub_topologies()
    return Task(topology, sub_topology, config, **options)


def resumed(topology: Topology, *commits: list[Commit], config: StreamsConfig = CONFIG, **options: Any) -> Task:
    """Make the task anew from what it has committed, and nothing else."""
    stores: dict[str, Changes] = {}
    for [commit] in commits:
        for space, changes in commit.stores.items():
            stores.setdefault(space, {}).update(changes)
    return task_of(topology, config, image=MemoryImage(stores), state=commits[-1][0].state, **options)


_arrivals = count()


def lane(topic: str, records: Iterable[tuple[int, Any]], partition: int = 0, first_offset: int = 0) -> Lane:
    """Return a lane of (timestamp, value) pairs with the key "k"; values are JSON."""
    return raw_lane(
        topic,
        partition,
        [
            (offset, timestamp, b"k", None if value is None else str(value).encode(), None)
            for offset, (timestamp, value) in enumerate(records, first_offset)
        ],
    )


def raw_lane(topic: str, partition: int, records: Iterable[Unnumbered]) -> Lane:
    """Return a lane of (offset, timestamp, key, value, headers); records arrive in the order of these calls."""
    return Lane.of_source(topic, partition, [(*record, next(_arrivals)) for record in records])


def outputs(task: Task) -> list[Output]:
    """Take what came out, of each topic in order."""
    return [(topic, *output[:-1]) for topic, columns in task.take_outputs() for output in zip(*columns)]


def values(task: Task) -> list[str]:
    """Take the values that came out, as text."""
    return [value.decode() if value is not None else "null" for _, _, _, value, _, _ in outputs(task)]


def processing(process: Callable[[Any, Record[Any, Any]], None]) -> Callable[[], Processor[Any, Any]]:
    """Return a supplier of processors that do `process(context, record)` and nothing else."""

    class Processing(Processor[Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            process(self.context, record)

    return Processing
