"""The joins of a stream: with a stream, a table, or a global table.

Tests: `tests/operators/test_stream_join_topology.py`, `test_join_errors.py` and the other joins there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.dsl import stream as streams
from headrace.dsl import table as tables
from headrace.dsl.graph import Graph, GraphNode
from headrace.dsl.repartitions import repartition_node
from headrace.errors import TopologyError
from headrace.operators.stateless import PassThrough
from headrace.operators.stream_join import JoinSide, JoinWindow
from headrace.operators.stream_table_join import StreamTableJoin
from headrace.operators.window_definitions import JoinWindows
from headrace.serdes import Serde
from headrace.state.builders import StoreBuilder, Stores, unmatched_records
from headrace.topology.argument_checks import check_name, check_serde, check_serdes
from headrace.topology.topology import Topology


def with_key_first(joiner: Callable[..., Any], with_key: bool, what: str) -> Callable[[Any, Any, Any], Any]:
    """Return the joiner as a function of (key, left, right)."""
    if not callable(joiner):
        raise TopologyError(f"{what}: expected joiner to be a function, got {type(joiner).__name__} ({joiner!r})")
    return joiner if with_key else lambda key, left, right: joiner(left, right)


def join(
    stream: streams.KStream[Any, Any],
    other: Any,
    joiner: Callable[..., Any],
    kind: str,
    window: JoinWindows | None,
    key: Callable[[Any, Any], Any] | None,
    with_key: bool,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    other_value_serde: Serde[Any] | None,
    name: str | None,
) -> streams.KStream[Any, Any]:
    """Join a stream with a stream, a table or a global table."""
    keyed = with_key_first(joiner, with_key, kind)
    if not isinstance(other, streams.KStream | tables.KTable | tables.GlobalKTable):
        raise TopologyError(f"{kind}: expected a KStream, KTable or GlobalKTable, got {type(other).__name__}")
    if other.graph is not stream.graph:
        raise TopologyError(f"{kind}: both sides must come from the same StreamsBuilder")
    if name is not None:
        check_name(name, f"{kind}, name")
    serdes = [*check_serdes(key_serde, value_serde, kind), check_serde(other_value_serde, f"{kind}, other_value_serde")]
    if isinstance(other, streams.KStream):
        if not isinstance(window, JoinWindows):
            raise TopologyError(f"{kind} of two streams needs window=JoinWindows(...), got {window!r}")
        if key is not None:
            raise TopologyError(f"{kind} of two streams: key= is only for global tables. Leave it out")
        return _join_streams(stream, other, keyed, kind, window, serdes[0], serdes[1], serdes[2], name)
    if window is not None:
        raise TopologyError(f"{kind} with a table: window= is only for joins of two streams. Leave it out")
    if kind == "outer_join":
        raise TopologyError("outer_join: a stream cannot be outer-joined with a table. Use join or left_join")
    if isinstance(other, tables.KTable):
        if key is not None:
            raise TopologyError(f"{kind} with a KTable: key= is only for global tables. Leave it out")
        return _join_table(stream, other, joiner, with_key, kind == "left_join", serdes[0], serdes[1], name)
    if key is None:
        raise TopologyError(f"{kind} with a GlobalKTable needs key=f(key, value), the key to look up")
    return _join_global(stream, other, joiner, with_key, kind == "left_join", key, name)


def _repartitioned(
    stream: streams.KStream[Any, Any], prefix: str, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None
) -> streams.KStream[Any, Any]:
    """Repartition a stream for a join. A second join of the same stream uses the same repartition."""
    graph = stream.graph
    keys, values = key_serde or stream.key_serde, value_serde or stream.value_serde
    made = repartition_node(graph, prefix, keys, values)
    known = graph.join_repartitions.get(stream.node)
    if known is None or stream.name != prefix:
        known = graph.join_repartitions[stream.node] = graph.add(made, stream.node)
    return streams.KStream(known.name, keys, values, frozenset([known.name]), False, known, graph)


def _join_streams(
    left: streams.KStream[Any, Any],
    right: streams.KStream[Any, Any],
    joiner: Callable[[Any, Any, Any], Any],
    kind: str,
    window: JoinWindows,
    key_serde: Serde[Any] | None,
    left_serde: Serde[Any] | None,
    right_serde: Serde[Any] | None,
    name: str | None,
) -> streams.KStream[Any, Any]:
    graph = left.graph
    if left.rekeyed:
        left = _repartitioned(left, left.name if name is None else f"{name}-left", key_serde, left_serde)
    if right.rekeyed:
        right = _repartitioned(right, right.name if name is None else f"{name}-right", key_serde, right_serde)
    left_outer, right_outer = kind != "join", kind == "outer_join"
    left_window = graph.new_name("KSTREAM-WINDOWED-", name, "-this-windowed")
    right_window = graph.new_name("KSTREAM-WINDOWED-", name, "-other-windowed")
    left_made = graph.new_name("KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-")
    right_made = graph.new_name("KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-")
    left_step = left_made if name is None else name + ("-outer-this-join" if right_outer else "-this-join")
    right_step = right_made if name is None else name + ("-outer-other-join" if left_outer else "-other-join")
    merge = graph.new_name("KSTREAM-MERGE-", name, "-merge")
    sources = graph.copartition(merge, left.sources, right.sources)
    keys = key_serde or left.key_serde or right.key_serde
    left_values, right_values = left_serde or left.value_serde, right_serde or right.value_serde
    left_store = _join_store(f"{left_made}-store", keys, left_values, window)
    right_store = _join_store(f"{right_made}-store", keys, right_values, window)
    unmatched: StoreBuilder | None = None
    if left_outer:
        number = left_made[left_made.rindex("-") + 1 :]
        unmatched = unmatched_records(f"KSTREAM-OUTERSHARED-{number}-store", keys, left_values, right_values)

    for step, store, stream in ((left_window, left_store, left), (right_window, right_store, right)):
        graph.add(GraphNode(step, _window_writer(step, store)), stream.node)

    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        shared = () if unmatched is None else (unmatched.name,)
        sides = (
            (left_step, left_window, True, left_outer, right_store.name),
            (right_step, right_window, False, right_outer, left_store.name),
        )
        for step, above, is_left, is_outer, other in sides:
            operator = JoinSide(merge, is_left, is_outer, window, joiner, other, shared[0] if shared else None)
            topology.add_operator(step, operator, above)
            if unmatched is not None:
                topology.add_step_store(unmatched)
            topology.connect(step, other, *shared)
        topology.add_operator(merge, PassThrough(), left_step, right_step)

    node = graph.add(GraphNode(merge, write, takes_null_keys=left_outer or right_outer), left.node, right.node)
    return streams.KStream(merge, key_serde, None, sources, False, node, graph)


def _join_store(
    name: str, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None, window: JoinWindows
) -> StoreBuilder:
    return Stores.window(
        name,
        key_serde,
        value_serde,
        retention=window.retention,
        window_size=window.size,
        retain_duplicates=True,
    )


def _window_writer(step: str, store: StoreBuilder) -> Callable[[Topology, tuple[str, ...]], None]:
    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.add_operator(step, JoinWindow(store.name), *parents)
        topology.add_step_store(store, step)

    return write


def _join_table(
    stream: streams.KStream[Any, Any],
    table: tables.KTable[Any, Any],
    joiner: Callable[..., Any],
    with_key: bool,
    is_left_join: bool,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
    name: str | None,
) -> streams.KStream[Any, Any]:
    graph: Graph = stream.graph
    if stream.rekeyed:
        stream = _repartitioned(stream, stream.name if name is None else name, key_serde, value_serde)
    step = graph.new_name("KSTREAM-LEFTJOIN-" if is_left_join else "KSTREAM-JOIN-", name)
    sources = graph.copartition(step, stream.sources, table.sources)
    getter = table.step.getter()

    operator = StreamTableJoin(getter, joiner, with_key, is_left_join)

    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.add_operator(step, operator, *parents, stores=getter.stores)

    node = graph.add(GraphNode(step, write, takes_null_keys=is_left_join), stream.node)
    return streams.KStream(step, key_serde or stream.key_serde, None, sources, False, node, graph)


def _join_global(
    stream: streams.KStream[Any, Any],
    table: tables.GlobalKTable[Any, Any],
    joiner: Callable[..., Any],
    with_key: bool,
    is_left_join: bool,
    key: Callable[[Any, Any], Any],
    name: str | None,
) -> streams.KStream[Any, Any]:
    graph = stream.graph
    if not callable(key):
        raise TopologyError(f"join: expected key= to be a function, got {type(key).__name__} ({key!r})")
    step = graph.new_name("KSTREAM-LEFTJOIN-", name)
    getter = table.getter()
    operator = StreamTableJoin(getter, joiner, with_key, is_left_join, key)

    def write(topology: Topology, parents: tuple[str, ...]) -> None:
        topology.add_operator(step, operator, *parents, stores=getter.stores)

    node = graph.add(GraphNode(step, write, takes_null_keys=is_left_join), stream.node)
    return streams.KStream(step, stream.key_serde, None, stream.sources, stream.rekeyed, node, graph)
