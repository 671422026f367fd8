"""Compare Headrace with Kafka Streams on random scenarios.

    python -m tools.fuzz --seed 7 --count 25 [--family session] [--restart]

Scenarios with a difference are made small, printed, and written to conformance/failures.jsonl in the form of the
recorded vectors.
"""

import argparse
import collections
import json
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance import generate
from tests.conformance.rendering import render_difference, render_run, render_topology
from tests.conformance.running import Result, run
from tests.conformance.vectors import recorded_result
from tools.minimize import minimize
from tools.oracle import CONFORMANCE, Oracle, OracleError, build_oracle

FAILURES = CONFORMANCE / "failures.jsonl"

Scenario = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """A scenario with the oracle's answer, and how Headrace differs."""

    answer: Scenario
    kind: str
    text: str


def compare(answer: Scenario, restart: bool) -> Difference | None:
    """Run an answered scenario on Headrace; return None if the result is the same."""
    expected = recorded_result(answer)
    try:
        actual = run(answer, restart_before={len(answer["input"]) // 2} if restart else ())
    except Exception as error:
        lines = [answer["id"], *render_topology(answer), *render_run(answer, expected), traceback.format_exc()]
        return Difference(answer, type(error).__name__, "\n".join(lines))
    if actual == expected:
        return None
    return Difference(answer, _kind(expected, actual), render_difference(answer, expected, actual))


def _kind(expected: Result, actual: Result) -> str:
    return "output" if actual.output != expected.output else "stores"


def smallest(oracle: Oracle, difference: Difference, restart: bool) -> Difference:
    """Make the scenario small. The kind of difference stays, so that one bug does not hide behind another."""
    found = difference

    def still_fails(scenario: Scenario) -> bool:
        nonlocal found
        answer = oracle.ask(scenario)
        candidate = None if "error" in answer else compare(answer, restart)
        if candidate is None or candidate.kind != difference.kind:
            return False
        found = candidate
        return True

    minimize(difference.answer, still_fails)
    return found


def scenarios(seed: int, count: int, families: list[str]) -> Iterator[Scenario]:
    for family in families:
        for index in range(count):
            yield generate.scenario(seed, family, index)


def fuzz(oracle: Oracle, options: argparse.Namespace) -> int:
    """Run all scenarios, then report; return the number of differences."""
    families = options.family or list(generate.FAMILIES)
    ran: collections.Counter[str] = collections.Counter()
    refused = 0
    differences: dict[str, list[Difference]] = {family: [] for family in families}
    for answer in oracle.answers(scenarios(options.seed, options.count, families)):
        family = answer["id"].split("-")[0]
        ran[family] += 1
        if "error" in answer:
            refused += 1
            print(f"{answer['id']}: Kafka Streams refuses it: {answer['error']}")
        elif difference := compare(answer, options.restart):
            differences[family].append(difference)
            print(f"{answer['id']}: differs ({difference.kind})")
        if ran[family] == options.count:
            print(f"{family:20}{ran[family]:6} scenarios {len(differences[family]):5} differences", flush=True)
    found = _one_of_each_first(differences)
    _report(oracle, found, options)
    print(f"{sum(ran.values())} scenarios, {len(found)} differences" + (f", {refused} refused" if refused else ""))
    return len(found)


def _one_of_each_first(differences: dict[str, list[Difference]]) -> list[Difference]:
    """Mix families and kinds, so that the few differences that are made small are not all the same bug."""
    ranked = []
    for family, found in differences.items():
        seen: collections.Counter[str] = collections.Counter()
        for difference in found:
            ranked.append((seen[difference.kind], family, difference))
            seen[difference.kind] += 1
    return [difference for _, _, difference in sorted(ranked, key=lambda entry: entry[:2])]


def _report(oracle: Oracle, found: list[Difference], options: argparse.Namespace) -> None:
    if not found:
        FAILURES.unlink(missing_ok=True)
        return
    with FAILURES.open("w", encoding="utf-8") as file:
        for i, difference in enumerate(found):
            if i < options.minimize:
                difference = smallest(oracle, difference, options.restart)
                print(f"\n{difference.text}\n\n{json.dumps(difference.answer, ensure_ascii=False)}\n", flush=True)
            file.write(json.dumps(difference.answer, ensure_ascii=False) + "\n")
    print(f"failing scenarios are in {FAILURES.relative_to(CONFORMANCE.parent)}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare Headrace with Kafka Streams on random scenarios.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--count", type=int, default=25, help="scenarios per family")
    parser.add_argument("--family", choices=sorted(generate.FAMILIES), action="append", help="default: all families")
    parser.add_argument("--restart", action="store_true", help="rebuild the tasks from their changes halfway")
    parser.add_argument("--minimize", type=int, default=5, metavar="N", help="make the first N differences small")
    options = parser.parse_args()
    try:
        build_oracle()
        with Oracle() as oracle:
            return 1 if fuzz(oracle, options) else 0
    except OracleError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
