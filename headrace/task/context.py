"""What all steps of a task share.

Tests: `tests/task/test_task.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.config import StreamsConfig
from headrace.errors import TopologyError
from headrace.serdes import Serde
from headrace.state.builders import Store
from headrace.state.image import Image
from headrace.state.small_state import SmallState
from headrace.task.caching import RecordCache
from headrace.task.current_record import CurrentRecord
from headrace.task.outputs import Outputs
from headrace.task.punctuation import Schedules
from headrace.topology.processor import PunctuationType
from headrace.topology.topology import SubTopology, Topology


class TaskContext:
    """The configuration, the stores, the record in hand and the outputs of one task.

    The steps of a task are bound to it; it knows none of them. Kafka Streams' InternalProcessorContext plays this role.
    """

    def __init__(
        self,
        topology: Topology,
        sub_topology: SubTopology,
        config: StreamsConfig,
        *,
        partition: int,
        image: Image,
        state: Mapping[str, Any] | None,
        global_stores: Mapping[str, Store] | None,
        now: int,
        partition_count: Callable[[str], int],
    ) -> None:
        self.task_id = f"{sub_topology.id}_{partition}"
        self.topology = topology
        self.sub_topology = sub_topology
        self.config = config
        self.partition = partition
        self.partition_count = partition_count
        self.now = now
        """The wall clock. It stands still while a batch is processed."""
        self.record = CurrentRecord()
        self.outputs = Outputs()
        self.dropped_records = 0
        self.cells = SmallState(state)
        self.stream_time = self.cells.cell("task/stream_time", -1)
        self.schedules = {kind: Schedules() for kind in PunctuationType}
        self.caches: dict[str, RecordCache] = {}
        self.global_stores = dict(global_stores or {})
        self.stores: dict[str, Store] = {
            name: topology.stores[name].make(name, config.store_serde, image, self.cells)
            for name in sub_topology.stores
        }

    def store(self, name: str) -> Store:
        """Return a store of this task, or of a global table."""
        store = self.stores.get(name) or self.global_stores.get(name)
        if store is None:
            raise TopologyError(f"there is no store '{name}' in sub-topology {self.sub_topology.id}")
        return store

    def serde(self, serde: Serde[Any] | None, role: str) -> Serde[Any]:
        """Return a serde, or the configured default for the "key" or the "value"."""
        return self.config.serde(serde, role)

    def topic_name(self, topic: str) -> str:
        """Return the name of a topic in the broker: internal topics have the application's id before them."""
        return self.topology.topic_name(topic, self.config.application_id)
