"""The identity of a checkpoint: which task has which state, and what its stores were.

It is kept in a file beside Spark's checkpoint. Spark finds a task's state by the number it is grouped by, so a task
keeps its number for ever. Numbers are chosen so that Spark's hash spreads the tasks of a unit evenly.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from headrace.config import StreamsConfig
from headrace.engine.plan import Plan, Unit
from headrace.errors import StreamsError
from headrace.topology.topology import SubTopology, Topology

FORMAT = 2
_LAST = (1 << 31) - 1
"""Spark's numbers are signed 32-bit integers."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass
class KnownUnit:
    """A unit as the checkpoint has it."""

    level: int
    stateful: bool
    partitions: int
    stores: list[str]
    topics: list[str]
    tables: list[str]
    """The topics of the global tables it reads."""
    tasks: list[int]
    """The numbers of its tasks."""
    together: bool | None = None
    """Whether one task runs all partitions and names its state by them; None: older checkpoints do not say."""


@dataclass
class Identity:
    """What an application's checkpoint has of it."""

    lineage: str
    """An id made up when the application begins from nothing: it differs from that of a checkpoint before a reset."""
    shuffle_partitions: int
    units: list[KnownUnit] = field(default_factory=list)
    stores: dict[str, str] = field(default_factory=dict)
    """By name, the kind of a store and its serdes."""
    generations: dict[str, int] = field(default_factory=dict)
    """How often a store was dropped. What it held before is out of reach."""
    stateful_levels: list[int] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    """The topics that were ever read."""

    @classmethod
    def new(cls, shuffle_partitions: int) -> Identity:
        return cls(uuid4().hex, shuffle_partitions)

    @classmethod
    def load(cls, path: Path) -> Identity | None:
        """Read the file; None when there is none."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StreamsError(
                f"'{path}' cannot be read: {error}. Restore it, or start over with headrace reset"
            ) from error
        if data.pop("format", None) != FORMAT:
            raise StreamsError(f"'{path}' was written by another version of Headrace: use that one, or headrace reset")
        return cls(**{**data, "units": [KnownUnit(**unit) for unit in data["units"]]})

    def save(self, path: Path) -> None:
        """Write the file, as a whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"format": FORMAT, **self.__dict__, "units": [unit.__dict__ for unit in self.units]}
        draft = path.with_suffix(".new")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def take_up(self, plan: Plan, topology: Topology, config: StreamsConfig) -> dict[int, list[int]]:
        """Fit a plan to what is known; return the numbers of every unit's tasks, or raise when it does not fit."""
        self._check_stores(topology, config)
        fresh = not self.units
        levels = plan.stateful_levels()
        if not fresh and len(levels) != len(self.stateful_levels):
            raise StreamsError(
                f"the topology now has {len(levels)} levels of repartition with state, and its checkpoint has "
                f"{len(self.stateful_levels)}: the state cannot be carried over. Start over with headrace reset"
            )
        numbers: dict[int, list[int]] = {}
        known: list[KnownUnit] = []
        used = {number for unit in self.units for number in unit.tasks}
        left = list(self.units)
        subs = {sub.id: sub for sub in topology.sub_topologies()}
        for unit in plan.units:
            mine = [subs[sub] for sub in unit.subs]
            stores, topics = _stores(mine), _topics(mine, topology)
            found = self._find(stores, topics, topology, left)
            tables = sorted(topic for topic, readers in plan.global_readers.items() if unit.number in readers)
            self._check_tables(tables, found)
            if found is not None:
                left.remove(found)
                self._check_unit(unit, found, topics, levels)
            tasks = list(found.tasks) if found is not None else []
            while len(tasks) < unit.tasks:
                wanted = (unit.number + len(tasks)) % self.shuffle_partitions
                number = first_number(wanted, self.shuffle_partitions, used)
                used.add(number)
                tasks.append(number)
            numbers[unit.number] = tasks[: unit.tasks]
            known.append(
                KnownUnit(
                    levels.index(unit.level) if unit.stateful else -1,
                    unit.stateful,
                    unit.partitions,
                    sorted(stores),
                    sorted(topics),
                    tables,
                    tasks,
                    unit.together,
                )
            )
        # Units that are gone keep their numbers, so that no other task gets their state.
        self.units = known + [unit for unit in left if unit.stateful]
        self.stateful_levels = levels
        self.read = sorted({*self.read, *plan.input_topics()})
        return numbers

    def _check_stores(self, topology: Topology, config: StreamsConfig) -> None:
        now = {name: fingerprint(topology, name, config) for name in topology.stores}
        for name in config.drop_stores:
            if name not in self.stores and name not in self.generations:
                known = ", ".join(sorted(self.stores)) or "none"
                raise StreamsError(f"drop_stores: the application's state has no store '{name}' (stores: {known})")
            # The setting may stay where it is: the store is dropped once.
            if name in self.stores and now.get(name) != self.stores[name]:
                self.generations[name] = self.generations.get(name, 0) + 1
                del self.stores[name]
        for name, was in self.stores.items():
            if name not in now:
                raise StreamsError(
                    f"store '{name}' ({was}) is in the application's state but no longer in the topology. If it was "
                    f"renamed, give it its old name; to give up what it holds, set drop_stores=['{name}']"
                )
            if now[name] != was:
                raise StreamsError(
                    f"store '{name}' has changed: its state was written as {was}; the topology now has {now[name]}. "
                    f"Give the new store another name, or set drop_stores=['{name}'] to give up what it holds"
                )
        self.stores = now

    def _find(self, stores: set[str], topics: set[str], topology: Topology, left: list[KnownUnit]) -> KnownUnit | None:
        """Return the known unit that a unit continues: the one with its stores, else the one with its topics."""
        with_stores = [known for known in left if stores & set(known.stores)]
        if len(with_stores) > 1:
            apart = ", ".join(f"'{name}'" for known in with_stores for name in sorted(stores & set(known.stores)))
            raise StreamsError(
                f"the stores {apart} belong to one sub-topology now, and to different ones in the checkpoint: their "
                "state cannot be merged. Start over with headrace reset"
            )
        if with_stores:
            moved = (set(with_stores[0].stores) - stores) & set(topology.stores)
            if moved:
                apart = ", ".join(f"'{name}'" for name in sorted(moved))
                raise StreamsError(
                    f"the stores {apart} belong to another sub-topology now than in the checkpoint: their state cannot "
                    "be split. Start over with headrace reset"
                )
            return with_stores[0]
        return next((known for known in left if not known.stores and topics & set(known.topics)), None)

    def _check_tables(self, tables: list[str], known: KnownUnit | None) -> None:
        """Raise when a new reader of a global table would miss its beginning."""
        read = {*self.read, *(topic for unit in self.units for topic in unit.tables)}
        for topic in tables:
            if topic in read and (known is None or topic not in known.tables):
                raise StreamsError(
                    f"the global table of topic '{topic}' has a new reader, which would miss what was read of it "
                    "before. Start over with headrace reset"
                )

    def _check_unit(self, unit: Unit, known: KnownUnit, topics: set[str], levels: list[int]) -> None:
        if not unit.stateful or not known.stateful:
            return
        if known.level != levels.index(unit.level):
            stores = ", ".join(f"'{name}'" for name in known.stores) or "none"
            raise StreamsError(
                f"the stores {stores} now come after another number of repartitions: their state cannot be carried "
                "over. Start over with headrace reset"
            )
        if known.together not in (None, unit.together):
            stores = ", ".join(f"'{name}'" for name in known.stores) or "none"
            raise StreamsError(
                f"the stores {stores} now {'come into' if unit.together else 'leave'} a cycle of sub-topologies, such "
                "as that of a foreign-key join: their state cannot be carried over. Start over with headrace reset"
            )
        if known.partitions != unit.partitions:
            named = ", ".join(f"'{topic}'" for topic in sorted(topics))
            raise StreamsError(
                f"the topics {named} had {known.partitions} partitions when the state of their stores was written "
                f"and have {unit.partitions} now: keys would look for their state in the wrong task. Start over with "
                "headrace reset"
            )


