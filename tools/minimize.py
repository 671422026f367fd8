"""Make a failing scenario small: fewer and simpler entries, fewer nodes, as long as it still fails."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

Scenario = dict[str, Any]

SOURCES = ("stream", "table", "global_table")
OPTIONAL_FIELDS = ("store", "retention", "max_records")


def minimize(scenario: Scenario, still_fails: Callable[[Scenario], bool], attempts: int = 500) -> Scenario:
    """Return the smallest variant that at most `attempts` calls of `still_fails` find."""
    best = {name: scenario[name] for name in ("id", "tags", "topology", "input")}
    remaining = attempts

    def accepted(candidate: Scenario) -> bool:
        nonlocal best, remaining
        if remaining <= 0:
            return False
        remaining -= 1
        candidate = {
            **candidate,
            "tags": [*scenario["tags"][:1], *sorted({node["op"] for node in candidate["topology"]})],
        }
        if still_fails(candidate):
            best = candidate
            return True
        return False

    size = None
    while size != _size(best) and remaining > 0:
        size = _size(best)
        _shrink_input(lambda: best, accepted)
        _take_all(_smaller_topologies, lambda: best, accepted)
        _take_all(_plainer_inputs, lambda: best, accepted)
    return best


def _size(scenario: Scenario) -> tuple[int, int]:
    return len(str(scenario["topology"])), len(str(scenario["input"]))


def _shrink_input(best: Callable[[], Scenario], accepted: Callable[[Scenario], bool]) -> None:
    """Cut pieces out of the input, from its end: first halves, last single entries."""
    length = len(best()["input"])
    while length:
        end = len(best()["input"])
        while end > 0:
            entries = best()["input"]
            start = max(0, end - length)
            accepted({**best(), "input": entries[:start] + entries[end:]})
            end = start
        length //= 2


def _take_all(
    variants: Callable[[Scenario], Iterator[Scenario]],
    best: Callable[[], Scenario],
    accepted: Callable[[Scenario], bool],
) -> None:
    """Take the first variant that still fails and start over from it, until no variant fails."""
    while any(accepted(variant) for variant in variants(best())):
        pass


def _smaller_topologies(scenario: Scenario) -> Iterator[Scenario]:
    for node in reversed(scenario["topology"]):
        if node["op"] == "to":
            yield _without(scenario, node, replacement=None)
        for field in ("from", "left", "right"):
            if field in node and node["op"] != "to":
                yield _without(scenario, node, replacement=node[field])
        for field in OPTIONAL_FIELDS:
            if field in node:
                yield _changed(scenario, node, {name: value for name, value in node.items() if name != field})
        for field, least in (("inputs", 1), ("branches", 1)):
            items = node.get(field, [])
            for i in range(len(items) if len(items) > least else 0):
                yield _changed(scenario, node, {**node, field: items[:i] + items[i + 1 :]})


def _without(scenario: Scenario, node: dict[str, Any], replacement: str | None) -> Scenario:
    """Remove a node, connect its readers to its upstream node, and drop nodes that feed no output or store."""
    nodes = [_rewired(other, node["id"], replacement) for other in scenario["topology"] if other is not node]
    return _pruned({**scenario, "topology": nodes})


def _changed(scenario: Scenario, node: dict[str, Any], changed: dict[str, Any]) -> Scenario:
    return _pruned({**scenario, "topology": [changed if other is node else other for other in scenario["topology"]]})


def _rewired(node: dict[str, Any], old: str, new: str | None) -> dict[str, Any]:
    def renamed(reference: str) -> str | None:
        return new if reference.partition("#")[0] == old else reference

    node = copy.deepcopy(node)
    for field in ("from", "left", "right"):
        if field in node:
            node[field] = renamed(node[field])
    for part in node.get("inputs", []):
        part["from"] = renamed(part["from"])
    return node


def _pruned(scenario: Scenario) -> Scenario:
    nodes: list[dict[str, Any]] = []
    wanted: set[str] = set()
    for node in reversed(scenario["topology"]):
        if node["op"] == "to" or "store" in node or node["id"] in wanted:
            nodes.insert(0, node)
            references = [node.get(field) for field in ("from", "left", "right")]
            references += [part["from"] for part in node.get("inputs", [])]
            wanted |= {reference.partition("#")[0] for reference in references if reference}
    topics = {node["topic"] for node in nodes if node["op"] in SOURCES}
    entries = [e for e in scenario["input"] if "topic" not in e or e["topic"] in topics]
    return {**scenario, "topology": nodes, "input": entries}


def _plainer_inputs(scenario: Scenario) -> Iterator[Scenario]:
    entries = scenario["input"]
    if any("headers" in e for e in entries):
        yield {**scenario, "input": [{k: v for k, v in e.items() if k != "headers"} for e in entries]}
    times = [e["ts"] for e in entries if "ts" in e]
    if times and min(times) > 0:
        earliest = min(times)
        for shift in (earliest, earliest - 100, earliest - 1000):
            if shift > 0:
                yield {**scenario, "input": [{**e, "ts": e["ts"] - shift} if "ts" in e else e for e in entries]}
