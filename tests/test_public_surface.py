"""The names that users write: each is where the documentation says, and nothing else is exported."""

import ast
import inspect
import pkgutil
import subprocess
import sys
import tomllib
from typing import Any

import pytest

import headrace
from headrace import serdes, testing
from headrace.state.key_value import KeyValueStore
from headrace.state.session import SessionStore
from headrace.state.versioned import VersionedStore
from headrace.state.window import WindowStore
from tests.imports import ROOT

DOCUMENTED = {
    "streams": {"Streams", "StreamsState", "StreamThreadExceptionResponse"},
    "building": {"StreamsBuilder", "KStream", "KTable", "GlobalKTable", "Materialized"},
    "grouping": {"GroupedStream", "GroupedTable", "CogroupedStream", "TimeWindowedStream", "SessionWindowedStream"},
    "windows": {
        "TumblingWindows",
        "HoppingWindows",
        "SlidingWindows",
        "SessionWindows",
        "UnlimitedWindows",
        "JoinWindows",
        "Window",
        "Windowed",
        "EmitStrategy",
        "Suppressed",
        "Buffer",
    },
    "processors": {
        "Topology",
        "TopologyDescription",
        "Processor",
        "FixedKeyProcessor",
        "ProcessorContext",
        "PunctuationType",
        "Record",
        "RecordMetadata",
        "Stores",
        "StoreBuilder",
        "ValueAndTimestamp",
        "VersionedRecord",
    },
    "time": {
        "FailOnInvalidTimestamp",
        "LogAndSkipOnInvalidTimestamp",
        "UsePartitionTimeOnInvalidTimestamp",
        "WallclockTimestampExtractor",
    },
    "running": {"StreamsConfig", "LogAndFail", "LogAndContinue", "DeadLetter", "HandlerResponse", "ErrorContext"},
    "errors": {
        "HeadraceError",
        "ConfigError",
        "TopologyError",
        "SerializationError",
        "StreamsError",
        "ProcessorStateError",
        "TaskError",
        "InvalidStateStoreError",
        "TopicError",
    },
}

SERDES = {
    "String",
    "Integer",
    "Long",
    "Short",
    "Float",
    "Double",
    "Boolean",
    "Bytes",
    "UUID",
    "Void",
    "Json",
    "Windowed",
    "SessionWindowed",
    "List",
    "Avro",
    "Protobuf",
    "JsonSchema",
    "Serde",
}

