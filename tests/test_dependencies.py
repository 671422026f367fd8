"""What the library needs is declared: third-party packages and versions of Python."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from tests.imports import ROOT, imports_of, modules

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared() -> set[str]:
    return {canonical(re.split(r"[\[<>=;~! ]", text, maxsplit=1)[0]) for text in PROJECT["dependencies"]}


def canonical(name: str) -> str:
    """Return a distribution's name as package indexes compare it.

    >>> canonical("prometheus_client")
    'prometheus-client'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Return the third-party packages that the library's modules name in imports."""
    names = {name.partition(".")[0] for module in modules() for name in imports_of(module)}
    return names - sys.stdlib_module_names - {"headrace"}


def test_what_is_imported_is_declared() -> None:
    providers = packages_distributions()  # several distributions may share a name such as `google`

    undeclared = [name for name in imported() if not declared() & {canonical(found) for found in providers[name]}]

    assert undeclared == []


def test_versions_of_python_are_those_that_the_wheel_is_tested_with() -> None:
    prefix = "Programming Language :: Python :: 3."
    told = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if text.startswith(prefix)]

    assert told == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={told[0]}"
