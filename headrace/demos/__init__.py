"""Well-known Kafka Streams applications with generated data, for `headrace demo`.

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
"""The keys and values in each output topic, in order within a partition."""

START = 1_767_605_400_000
"""The first timestamp of generated data: Monday, 5 January 2026, 9:30 UTC."""


class MakeRecords(Protocol):
    """Generates `count` records, mostly in the order of time; the same seed gives the same records."""

    def __call__(self, count: int, seed: int = 7) -> Iterator[InputRecord]: ...


@dataclass(frozen=True)
class Demo:
    """A topology with a generator of records and a summary of the results."""

    name: str
    title: str
    build_topology: Callable[[], Topology]
    make_records: MakeRecords
    outputs: Mapping[str, tuple[Serde[Any], Serde[Any]]]
    """The serdes of key and value, by topic."""
    summarize: Callable[[Outputs], list[str]]
    """Returns a few lines for the terminal."""
    records: int = 20_000
    """How many records to generate by default."""


class _Demos(Mapping[str, Demo]):
    """The demos by name. A demo's module is imported on its first use."""

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
