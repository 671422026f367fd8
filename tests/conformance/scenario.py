"""Turns the topology of a scenario (conformance/SPEC.md) into a Headrace topology, through the public API only.

It mirrors ScenarioTopology.java call by call: a step that has a name, a store or serdes there has them here, too.
"""

from enum import Enum
from typing import Any

from headrace import (
    Buffer,
    EmitStrategy,
    GroupedTable,
    HoppingWindows,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    Topology,
    TumblingWindows,
    Windowed,
    serdes,
)
from tests.conformance import functions
from tests.conformance.processors import processor_supplier

Node = dict[str, Any]

STRING = serdes.String
LONG = serdes.Long
STRINGS: dict[str, Any] = {"key_serde": STRING, "value_serde": STRING}


class StoreKind(Enum):
    """How the content of a named store is read for the dump."""

    PLAIN = "key-value store of a processor: no timestamps"
    TIMESTAMPED = "key-value store of the DSL"
    WINDOW = "window store of the DSL"
    SESSION = "session store of the DSL: no timestamps"


def key_text(key: Any) -> Any:
    """Render a windowed key as key@start-end; other keys stay as they are."""
    if isinstance(key, Windowed):
        return f"{key.key}@{key.window.start}-{key.window.end}"
    return key


class ScenarioTopology:
    """Builds the nodes of one scenario; knows its output topics and named stores afterwards."""

    def __init__(self, nodes: list[Node], builder: StreamsBuilder | None = None) -> None:
        self.outputs: dict[str, None] = {}
        self.stores: dict[str, StoreKind] = {}
        self._builder = builder or StreamsBuilder()
        self._handles: dict[str, Any] = {}
        self._window_kinds: dict[str, str] = {}
        self._windowed_tables: set[str] = set()
        for node in nodes:
            handle = getattr(self, f"_{node['op']}")(node)
            self._handles[node["id"]] = handle
            if isinstance(handle, KTable) and self._gives_windowed_keys(node):
                self._windowed_tables.add(node["id"])

    def build(self) -> Topology:
        return self._builder.build()

    def _gives_windowed_keys(self, node: Node) -> bool:
        if node["op"] == "cogroup":
            return bool(node.get("window"))
        upstream = node.get("from")
        return upstream in self._window_kinds or upstream in self._windowed_tables

    # Sources and sinks

    def _stream(self, node: Node) -> Any:
        return self._builder.stream(node["topic"], **STRINGS)

    def _table(self, node: Node) -> Any:
        return self._builder.table(node["topic"], **STRINGS, store=self._key_value_store(node))

    def _global_table(self, node: Node) -> Any:
        return self._builder.global_table(node["topic"], **STRINGS, store=self._named_key_value_store(node))

    def _to(self, node: Node) -> None:
        self.outputs[node["topic"]] = None
        self._from(node).to(node["topic"], **STRINGS)

    # Steps on streams, and on tables where they exist there too

    def _filter(self, node: Node) -> Any:
        return self._filtered(node, "filter")

    def _filter_not(self, node: Node) -> Any:
        return self._filtered(node, "filter_not")

    def _filtered(self, node: Node, method: str) -> Any:
        test = functions.predicate(node["fn"])
        upstream = self._from(node)
        if isinstance(upstream, KStream):
            return getattr(upstream, method)(test)
        return getattr(upstream, method)(
            lambda key, value: test(key_text(key), value), store=self._named_key_value_store(node)
        )

    def _map_values(self, node: Node) -> Any:
        function = functions.value_function(node["fn"])
        upstream = self._from(node)
        if isinstance(upstream, KStream):
            return upstream.map_values(function)
        return upstream.map_values(function, store=self._named_key_value_store(node))

    def _map(self, node: Node) -> Any:
        return self._from(node).map(functions.key_value_function(node["fn"]))

    def _flat_map_values(self, node: Node) -> Any:
        return self._from(node).flat_map_values(functions.split_function(node["fn"]))

    def _select_key(self, node: Node) -> Any:
        return self._from(node).select_key(functions.key_function(node["fn"]))

    def _merge(self, node: Node) -> Any:
        return self._left(node).merge(self._right(node))

    def _branch(self, node: Node) -> None:
        predicates = {str(i): functions.predicate(text) for i, text in enumerate(node["branches"])}
        default = "default" if node.get("default") else None
        branches = self._from(node).split(predicates, default=default, name=f"{node['id']}-")
        for label, branch in branches.items():
            self._handles[f"{node['id']}#{label}"] = branch

    def _peek(self, node: Node) -> Any:
        return self._from(node).peek(lambda key, value: None)

    def _repartition(self, node: Node) -> Any:
        return self._from(node).repartition(**STRINGS)

    def _process(self, node: Node) -> Any:
        name = node.get("store")
        if name:
            self.stores[name] = StoreKind.PLAIN
        name = name or f"{node['id']}-store"
        self._builder.add_state_store(Stores.key_value(name, STRING, STRING))
        return self._from(node).process(processor_supplier(node["fn"], name), name)

    # Between streams and tables

    def _to_table(self, node: Node) -> Any:
        return self._from(node).to_table(**STRINGS, store=self._key_value_store(node))

    def _to_stream(self, node: Node) -> Any:
        if node["from"] in self._windowed_tables:
            return self._from(node).to_stream(key=lambda key, value: key_text(key))
        return self._from(node).to_stream()

    def _suppress(self, node: Node) -> Any:
        if node["kind"] == "window_close":
            return self._from(node).suppress(Suppressed.until_window_closes(Buffer.unbounded()))
        buffer = Buffer.max_records(node["max_records"]) if "max_records" in node else Buffer.unbounded()
        return self._from(node).suppress(Suppressed.until_time_limit(node["ms"], buffer))

    # Grouping and aggregation

    def _group_by_key(self, node: Node) -> Any:
        return self._from(node).group_by_key(**STRINGS, name=node["id"])

    def _group_by(self, node: Node) -> Any:
        key = functions.key_function(node["fn"])
        upstream = self._from(node)
        if isinstance(upstream, KStream):
            return upstream.group_by(key, **STRINGS, name=node["id"])
        return upstream.group_by(lambda k, v: (key(key_text(k), v), v), **STRINGS, name=node["id"])

    def _window(self, node: Node) -> Any:
        self._window_kinds[node["id"]] = node["kind"]
        return self._from(node).windowed_by(windows(node))

    def _emit_strategy(self, node: Node) -> Any:
        self._window_kinds[node["id"]] = self._window_kinds[node["from"]]
        on_close = node.get("on_window_close")
        strategy = EmitStrategy.on_window_close() if on_close else EmitStrategy.on_window_update()
        return self._from(node).emit_strategy(strategy)

    def _count(self, node: Node) -> Any:
        return self._from(node).count(store=self._aggregate_store(node, LONG)).map_values(str)

    def _reduce(self, node: Node) -> Any:
        upstream, store = self._from(node), self._aggregate_store(node, STRING)
        if isinstance(upstream, GroupedTable):
            table_aggregator = functions.table_aggregator(node["fn"])
            return upstream.reduce(table_aggregator.add_value, table_aggregator.subtract_value, store=store)
        return upstream.reduce(functions.reducer(node["fn"]), store=store)

    def _aggregate(self, node: Node) -> Any:
        upstream, store = self._from(node), self._aggregate_store(node, STRING)
        if isinstance(upstream, GroupedTable):
            table = functions.table_aggregator(node["fn"])
            return upstream.aggregate(table.initializer, table.adder, table.subtractor, store=store)
        stream = functions.aggregator(node["fn"])
        if self._window_kinds.get(node["from"]) == "session":
            return upstream.aggregate(stream.initializer, stream.adder, stream.merger, store=store)
        return upstream.aggregate(stream.initializer, stream.adder, store=store)

    def _cogroup(self, node: Node) -> Any:
        groups = [self._handles[i["from"]] for i in node["inputs"]]
        aggregators = [functions.aggregator(i["fn"]) for i in node["inputs"]]
        first = aggregators[0]
        cogrouped = groups[0].cogroup(first.adder)
        for group, aggregator in zip(groups[1:], aggregators[1:], strict=True):
            cogrouped = cogrouped.cogroup(group, aggregator.adder)
        store = self._aggregate_store(node, STRING)
        if not node.get("window"):
            return cogrouped.aggregate(first.initializer, store=store)
        windowed = cogrouped.windowed_by(windows(node["window"]))
        if node["window"]["kind"] == "session":
            return windowed.aggregate(first.initializer, store=store, merger=first.merger)
        return windowed.aggregate(first.initializer, store=store)

    # Joins

    def _join(self, node: Node) -> Any:
        return self._joined(node, "join")

    def _left_join(self, node: Node) -> Any:
        return self._joined(node, "left_join")

    def _outer_join(self, node: Node) -> Any:
        return self._joined(node, "outer_join")

    def _joined(self, node: Node, method: str) -> Any:
        left, right = self._left(node), self._right(node)
        join = getattr(left, method)
        if isinstance(left, KTable):
            return join(right, functions.join_values, store=self._named_key_value_store(node))
        if isinstance(right, KTable):
            return join(right, functions.join_values)
        return join(right, functions.join_values, window=JoinWindows(**node["window"]))

    def _join_global(self, node: Node) -> Any:
        key = functions.key_function(node["fn"])
        return self._left(node).join(self._right(node), functions.join_values, key=key)

    def _left_join_global(self, node: Node) -> Any:
        key = functions.key_function(node["fn"])
        return self._left(node).left_join(self._right(node), functions.join_values, key=key)

    def _fk_join(self, node: Node) -> Any:
        return self._foreign_key_joined(node, "join")

    def _fk_left_join(self, node: Node) -> Any:
        return self._foreign_key_joined(node, "left_join")

    def _foreign_key_joined(self, node: Node, method: str) -> Any:
        return getattr(self._left(node), method)(
            self._right(node),
            functions.join_values,
            foreign_key=functions.foreign_key_function(node["fn"]),
            store=self._key_value_store(node),
        )

    # Stores: a named one is dumped; without a name only the serdes are given

    def _key_value_store(self, node: Node) -> Materialized:
        return self._materialized(node, StoreKind.TIMESTAMPED, STRING)

    def _named_key_value_store(self, node: Node) -> Materialized | None:
        # A Materialized without a name would materialize these steps, too.
        return self._key_value_store(node) if node.get("store") else None

    def _aggregate_store(self, node: Node, value_serde: Any) -> Materialized:
        if node["op"] == "cogroup":
            window_kind = (node.get("window") or {}).get("kind")
        else:
            window_kind = self._window_kinds.get(node["from"])
        kind = {None: StoreKind.TIMESTAMPED, "session": StoreKind.SESSION}.get(window_kind, StoreKind.WINDOW)
        return self._materialized(node, kind, value_serde)

    def _materialized(self, node: Node, kind: StoreKind, value_serde: Any) -> Materialized:
        name = node.get("store")
        if name is not None:
            self.stores[name] = kind
        return Materialized(name, key_serde=STRING, value_serde=value_serde, retention=node.get("retention"))

    # Upstream handles

    def _from(self, node: Node) -> Any:
        return self._handles[node["from"]]

    def _left(self, node: Node) -> Any:
        return self._handles[node["left"]]

    def _right(self, node: Node) -> Any:
        return self._handles[node["right"]]


def windows(node: Node) -> Any:
    """Make the windows of a `window` node, or of the window of a cogroup."""
    match node["kind"]:
        case "tumbling":
            return TumblingWindows(node["size"], grace=node["grace"])
        case "hopping":
            return HoppingWindows(node["size"], node["advance"], grace=node["grace"])
        case "sliding":
            return SlidingWindows(node["diff"], grace=node["grace"])
        case "session":
            return SessionWindows(node["gap"], grace=node["grace"])
    raise ValueError(f"unknown window kind {node['kind']!r}")
