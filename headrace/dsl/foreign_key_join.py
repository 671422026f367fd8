"""The join of two tables by a foreign key, as steps: subscribe, keep, answer, resolve."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.materialized import Materialized, materialized
from headrace.dsl.repartitions import add_internal_source
from headrace.dsl.stream import write_source_table
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

if TYPE_CHECKING:
    from headrace.dsl.table import KTable

_PREFIX = "KTABLE-FK-JOIN-"


def join(
    left: KTable[Any, Any],
    right: KTable[Any, Any],
    joiner: Callable[[Any, Any, Any], Any],
    foreign_key: Callable[..., Any],
    is_left_join: bool,
    store: str | Materialized | None,
    name: str | None,
) -> KTable[Any, Any]:
    """Join each left row with the right row of the key that `foreign_key(value)` gives."""
    from headrace.dsl.table import KTable

    what = "left_join" if is_left_join else "join"
    if not callable(foreign_key):
        raise TopologyError(f"{what}: foreign_key expects a function, got {type(foreign_key).__name__}")
    graph = left.graph
    right.step.enable_old_values(True)
    left.step.enable_old_values(True)
    names = _Names(graph, name)
    subscription_topic = names.make("SUBSCRIPTION-REGISTRATION-", "-subscription-registration") + "-topic"
    subscribe = names.make("SUBSCRIPTION-REGISTRATION-", "-subscription-registration-processor")
    subscription_sink = names.make_plain("KTABLE-SINK-", "-subscription-registration-sink")
    subscription_source = names.make_plain("KTABLE-SOURCE-", "-subscription-registration-source")
    subscription_store = names.make("SUBSCRIPTION-STATE-STORE-", "-subscription-store")
    keep_step = names.make("SUBSCRIPTION-PROCESSOR-", "-subscription-receive")
    answer = names.make("SUBSCRIPTION-PROCESSOR-", "-subscription-join-foreign")
    answer_all = names.make("SUBSCRIPTION-PROCESSOR-", "-foreign-join-subscription")
    response_topic = names.make("SUBSCRIPTION-RESPONSE-", "-subscription-response") + "-topic"
    response_sink = names.make_plain("KTABLE-SINK-", "-subscription-response-sink")
    response_source = names.make_plain("KTABLE-SOURCE-", "-subscription-response-source")
    resolve = names.make("SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-", "-subscription-response-resolver")
    result = names.make("OUTPUT-", "-result")
    keep = (materialized(store, what) or Materialized()).or_serdes(left.key_serde)
    table = SourceTable(
        keep.key_value(keep.name or graph.new_store_name(f"{_PREFIX}OUTPUT-")), kept=keep.name is not None
    )
    primary, foreign, left_values, right_values = left.key_serde, right.key_serde, left.value_serde, right.value_serde
    subscriptions = _deferred(SubscriptionSerde, primary, "key")
    responses = _deferred(ResponseSerde, right_values, "value")
    subscription_builder = Stores.key_value(subscription_store, Bytes, StoredSubscriptionSerde(), timestamped=True)
    right_getter = right.step.getter()
    left_getter = left.step.getter()
    graph.copartition(keep_step, right.sources, frozenset([subscription_source]))
    sources = graph.copartition(resolve, left.sources, frozenset([response_source]))

    def write_left(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.internal_topics.update({subscription_topic: None, response_topic: None})
        operator = SubscriptionSend(_key_first(foreign_key), foreign, left_values, is_left_join)
        topology.add_operator(subscribe, operator, *parents)
        topology.add_sink(
            subscription_sink, subscription_topic, subscribe, key_serde=foreign, value_serde=subscriptions
        )
        add_internal_source(topology, subscription_source, subscription_topic, foreign, subscriptions)
        topology.add_operator(keep_step, SubscriptionReceive(subscription_store, foreign, primary), subscription_source)
        topology.add_step_store(subscription_builder, keep_step)
        topology.add_operator(answer, SubscriptionJoin(right_getter), keep_step, stores=right_getter.stores)

    def write_right(topology: Topology, parents: tuple[str, ...]) -> None:
        operator = ForeignTableJoin(subscription_store, foreign, primary)
        topology.add_operator(answer_all, operator, *parents, stores=[subscription_store])

    def write_response(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.add_sink(
            response_sink,
            response_topic,
            answer,
            answer_all,
            key_serde=primary,
            value_serde=responses,
            partitioner=response_partition,
        )
        add_internal_source(topology, response_source, response_topic, primary, responses)
        operator = ResponseJoin(left_getter, left_values, subscribe, joiner, is_left_join)
        topology.add_operator(resolve, operator, response_source, stores=left_getter.stores)

    def write_result(topology: Topology, parents: tuple[str, ...]) -> None:
        write_source_table(topology, result, table, (resolve,))

    asked = graph.add(GraphNode(answer, write_left), left.node)
    changed = graph.add(GraphNode(answer_all, write_right), right.node)
    answered = graph.add(GraphNode(resolve, write_response), asked, changed)
    node = graph.add(GraphNode(result, write_result, versioned=keep.history_retention is not None), answered)
    return KTable(result, keep.key_serde, keep.value_serde, sources, keep.name, table, node, graph)


class _Names:
    """Gives the steps of one join their names."""

    def __init__(self, graph: Graph, given: str | None) -> None:
        self._graph, self._given = graph, given

    def make(self, prefix: str, suffix: str) -> str:
        return self._graph.new_name(_PREFIX + prefix, self._given, suffix)

    def make_plain(self, prefix: str, suffix: str) -> str:
        return self._graph.new_name(prefix, self._given, suffix)


def _deferred(make: Callable[[Serde[Any]], Serde[Any]], inner: Serde[Any] | None, part: str) -> Serde[Any]:
    return IncompleteSerde(lambda fill_in: make(fill_in(inner, part)), f"{make.__name__}({inner!r})")


def _key_first(foreign_key: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return the extractor as a function of (key, value); the user's takes the value, or both."""
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
