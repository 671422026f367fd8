"""The tests of a module can be found.

The test module has the module's name, or its first lines name the module, in a line `Tests: MODULE` or
in backticks as `package.module` or `module`. Or the first lines of the module say where its tests are, in a line
`Tests: FILE`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.imports import ROOT, modules, name_of

TESTS = ROOT / "tests"
LINES = 12
"""How many lines count as the first ones."""

_NAME = r"`?((?:headrace|tools)\.[\w.]+)`?"
_LINE = re.compile(rf"\bTests: {_NAME}(?:,[\s#]*{_NAME})*")
_IN_BACKTICKS = re.compile(r"`([\w./]+?)(?:\.py)?`")


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


def in_backticks(path: Path, text: str) -> set[str]:
    """Return the modules that the head of a test module names in backticks, wholly or from its own package on."""
    known, package = modules(), ".".join(path.relative_to(TESTS).parts[:-1])
    tokens = [token.replace("/", ".") for token in _IN_BACKTICKS.findall("\n".join(text.splitlines()[:LINES]))]
    wanted = {name for token in tokens for name in (token, f"headrace.{token}", f"headrace.{package}.{token}")}
    return {name for name in wanted if name in known}


@cache
def named_by_line() -> dict[str, list[str]]:
    """Return the test modules by the module that they name."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        for module in named_in(text) | in_backticks(path, text):
            found.setdefault(module, []).append(path.relative_to(ROOT).as_posix())
    return found


def files_named_in(docstring: str) -> list[str]:
    """Return the test files that a module's docstring names; a name without a folder has that of the one before.

    >>> files_named_in("A step. Tests: `tests/operators/test_a.py` and `test_b.py`.")
    ['tests/operators/test_a.py', 'tests/operators/test_b.py']
    """
    found: list[str] = []
    for name in re.findall(r"[\w/]+\.py", docstring.partition("Tests: ")[2]):
        folder = found[-1].rpartition("/")[0] if found else ""
        found.append(name if "/" in name else f"{folder}/{name}")
    return found


@pytest.mark.parametrize(("module", "path"), modules_to_test().items(), ids=modules_to_test())
def test_tests_of_a_module_can_be_found(module: str, path: Path) -> None:
    files = files_named_in(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
    assert [file for file in files if not (ROOT / file).exists()] == []

    found = files or module in named_by_line() or any(place.exists() for place in places_of(module))

    assert found, f"name a test module test_{module.rpartition('.')[2]}.py, or write `Tests: {module}` at its top"


def test_lines_name_modules_that_exist() -> None:
    known = {*modules(), *modules_to_test()}

    assert {name: paths for name, paths in named_by_line().items() if name not in known} == {}