CALLS: dict[str, dict[str, str]] = {
    "StreamsBuilder": {
        "stream": "topics key_serde value_serde timestamp_extractor offset_reset name",
        "table": "topic key_serde value_serde timestamp_extractor offset_reset store name",
        "global_table": "topic key_serde value_serde timestamp_extractor store name",
        "add_state_store": "store_builder",
        "build": "",
    },
    "KStream": {
        "filter": "predicate name",
        "filter_not": "predicate name",
        "map": "mapper name",
        "flat_map": "mapper name",
        "select_key": "mapper name",
        "peek": "action name",
        "for_each": "action name",
        "print": "label name",
        "map_values": "mapper with_key name",
        "flat_map_values": "mapper with_key name",
        "merge": "other name",
        "split": "branches default name",
        "group_by_key": "key_serde value_serde name",
        "group_by": "mapper key_serde value_serde name",
        "repartition": "key_serde value_serde partitions name",
        "to_table": "key_serde value_serde store name",
        "to": "topic key_serde value_serde partitioner name",
        "join": "other joiner window key with_key name",
        "left_join": "other joiner window key with_key name",
        "outer_join": "other joiner window with_key name",
        "process": "supplier name",
        "process_values": "supplier name",
    },
    "KTable": {
        "filter": "predicate store name",
        "filter_not": "predicate store name",
        "map_values": "mapper store name",
        "to_stream": "key name",
        "suppress": "suppressed name",
        "group_by": "mapper name",
        "join": "other joiner store foreign_key name",
        "left_join": "other joiner store foreign_key name",
        "outer_join": "other joiner store name",
    },
    "GroupedStream": {
        "count": "store name",
        "reduce": "reducer store name",
        "aggregate": "initializer aggregator store name",
        "windowed_by": "windows",
        "cogroup": "aggregator",
    },
    "TimeWindowedStream": {
        "count": "store name",
        "reduce": "reducer store name",
        "aggregate": "initializer aggregator store name",
        "emit_strategy": "strategy",
    },
    "SessionWindowedStream": {
        "count": "store name",
        "reduce": "reducer store name",
        "aggregate": "initializer aggregator merger store name",
        "emit_strategy": "strategy",
    },
    "CogroupedStream": {"cogroup": "", "windowed_by": "windows", "aggregate": "initializer store merger name"},
    "GroupedTable": {
        "count": "store name",
        "reduce": "adder subtractor store name",
        "aggregate": "initializer adder subtractor store name",
    },
    "Topology": {
        "add_source": "name topics key_serde value_serde timestamp_extractor offset_reset",
        "add_processor": "name supplier parents",
        "add_state_store": "builder processors",
        "add_sink": "name topic parents key_serde value_serde partitioner",
        "describe": "",
    },
    "Processor": {"init": "context", "process": "record", "close": ""},
    "ProcessorContext": {
        "forward": "record child",
        "schedule": "interval type callback",
        "state_store": "name",
        "current_stream_time": "",
        "current_system_time": "",
        "commit": "",
    },
    "Stores": {
        "key_value": "name key_serde value_serde in_memory timestamped",
        "window": "name key_serde value_serde retention window_size retain_duplicates",
        "session": "name key_serde value_serde retention",
        "versioned": "name key_serde value_serde history_retention",
    },
    "Suppressed": {"until_window_closes": "buffer", "until_time_limit": "limit buffer"},
    "Buffer": {
        "unbounded": "",
        "max_records": "",
        "max_bytes": "",
        "shut_down_when_full": "",
        "emit_early_when_full": "",
    },
    "EmitStrategy": {"on_window_close": "", "on_window_update": ""},
    "StreamsConfig": {"from_properties": "properties"},
}

TESTING: dict[str, dict[str, str]] = {
    "TopologyTestDriver": {
        "create_input_topic": "topic key_serde value_serde start_timestamp auto_advance",
        "create_output_topic": "topic key_serde value_serde",
        "advance_wall_clock_time": "duration",
        "state_store": "name",
        "state_stores": "",
        "timestamped_store": "name",
        "produced_topic_names": "",
        "snapshot": "",
        "close": "",
    },
    "TestInputTopic": {
        "pipe_input": "key value timestamp headers",
        "pipe_values": "values",
        "pipe_key_values": "pairs",
        "pipe_records": "records",
        "advance_time": "duration",
    },
    "TestOutputTopic": {
        "read_record": "",
        "read_value": "",
        "read_key_value": "",
        "read_records": "",
        "read_values": "",
        "read_key_values": "",
        "read_key_values_to_dict": "",
        "is_empty": "",
        "queue_size": "",
    },
}

SETTINGS = {
    "application_id",
    "bootstrap_servers",
    "processing_guarantee",
    "statestore_cache_max_bytes",
    "default_key_serde",
    "default_value_serde",
    "default_timestamp_extractor",
    "auto_offset_reset",
    "deserialization_exception_handler",
    "processing_exception_handler",
    "production_exception_handler",
    "topology_optimization",
}


def test_headrace_offers_what_is_documented_and_nothing_else() -> None:
    assert set(headrace.__all__) == set().union(*DOCUMENTED.values())


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    tree = ast.parse(inspect.getsource(headrace))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "typing"]

    seen = {alias.name: node.module for node in imports for alias in node.names if alias.name != "import_module"}

    assert seen == headrace._MODULES
    assert set(seen) == set(headrace.__all__)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert headrace.__version__ == project["version"]
    assert "__version__" in dir(headrace)


