"""A serde that is built when the application's default serdes are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from headrace.serdes.base import Serde

FillIn: TypeAlias = Callable[[Serde[Any] | None, str], Serde[Any]]
"""Returns the serde that it is given, or the configured default for None. The second argument is "key" or "value"."""


class IncompleteSerde(Serde[Any]):
    """Stands for a serde that is made of other serdes, some of which may be the configured defaults."""

    def __init__(self, build: Callable[[FillIn], Serde[Any]], name: str) -> None:
        self.build = build
        self._name = name

    def __repr__(self) -> str:
        return self._name
