"""Headrace: Kafka Streams for Python, on Spark."""

from headrace.config import StreamsConfig
from headrace.dsl.builder import StreamsBuilder
from headrace.dsl.cogrouped import CogroupedStream
from headrace.dsl.grouped import GroupedStream
from headrace.dsl.grouped_table import GroupedTable
from headrace.dsl.materialized import Materialized
from headrace.dsl.stream import KStream
from headrace.dsl.table import GlobalKTable, KTable
from headrace.dsl.windowed import SessionWindowedStream, TimeWindowedStream
from headrace.errors import (
    ConfigError,
    HeadraceError,
    InvalidStateStoreError,
    ProcessorStateError,
    SerializationError,
    StreamsError,
    TaskError,
    TopicError,
    TopologyError,
)
from headrace.handlers import DeadLetter, ErrorContext, HandlerResponse, LogAndContinue, LogAndFail
from headrace.operators.suppress import Buffer, Suppressed
from headrace.operators.windows import (
    EmitStrategy,
    HoppingWindows,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TumblingWindows,
    UnlimitedWindows,
)
from headrace.records import Record, RecordMetadata, ValueAndTimestamp, Window, Windowed
from headrace.state.builders import StoreBuilder, Stores
from headrace.state.versioned import VersionedRecord
from headrace.topology.description import TopologyDescription
from headrace.topology.processor import FixedKeyProcessor, Processor, ProcessorContext, PunctuationType
from headrace.topology.timestamps import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
from headrace.topology.topology import Topology

__all__ = [
    "Buffer",
    "CogroupedStream",
    "ConfigError",
    "DeadLetter",
    "EmitStrategy",
    "ErrorContext",
    "FailOnInvalidTimestamp",
    "FixedKeyProcessor",
    "GlobalKTable",
    "GroupedStream",
    "GroupedTable",
    "HandlerResponse",
    "HeadraceError",
    "HoppingWindows",
    "InvalidStateStoreError",
    "JoinWindows",
    "KStream",
    "KTable",
    "LogAndContinue",
    "LogAndFail",
    "LogAndSkipOnInvalidTimestamp",
    "Materialized",
    "Processor",
    "ProcessorContext",
    "ProcessorStateError",
    "PunctuationType",
    "Record",
    "RecordMetadata",
    "SerializationError",
    "SessionWindowedStream",
    "SessionWindows",
    "SlidingWindows",
    "StoreBuilder",
    "Stores",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "Suppressed",
    "TaskError",
    "TimeWindowedStream",
    "TopicError",
    "Topology",
    "TopologyDescription",
    "TopologyError",
    "TumblingWindows",
    "UnlimitedWindows",
    "UsePartitionTimeOnInvalidTimestamp",
    "ValueAndTimestamp",
    "VersionedRecord",
    "WallclockTimestampExtractor",
    "Window",
    "Windowed",
]
