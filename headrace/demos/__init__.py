"""Well-known Kafka Streams applications, each with made-up data: what `headrace demo` runs.

>>> print(*DEMOS)
word_count stock_statistics click_enrichment sensor_filter top_ten
>>> DEMOS["top_ten"].title
'The ten symbols with the largest volume'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from headrace import Topology
from headrace.serdes import Serde

InputRecord: TypeAlias = tuple[str, bytes | None, bytes, int]
"""(topic, key, value, timestamp in ms)."""

Outputs: TypeAlias = dict[str, list[tuple[Any, Any]]]
"""By topic, the keys and values that came out, of each partition in order."""

START = 1_767_605_400_000
"""When made-up data begins: Monday, 5 January 2026, 9:30 UTC."""


class MakeRecords(Protocol):
    """Makes that many records, by and large in the order of time; the same ones for the same seed."""

    def __call__(self, count: int, seed: int = 7) -> Iterator[InputRecord]: ...


@dataclass(frozen=True)
class Demo:
    """A topology, records to feed it with, and what to tell of the results."""

    name: str
    title: str
    build_topology: Callable[[], Topology]
    make_records: MakeRecords
    outputs: Mapping[str, tuple[Serde[Any], Serde[Any]]]
    """The serdes of key and value, by topic."""
    summarize: Callable[[Outputs], list[str]]
    """Makes a few lines for the terminal."""
    records: int = 20_000
    """How many to make when nobody says."""


class _Demos(Mapping[str, Demo]):
    """Imports the module of a demo when it is asked for."""

    names = ("word_count", "stock_statistics", "click_enrichment", "sensor_filter", "top_ten")

    def __getitem__(self, name: str) -> Demo:
        if name not in self.names:
            raise KeyError(name)
        demo: Demo = import_module(f"headrace.demos.{name}").DEMO
        return demo

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


DEMOS: Mapping[str, Demo] = _Demos()
"""All demos by name."""