def test_the_version_is_read_when_it_is_asked_for() -> None:
    program = "import sys, headrace; print('importlib.metadata' in sys.modules, headrace.__version__)"

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed == f"False {headrace.__version__}\n"


def test_testing_offers_what_is_documented_and_nothing_else() -> None:
    assert set(testing.__all__) == {*TESTING, "Snapshot"}


def test_serdes_offer_what_is_documented() -> None:
    assert set(serdes.__all__) >= SERDES


@pytest.mark.parametrize("module", [headrace, serdes, testing], ids=lambda module: module.__name__)
def test_a_module_has_what_it_offers(module: Any) -> None:
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(module.__all__) == len(set(module.__all__))


@pytest.mark.parametrize("name", sorted(set().union(*DOCUMENTED.values())))
def test_what_headrace_offers_says_what_it_is(name: str) -> None:
    offered = getattr(headrace, name)

    assert name in ("LogAndFail", "LogAndContinue") or (inspect.getdoc(offered) or "").strip()


@pytest.mark.parametrize(
    ("owner", "call", "parameters"),
    [
        pytest.param(owner, call, parameters, id=f"{owner.__name__}.{call}")
        for module, owners in ((headrace, CALLS), (testing, TESTING))
        for owner, calls in ((getattr(module, name), calls) for name, calls in owners.items())
        for call, parameters in calls.items()
    ],
)
def test_a_call_takes_what_is_documented(owner: type, call: str, parameters: str) -> None:
    taken = inspect.signature(getattr(owner, call)).parameters

    assert [name for name in parameters.split() if name not in taken] == []


@pytest.mark.parametrize("name", ["application_id", "task_id", "record_metadata"])
def test_a_context_has_what_is_documented(name: str) -> None:
    assert isinstance(getattr(headrace.ProcessorContext, name), property)


def test_a_driver_takes_what_is_documented() -> None:
    taken = list(inspect.signature(testing.TopologyTestDriver).parameters)

    assert taken[:3] == ["topology", "config", "initial_wall_clock"]
    assert "restore_from" in taken


def test_materialized_takes_what_is_documented() -> None:
    assert list(inspect.signature(headrace.Materialized).parameters) == [
        "name",
        "key_serde",
        "value_serde",
        "retention",
        "caching",
        "logging",
        "in_memory",
        "history_retention",
    ]


def test_settings_are_those_that_are_documented() -> None:
    assert set(headrace.StreamsConfig.model_fields) >= SETTINGS


def test_stores_have_what_is_documented() -> None:
    documented: dict[type, str] = {
        KeyValueStore: "get put put_if_absent put_all delete range reverse_range prefix_scan all reverse_all "
        "approximate_num_entries",
        WindowStore: "put fetch fetch_all all",
        SessionStore: "fetch find_sessions put remove all",
        VersionedStore: "put get delete",
    }

    for store, calls in documented.items():
        assert [call for call in calls.split() if not callable(getattr(store, call, None))] == []


def test_there_is_one_tree_of_errors() -> None:
    errors = [getattr(headrace, name) for name in DOCUMENTED["errors"]]

    assert all(issubclass(error, headrace.HeadraceError) for error in errors)
    assert issubclass(headrace.TaskError, headrace.StreamsError)
    assert issubclass(headrace.InvalidStateStoreError, headrace.StreamsError)


def test_the_package_is_typed() -> None:
    assert pkgutil.get_data("headrace", "py.typed") is not None


def test_the_model_needs_neither_spark_nor_kafka() -> None:
    program = "import sys, headrace.testing; print(sorted({name.partition('.')[0] for name in sys.modules}))"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "'headrace'" in loaded
    heavy = ("pyspark", "confluent_kafka", "kafka", "fastavro", "google", "jsonschema")
    assert not [name for name in heavy if f"'{name}'" in loaded]
