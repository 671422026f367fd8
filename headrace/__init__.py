"""Headrace: Kafka Streams for Python, on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.application.states import StreamsState, StreamThreadExceptionResponse
    from headrace.application.streams import Streams
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
    from headrace.operators.window_definitions import (
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

    __version__: str

# Every worker process of Spark imports one or two modules of this package. Load only the names that are asked for.
_HOMES = {
    "headrace.config": "StreamsConfig",
    "headrace.dsl.builder": "StreamsBuilder",
    "headrace.dsl.cogrouped": "CogroupedStream",
    "headrace.dsl.grouped": "GroupedStream",
    "headrace.dsl.grouped_table": "GroupedTable",
    "headrace.dsl.materialized": "Materialized",
    "headrace.dsl.stream": "KStream",
    "headrace.dsl.table": "GlobalKTable KTable",
    "headrace.dsl.windowed": "SessionWindowedStream TimeWindowedStream",
    "headrace.errors": (
        "ConfigError HeadraceError InvalidStateStoreError ProcessorStateError SerializationError StreamsError "
        "TaskError TopicError TopologyError"
    ),
    "headrace.handlers": "DeadLetter ErrorContext HandlerResponse LogAndContinue LogAndFail",
    "headrace.operators.suppress": "Buffer Suppressed",
    "headrace.operators.window_definitions": (
        "EmitStrategy HoppingWindows JoinWindows SessionWindows SlidingWindows TumblingWindows UnlimitedWindows"
    ),
    "headrace.records": "Record RecordMetadata ValueAndTimestamp Window Windowed",
    "headrace.application.states": "StreamThreadExceptionResponse StreamsState",
    "headrace.application.streams": "Streams",
    "headrace.state.builders": "StoreBuilder Stores",
    "headrace.state.versioned": "VersionedRecord",
    "headrace.topology.description": "TopologyDescription",
    "headrace.topology.processor": "FixedKeyProcessor Processor ProcessorContext PunctuationType",
    "headrace.topology.timestamps": (
        "FailOnInvalidTimestamp LogAndSkipOnInvalidTimestamp UsePartitionTimeOnInvalidTimestamp "
        "WallclockTimestampExtractor"
    ),
    "headrace.topology.topology": "Topology",
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

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
    "StreamThreadExceptionResponse",
    "Streams",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "StreamsState",
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


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("headrace")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module 'headrace' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
