"""The identity of a checkpoint: which task has which state, and the kinds and serdes of the stores.

A file beside Spark's checkpoint keeps it. Spark groups by the number of the task and finds the task's state by it, so
a task keeps its number for ever. Numbers are chosen so that Spark's hash spreads the tasks of a unit evenly.
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
    """A unit that the checkpoint knows."""

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
    """Whether one task runs all partitions and names its state by them; None if an older checkpoint does not say."""


@dataclass
class Identity:
    """The state that an application's checkpoint has, by task and store."""

    lineage: str
    """An id that is made when the checkpoint begins. After a reset it is another one."""
    shuffle_partitions: int
    units: list[KnownUnit] = field(default_factory=list)
    stores: dict[str, str] = field(default_factory=dict)
    """The kind and serdes of each store, by its name."""
    generations: dict[str, int] = field(default_factory=dict)
    """How often each store was dropped. Its contents from before are out of reach."""
    stateful_levels: list[int] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    """The topics that were ever read."""

    @classmethod
    def new(cls, shuffle_partitions: int) -> Identity:
        return cls(uuid4().hex, shuffle_partitions)

    @classmethod
    def load(cls, path: Path) -> Identity | None:
        """Read the file. Return None if it does not exist."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StreamsError(
                f"'{path}' cannot be read: {error}. Restore it, or start over with headrace reset"
            ) from error
        if data.pop("format", None) != FORMAT:
            raise StreamsError(
                f"'{path}' was written by another version of Headrace. "
                "Use that version, or start over with headrace reset"
            )
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
        """Fit a plan to the checkpoint. Return the numbers of each unit's tasks, or raise if the plan does not fit."""
        self._check_stores(topology, config)
        fresh = not self.units
        levels = plan.stateful_levels()
        if not fresh and len(levels) != len(self.stateful_levels):
            raise StreamsError(
                f"the topology now has {len(levels)} levels of steps with state, but the checkpoint has "
                f"{len(self.stateful_levels)}: the state does not fit. Undo the change, or start over with headrace "
                "reset"
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
        # Units that no longer exist keep their numbers, so that no other task gets their state.
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
                    f"renamed, give it its old name. To give up its contents, set drop_stores=['{name}']"
                )
            if now[name] != was:
                raise StreamsError(
                    f"store '{name}' has changed: its state was written as {was}; the topology now has {now[name]}. "
                    f"Give the new store another name, or set drop_stores=['{name}'] to give up its contents"
                )
        self.stores = now

    def _find(self, stores: set[str], topics: set[str], topology: Topology, left: list[KnownUnit]) -> KnownUnit | None:
        """Return the known unit that a unit continues: the one with its stores, else the one with its topics."""
        with_stores = [known for known in left if stores & set(known.stores)]
        if len(with_stores) > 1:
            apart = ", ".join(f"'{name}'" for known in with_stores for name in sorted(stores & set(known.stores)))
            raise StreamsError(
                f"the stores {apart} belong to one sub-topology now, but to different ones in the checkpoint: their "
                "state cannot be merged. Undo the change, or start over with headrace reset"
            )
        if with_stores:
            moved = (set(with_stores[0].stores) - stores) & set(topology.stores)
            if moved:
                apart = ", ".join(f"'{name}'" for name in sorted(moved))
                raise StreamsError(
                    f"the stores {apart} belong to another sub-topology now than in the checkpoint: their state cannot "
                    "be split. Undo the change, or start over with headrace reset"
                )
            return with_stores[0]
        return next((known for known in left if not known.stores and topics & set(known.topics)), None)

    def _check_tables(self, tables: list[str], known: KnownUnit | None) -> None:
        """Raise if a new reader of a global table would miss its beginning."""
        read = {*self.read, *(topic for unit in self.units for topic in unit.tables)}
        for topic in tables:
            if topic in read and (known is None or topic not in known.tables):
                raise StreamsError(
                    f"the global table of topic '{topic}' has a new reader, which would miss the records that were "
                    "read before. Undo the change, or start over with headrace reset"
                )

    def _check_unit(self, unit: Unit, known: KnownUnit, topics: set[str], levels: list[int]) -> None:
        if not unit.stateful or not known.stateful:
            return
        if known.level != levels.index(unit.level):
            stores = ", ".join(f"'{name}'" for name in known.stores) or "none"
            raise StreamsError(
                f"the stores {stores} now come after another number of repartitions: their state does not fit. "
                "Undo the change, or start over with headrace reset"
            )
        if known.together not in (None, unit.together):
            stores = ", ".join(f"'{name}'" for name in known.stores) or "none"
            raise StreamsError(
                f"the stores {stores} now {'become part of' if unit.together else 'leave'} a cycle of sub-topologies, "
                "such as that of a foreign-key join: their state does not fit. Undo the change, or start over with "
                "headrace reset"
            )
        if known.partitions != unit.partitions:
            named = ", ".join(f"'{topic}'" for topic in sorted(topics))
            raise StreamsError(
                f"the topics {named} had {known.partitions} partitions when the state of their stores was written "
                f"and have {unit.partitions} now: keys would look for their state in the wrong task. Create the topics "
                f"again with {known.partitions} partitions, or start over with headrace reset"
            )


def fingerprint(topology: Topology, name: str, config: StreamsConfig) -> str:
    """Describe everything about a store that its bytes depend on."""
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
    """Return the last number that Spark's hash puts into a shuffle partition. No task has this number."""
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
