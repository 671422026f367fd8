"""The tests of a module can be found: by the name of their file, or by a line `Tests: MODULE, ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.imports import ROOT, modules, name_of

TESTS = ROOT / "tests"
LINES = 10
"""A line that names modules stands among the first lines of a test module."""

_NAME = r"`?((?:headrace|tools)\.[\w.]+)`?"
_LINE = re.compile(rf"\bTests: {_NAME}(?:,[\s#]*{_NAME})*")


def modules_to_test() -> dict[str, Path]:
    """Return the modules of the library and the tools; a package's `__init__` only re-exports."""
    tools = {name_of(path): path for path in sorted((ROOT / "tools").glob("*.py"))}
    return {name: path for name, path in (modules() | tools).items() if path.name != "__init__.py"}


def places_of(module: str) -> Iterator[Path]:
    """Give the files that may hold a module's tests: in the same folder under `tests`, or in the one above."""
    *folders, name = module.removeprefix("headrace.").split(".")
    for depth in (len(folders), len(folders) - 1):
        if depth >= 0:
            yield TESTS.joinpath(*folders[:depth], f"test_{name}.py")


def named_in(text: str) -> set[str]:
    """Return the modules that the head of a test module names.

    >>> sorted(named_in("# Tests: headrace.cli.app, headrace.cli.options"))
    ['headrace.cli.app', 'headrace.cli.options']
    """
    head = "\n".join(text.splitlines()[:LINES])
    return {name.rstrip(".") for line in _LINE.finditer(head) for name in re.findall(_NAME, line[0])}


@cache
def named_by_line() -> dict[str, list[str]]:
    """Return the test modules by the module that they name."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for module in named_in(path.read_text(encoding="utf-8")):
            found.setdefault(module, []).append(path.relative_to(ROOT).as_posix())
    return found


@pytest.mark.parametrize("module", modules_to_test())
def test_tests_of_a_module_can_be_found(module: str) -> None:
    found = module in named_by_line() or any(path.exists() for path in places_of(module))

    assert found, f"name a test module test_{module.rpartition('.')[2]}.py, or write `Tests: {module}` at its top"


def test_lines_name_modules_that_exist() -> None:
    known = {*modules(), *modules_to_test()}

    assert {name: paths for name, paths in named_by_line().items() if name not in known} == {}
