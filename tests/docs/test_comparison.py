"""The page for Kafka Streams users names only Python calls and arguments that exist."""

import inspect
import re
from types import ModuleType
from typing import Any

import headrace
from headrace import StreamsConfig, serdes, testing
from headrace.state import key_value, session, versioned, window
from headrace.topology import processor
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "coming-from-kafka-streams.md").read_text(encoding="utf-8")
OF_PYTHON = {"compile"}  # re.compile
CALLS = PAGE[PAGE.index("## The calls") : PAGE.index("### Configuration")]


def python_column() -> str:
    rows = [line.split(" | ", 1) for line in CALLS.splitlines() if line.startswith("| `")]
    return "\n".join(row[1] for row in rows)


def public_classes(*modules: ModuleType) -> list[type]:
    return [thing for module in modules for _, thing in inspect.getmembers(module, inspect.isclass)]


CLASSES = public_classes(headrace, testing, serdes, key_value, session, versioned, window, processor)


def parameters_of(thing: Any) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return set()


def test_calls_exist() -> None:
    known = {name for kind in CLASSES for name in dir(kind)} | set(dir(serdes)) | OF_PYTHON

    called = set(re.findall(r"\.(\w+)\(", python_column()))

    assert sorted(called - known) == []


def test_classes_exist() -> None:
    known = {*headrace.__all__, *testing.__all__, *serdes.__all__}

    made = set(re.findall(r"(?<![.\w])([A-Z][A-Za-z]+)\(", python_column()))

    assert sorted(made - known) == []


def test_keyword_arguments_exist() -> None:
    methods = [member for kind in CLASSES for _, member in inspect.getmembers(kind, callable)]
    known = set().union(*(parameters_of(thing) for thing in [*CLASSES, *methods]))

    given = set(re.findall(r"\b([a-z_]+)=", python_column()))

    assert sorted(given - known) == []


def test_settings_are_those_of_the_configuration() -> None:
    table = PAGE[PAGE.index("### Configuration") : PAGE.index("### Errors")]

    told = set(re.findall(r"^\| `[^|]*\| `(\w+)` \|", table, re.MULTILINE))

    assert told == set(StreamsConfig.model_fields)
