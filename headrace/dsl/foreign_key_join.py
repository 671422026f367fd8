"""The join of two tables by a foreign key.

Each left row subscribes to the right row of its foreign key. The subscription goes through a repartition to the right
row, and is kept there. The right side answers when a subscription comes and when the right row changes. The answer goes
through a second repartition back to the left row, where it becomes a result.

Tests: `tests/operators/test_foreign_key_join.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.dsl import table as tables
from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, always_materialized
from headrace.dsl.repartitions import add_internal_source
from headrace.dsl.table_steps import SourceTable
from headrace.errors import TopologyError
from headrace.operators.foreign_key_join import (
    ForeignTableJoin,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from headrace.operators.foreign_key_messages import (
    ResponseSerde,
    StoredSubscriptionSerde,
    SubscriptionSerde,
    response_partition,
)
from headrace.serdes import Bytes, Serde
from headrace.serdes.incomplete import IncompleteSerde
from headrace.state.builders import Stores
from headrace.topology.topology import Topology

_PREFIX = "KTABLE-FK-JOIN-"


def join(
    left: tables.KTable[Any, Any],
    right: tables.KTable[Any, Any],
    joiner: Callable[[Any, Any, Any], Any],
    foreign_key: Callable[..., Any],
    is_left_join: bool,
    store: str | Materialized | None,
    name: str | None,
) -> tables.KTable[Any, Any]:
    """Join each left row with the right row whose key `foreign_key(value)` returns."""
    call = "left_join" if is_left_join else "join"
    if not callable(foreign_key):
        raise TopologyError(f"{call}: expected foreign_key to be a function, got {type(foreign_key).__name__}")
    graph = left.graph
    right.step.enable_old_values(True)
    left.step.enable_old_values(True)
    names = _Names.new(graph, name)
    keep = always_materialized(store, call, left.key_serde)
    kept_as = keep.name or graph.new_store_name(f"{_PREFIX}OUTPUT-")
    table = SourceTable(keep.key_value(kept_as), kept=keep.name is not None)
    steps = _Steps(names, left, right, joiner, _key_first(foreign_key), is_left_join)
    graph.copartition(names.keep, right.sources, frozenset([names.subscription_source]))
    sources = graph.copartition(names.resolve, left.sources, frozenset([names.response_source]))

    def write_result(topology: Topology, parents: tuple[str, ...]) -> None:
        table.write(topology, names.result, *parents)

    asked = graph.add(GraphNode(names.answer, steps.write_subscriptions), left.node)
    changed = graph.add(GraphNode(names.answer_all, steps.write_right_changes), right.node)
    answered = graph.add(GraphNode(names.resolve, steps.write_responses), asked, changed)
    node = graph.add(GraphNode(names.result, write_result, versioned=keep.history_retention is not None), answered)
    return tables.KTable(names.result, keep.key_serde, keep.value_serde, sources, keep.name, table, node, graph)


@dataclass(frozen=True)
class _Names:
    """The names of one join's steps, topics and store, in the order in which Kafka Streams numbers them."""

    subscription_topic: str
    subscribe: str
    subscription_sink: str
    subscription_source: str
    subscription_store: str
    keep: str
    answer: str
    answer_all: str
    response_topic: str
    response_sink: str
    response_source: str
    resolve: str
    result: str

    @classmethod
    def new(cls, graph: Graph, given: str | None) -> _Names:
        """Name the steps of a join, after the join's own name if it was given one."""

        def step(prefix: str, suffix: str) -> str:
            return graph.new_name(_PREFIX + prefix, given, suffix)

        def end(prefix: str, suffix: str) -> str:
            return graph.new_name(prefix, given, suffix)

        # The arguments are evaluated in this order, and each takes a number.
        return cls(
            subscription_topic=step("SUBSCRIPTION-REGISTRATION-", "-subscription-registration") + "-topic",
            subscribe=step("SUBSCRIPTION-REGISTRATION-", "-subscription-registration-processor"),
            subscription_sink=end("KTABLE-SINK-", "-subscription-registration-sink"),
            subscription_source=end("KTABLE-SOURCE-", "-subscription-registration-source"),
            subscription_store=step("SUBSCRIPTION-STATE-STORE-", "-subscription-store"),
            keep=step("SUBSCRIPTION-PROCESSOR-", "-subscription-receive"),
            answer=step("SUBSCRIPTION-PROCESSOR-", "-subscription-join-foreign"),
            answer_all=step("SUBSCRIPTION-PROCESSOR-", "-foreign-join-subscription"),
            response_topic=step("SUBSCRIPTION-RESPONSE-", "-subscription-response") + "-topic",
            response_sink=end("KTABLE-SINK-", "-subscription-response-sink"),
            response_source=end("KTABLE-SOURCE-", "-subscription-response-source"),
            resolve=step("SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-", "-subscription-response-resolver"),
            result=step("OUTPUT-", "-result"),
        )


