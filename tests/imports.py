"""The imports of the project, read from its source, including lazy imports and imports for types."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def modules() -> dict[str, Path]:
    """Return the modules of the library by name."""
    return {name_of(path): path for path in sorted((ROOT / "headrace").rglob("*.py"))}


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules that a module names in an import, wherever the import stands."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    return frozenset(name for node in ast.walk(tree) for name in _imported(node))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, "relative imports hide which package they lead to"
        assert node.module is not None
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules() else node.module


def package_of(module: str) -> str:
    """Return what stands on a floor: a package of the library, or one of its top modules."""
    return ".".join(module.split(".")[:2])


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of nodes that lead to each other.

    >>> cycles({"a": ["b"], "b": ["a"], "c": ["a"]})
    [['a', 'b']]
    """
    reach = {node: _reachable(graph, node) for node in graph}
    found = {frozenset(other for other in reach[node] if node in reach.get(other, ())) for node in graph}
    return sorted(sorted(group) for group in found if group)


def _reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(graph.get(node, ()))
    return seen