def fingerprint(topology: Topology, name: str, config: StreamsConfig) -> str:
    """Describe a store, as far as its bytes depend on it."""
    builder = topology.stores[name]
    defaults = {"key": repr(config.default_key_serde)}
    values = repr(config.default_value_serde)
    options = ", ".join(
        f"{what} {defaults.get(what, values) if said == 'None' else said}"
        for what, said in builder.options
        if what in ("key", "value", "right")
    )
    return _ADDRESS.sub("", f"{builder.kind}: {options}")


def first_number(partition: int, shuffle_partitions: int, used: Collection[int] = ()) -> int:
    """Return the first unused number that Spark's hash puts into a shuffle partition.

    >>> [spark_partition(first_number(wanted, 3), 3) for wanted in range(3)]
    [0, 1, 2]
    """
    return _next_number(partition, shuffle_partitions, used, 0, 1)


def last_number(partition: int, shuffle_partitions: int) -> int:
    """Return the last number that Spark's hash puts into a shuffle partition: no task has it."""
    return _next_number(partition, shuffle_partitions, (), _LAST, -1)


def _next_number(partition: int, shuffle_partitions: int, used: Collection[int], start: int, step: int) -> int:
    number = start
    while number in used or spark_partition(number, shuffle_partitions) != partition:
        number += step
    return number


def spark_partition(number: int, partitions: int) -> int:
    """Return the shuffle partition of an int: Spark's murmur3 with its seed."""
    k = (number * 0xCC9E2D51) & 0xFFFFFFFF
    k = ((k << 15) | (k >> 17)) & 0xFFFFFFFF
    h = 42 ^ ((k * 0x1B873593) & 0xFFFFFFFF)
    h = ((h << 13) | (h >> 19)) & 0xFFFFFFFF
    h = ((h * 5 + 0xE6546B64) & 0xFFFFFFFF) ^ 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    h ^= h >> 16
    signed = h - (1 << 32) if h >= 1 << 31 else h
    return signed % partitions


def _stores(subs: Iterable[SubTopology]) -> set[str]:
    return {store for sub in subs for store in sub.stores}


def _topics(subs: Iterable[SubTopology], topology: Topology) -> set[str]:
    found: set[str] = set()
    for sub in subs:
        for source in topology.sources(sub):
            found.update(source.topics if source.pattern is None else [source.pattern.pattern])
    return found