class _Steps:
    """The steps of one join, which its nodes write into the topology."""

    def __init__(
        self,
        names: _Names,
        left: tables.KTable[Any, Any],
        right: tables.KTable[Any, Any],
        joiner: Callable[[Any, Any, Any], Any],
        foreign_key: Callable[[Any, Any], Any],
        is_left_join: bool,
    ) -> None:
        self._names, self._joiner, self._foreign_key, self._is_left_join = names, joiner, foreign_key, is_left_join
        self._primary, self._foreign, self._left_values = left.key_serde, right.key_serde, left.value_serde
        self._subscriptions = _incomplete(SubscriptionSerde, left.key_serde, "key")
        self._responses = _incomplete(ResponseSerde, right.value_serde, "value")
        self._right_rows, self._left_rows = right.step.getter(), left.step.getter()

    def write_subscriptions(self, topology: Topology, parents: tuple[str, ...]) -> None:
        """Write the steps from a left row to its subscription, and to the answer that it gets at once."""
        names, foreign, serde = self._names, self._foreign, self._subscriptions
        topology.internal_topics.update({names.subscription_topic: None, names.response_topic: None})
        subscribe = SubscriptionSend(self._foreign_key, foreign, self._left_values, self._is_left_join)
        topology.add_operator(names.subscribe, subscribe, *parents)
        topology.add_sink(
            names.subscription_sink, names.subscription_topic, names.subscribe, key_serde=foreign, value_serde=serde
        )
        add_internal_source(topology, names.subscription_source, names.subscription_topic, foreign, serde)
        keep = SubscriptionReceive(names.subscription_store, foreign, self._primary)
        topology.add_operator(names.keep, keep, names.subscription_source)
        store = Stores.key_value(names.subscription_store, Bytes, StoredSubscriptionSerde(), timestamped=True)
        topology.add_step_store(store, names.keep)
        answer = SubscriptionJoin(self._right_rows)
        topology.add_operator(names.answer, answer, names.keep, stores=self._right_rows.stores)

    def write_right_changes(self, topology: Topology, parents: tuple[str, ...]) -> None:
        """Write the step that answers all subscribers of a right row when it changes."""
        store = self._names.subscription_store
        answer_all = ForeignTableJoin(store, self._foreign, self._primary)
        topology.add_operator(self._names.answer_all, answer_all, *parents, stores=[store])

    def write_responses(self, topology: Topology, parents: tuple[str, ...]) -> None:
        """Write the steps that bring answers back to the left row, and the step that turns them into results."""
        names = self._names
        topology.add_sink(
            names.response_sink,
            names.response_topic,
            *parents,
            key_serde=self._primary,
            value_serde=self._responses,
            partitioner=response_partition,
        )
        add_internal_source(topology, names.response_source, names.response_topic, self._primary, self._responses)
        resolve = ResponseJoin(self._left_rows, self._left_values, names.subscribe, self._joiner, self._is_left_join)
        topology.add_operator(names.resolve, resolve, names.response_source, stores=self._left_rows.stores)


def _incomplete(make: Callable[[Serde[Any]], Serde[Any]], inner: Serde[Any] | None, role: str) -> Serde[Any]:
    return IncompleteSerde(lambda fill_in: make(fill_in(inner, role)), f"{make.__name__}({inner!r})")


def _key_first(foreign_key: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return the extractor as a function of (key, value). The user's function takes the value, or both."""
    try:
        required = [
            parameter
            for parameter in inspect.signature(foreign_key).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            and parameter.default is parameter.empty
        ]
    except (TypeError, ValueError):
        required = []
    return foreign_key if len(required) == 2 else lambda key, value: foreign_key(value)
