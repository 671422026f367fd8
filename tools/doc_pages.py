"""The classes and methods on each page of `docs/operators/`; a name with `()` also shows its constructor."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page: a title, an introduction, and sections with the names whose docstrings it shows."""

    name: str
    title: str
    intro: str
    sections: dict[str, str]


PAGES = (
    Page(
        "stateless",
        "Streams and stateless steps",
        "A `KStream` is a stream of records. These steps look at one record at a time and keep nothing.\n"
        "They hand null keys and null values to your function. Results have the record's timestamp and headers.",
        {
            "Reading": "StreamsBuilder() StreamsBuilder.stream StreamsBuilder.build KStream",
            "Choosing": "KStream.filter KStream.filter_not KStream.split KStream.merge",
            "Changing": "KStream.map KStream.map_values KStream.flat_map KStream.flat_map_values KStream.select_key",
            "Looking": "KStream.peek KStream.for_each KStream.print",
            "Writing": "KStream.to KStream.repartition",
            "Timestamps": "FailOnInvalidTimestamp LogAndSkipOnInvalidTimestamp UsePartitionTimeOnInvalidTimestamp "
            "WallclockTimestampExtractor",
        },
    ),
    Page(
        "tables",
        "Tables",
        "A `KTable` holds the latest value of every key. A record is an update, a null value a delete.\n"
        "Reading and joining stores: see [stores](stores.md) and [joins](joins.md).",
        {
            "Making a table": "StreamsBuilder.table KStream.to_table KTable",
            "Steps": "KTable.filter KTable.filter_not KTable.map_values KTable.to_stream",
            "Global tables": "StreamsBuilder.global_table GlobalKTable",
        },
    ),
    Page(
        "grouping-and-aggregation",
        "Grouping and aggregation",
        "Group a stream or a table by key, then combine the values of each key into one. The result is a `KTable`.\n"
        "The result's timestamp is the larger of the record's and the one stored with the aggregate.",
        {
            "Grouping a stream": "KStream.group_by_key KStream.group_by GroupedStream",
            "Aggregating a stream": "GroupedStream.count GroupedStream.reduce GroupedStream.aggregate",
            "Several streams into one table": "GroupedStream.cogroup CogroupedStream CogroupedStream.cogroup "
            "CogroupedStream.windowed_by CogroupedStream.aggregate",
            "Grouping a table": "KTable.group_by GroupedTable",
            "Aggregating a table": "GroupedTable.count GroupedTable.reduce GroupedTable.aggregate",
        },
    ),
    Page(
        "windows",
        "Windows",
        "A windowed aggregation keeps one aggregate per key and window: its result is a `KTable` of `Windowed` keys.\n"
        "Durations are `timedelta`s or whole milliseconds. A record that arrives after its window's grace is dropped.",
        {
            "Kinds of windows": "TumblingWindows() HoppingWindows() SlidingWindows() SessionWindows() "
            "UnlimitedWindows()",
            "Windowed keys": "Windowed() Window()",
            "Aggregating by time": "GroupedStream.windowed_by TimeWindowedStream TimeWindowedStream.count "
            "TimeWindowedStream.reduce TimeWindowedStream.aggregate TimeWindowedStream.emit_strategy",
            "Aggregating by session": "SessionWindowedStream SessionWindowedStream.count SessionWindowedStream.reduce "
            "SessionWindowedStream.aggregate SessionWindowedStream.emit_strategy",
            "When results come": "EmitStrategy EmitStrategy.on_window_update EmitStrategy.on_window_close",
        },
    ),
    Page(
        "suppress",
        "Suppress",
        "`KTable.suppress` holds back the updates of a table: until the window is final, or for some time.\n"
        "Keys wait in the order of their time, then of their serialized bytes. A result has the timestamp and the\n"
        "headers of the last update.",
        {
            "The step": "KTable.suppress",
            "How long": "Suppressed Suppressed.until_window_closes Suppressed.until_time_limit",
            "How much": "Buffer Buffer.unbounded Buffer.max_records Buffer.max_bytes Buffer.with_max_records "
            "Buffer.with_max_bytes Buffer.with_no_bound Buffer.shut_down_when_full Buffer.emit_early_when_full",
        },
    ),
    Page(
        "joins",
        "Joins",
        "Streams join streams, tables and global tables; tables join tables.\n"
        "[Concepts](../concepts.md#joins) says what results each kind gives, and when.",
        {
            "Of a stream": "KStream.join KStream.left_join KStream.outer_join JoinWindows()",
            "Of a table": "KTable.join KTable.left_join KTable.outer_join",
        },
    ),
    Page(
        "processor-api",
        "The Processor API",
        "If the DSL has no call for a step, write your own: in the DSL with `process` and `process_values`,\n"
        "or as a whole topology of sources, processors, stores and sinks.",
        {
            "In the DSL": "KStream.process KStream.process_values",
            "Processors": "Processor Processor.init Processor.process Processor.close FixedKeyProcessor",
            "The context": "ProcessorContext ProcessorContext.forward ProcessorContext.schedule PunctuationType "
            "ProcessorContext.state_store ProcessorContext.record_metadata ProcessorContext.current_stream_time "
            "ProcessorContext.current_system_time ProcessorContext.commit ProcessorContext.application_id "
            "ProcessorContext.task_id",
            "Records": "Record() Record.with_key Record.with_value Record.with_timestamp Record.with_headers "
            "RecordMetadata()",
            "Topology": "Topology() Topology.add_source Topology.add_processor Topology.add_state_store "
            "Topology.connect Topology.add_sink Topology.describe TopologyDescription",
        },
    ),
    Page(
        "stores",
        "Stores",
        "A step of the DSL makes its own store; `store=` gives it a name and options. Processors get the stores\n"
        "that are connected to them. Entries are in the order of the serialized bytes of their keys.",
        {
            "Stores of the DSL": "Materialized()",
            "Stores for processors": "StreamsBuilder.add_state_store Stores Stores.key_value Stores.window "
            "Stores.session Stores.versioned StoreBuilder",
            "Key-value stores": "KeyValueStore.get KeyValueStore.put KeyValueStore.put_if_absent KeyValueStore.put_all "
            "KeyValueStore.delete KeyValueStore.range KeyValueStore.reverse_range KeyValueStore.prefix_scan "
            "KeyValueStore.all KeyValueStore.reverse_all KeyValueStore.approximate_num_entries ValueAndTimestamp()",
            "Window stores": "WindowStore.put WindowStore.fetch WindowStore.fetch_all WindowStore.all",
            "Session stores": "SessionStore.put SessionStore.remove SessionStore.fetch SessionStore.find_sessions "
            "SessionStore.fetch_session SessionStore.all",
            "Versioned stores": "VersionedStore.put VersionedStore.get VersionedStore.delete VersionedRecord()",
        },
    ),
)

INTERNAL = frozenset(
    {
        "GlobalKTable.getter",
        "GroupedStream.add_aggregate",
        "GroupedStream.count_store",
        "GroupedStream.repartitioned",
        "Materialized.key_value",
        "Materialized.or_serdes",
        "Materialized.session",
        "Materialized.window",
    }
)
"""Public methods that only other parts of Headrace call."""
