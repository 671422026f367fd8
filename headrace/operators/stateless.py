"""Steps of a stream without state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headrace.errors import StreamsError
from headrace.topology.nodes import Process, StepContext


@dataclass(frozen=True)
class Filter:
    """Pass on the records for which the predicate holds, or, if negated, does not hold."""

    predicate: Callable[[Any, Any], Any]
    negated: bool = False
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        predicate, negated, fail = self.predicate, self.negated, context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            try:
                passes = predicate(key, value)
            except Exception as error:
                return fail(error, key, value, timestamp)
            if passes:
                forward(key, value, timestamp)

        def process_negated(key: Any, value: Any, timestamp: int) -> None:
            try:
                passes = predicate(key, value)
            except Exception as error:
                return fail(error, key, value, timestamp)
            if not passes:
                forward(key, value, timestamp)

        return process_negated if negated else process


@dataclass(frozen=True)
class Map:
    """Turn a record into another one."""

    mapper: Callable[[Any, Any], tuple[Any, Any]]
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        mapper, fail = self.mapper, context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            try:
                pair = mapper(key, value)
                new_key, new_value = pair if pair.__class__ is tuple and len(pair) == 2 else _pair(pair)
            except Exception as error:
                return fail(error, key, value, timestamp)
            forward(new_key, new_value, timestamp)

        return process


@dataclass(frozen=True)
class FlatMap:
    """Turn a record into any number of others."""

    mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]]
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        mapper, fail = self.mapper, context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            try:
                pairs = [_pair(pair) for pair in _items(mapper(key, value))]
            except Exception as error:
                return fail(error, key, value, timestamp)
            for new_key, new_value in pairs:
                forward(new_key, new_value, timestamp)

        return process


@dataclass(frozen=True)
class SelectKey:
    """Give a record another key."""

    mapper: Callable[[Any, Any], Any]
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        mapper, fail = self.mapper, context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            try:
                new_key = mapper(key, value)
            except Exception as error:
                return fail(error, key, value, timestamp)
            forward(new_key, value, timestamp)

        return process


@dataclass(frozen=True)
class MapValues:
    """Give a record another value."""

    mapper: Callable[..., Any]
    with_key: bool = False
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        mapper, fail = self.mapper, context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            try:
                new_value = mapper(value)
            except Exception as error:
                return fail(error, key, value, timestamp)
            forward(key, new_value, timestamp)

        def process_with_key(key: Any, value: Any, timestamp: int) -> None:
            try:
                new_value = mapper(key, value)
            except Exception as error:
                return fail(error, key, value, timestamp)
            forward(key, new_value, timestamp)

        return process_with_key if self.with_key else process


@dataclass(frozen=True)
class FlatMapValues:
    """Turn a record into any number of records of the same key."""

    mapper: Callable[..., Iterable[Any]]
    with_key: bool = False
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        mapper, with_key, fail = self.mapper, self.with_key, context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            try:
                values = list(_items(mapper(key, value) if with_key else mapper(value)))
            except Exception as error:
                return fail(error, key, value, timestamp)
            for new_value in values:
                forward(key, new_value, timestamp)

        return process


@dataclass(frozen=True)
class Peek:
    """Call a function with a record, then pass the record on."""

    action: Callable[[Any, Any], Any]
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        action, fail = self.action, context.fail

        def process(key: Any, value: Any, timestamp: int) -> None:
            try:
                action(key, value)
            except Exception as error:
                return fail(error, key, value, timestamp)
            forward(key, value, timestamp)

        return process


@dataclass(frozen=True)
class PassThrough:
    """Pass records on: here streams merge, or a branch begins."""

    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        return forward


@dataclass(frozen=True)
class Branch:
    """Pass a record to the branch of the first predicate that holds."""

    predicates: tuple[Callable[[Any, Any], Any], ...]
    branches: tuple[str, ...]
    """One child per predicate, and one more if there is a default."""
    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        fail = context.fail
        children = [context.children[name] for name in self.branches]
        default = children[len(self.predicates)] if len(children) > len(self.predicates) else None
        choices = list(zip(self.predicates, children, strict=False))

        def process(key: Any, value: Any, timestamp: int) -> None:
            chosen = default
            try:
                for predicate, child in choices:
                    if predicate(key, value):
                        chosen = child
                        break
            except Exception as error:
                return fail(error, key, value, timestamp)
            if chosen is not None:
                chosen(key, value, timestamp)

        return process


@dataclass(frozen=True)
class NullKeyFilter:
    """Drop records with a null key: they cannot be repartitioned by key."""

    emits_changes = False

    def bind(self, context: StepContext, forward: Process) -> Process:
        dropped = context.dropped

        def process(key: Any, value: Any, timestamp: int) -> None:
            if key is None:
                dropped()
            else:
                forward(key, value, timestamp)

        return process


def _pair(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, tuple) and len(pair) == 2:
        return pair
    raise StreamsError(f"expected a (key, value) pair, got {type(pair).__name__} ({pair!r})")


def _items(items: Any) -> Iterable[Any]:
    if not isinstance(items, Iterable):
        raise StreamsError(f"expected an iterable of results such as a list, got {type(items).__name__} ({items!r})")
    return items
