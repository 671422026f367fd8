"""The recorded scenarios, each with the output of Kafka Streams 4.3.1."""

import json
from pathlib import Path
from typing import Any

from tests.conformance.running import Result

VECTORS = Path(__file__).parents[2] / "conformance" / "vectors"


def recorded_scenarios() -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in sorted(VECTORS.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").split("\n")
        if line
    ]


def recorded_result(scenario: dict[str, Any]) -> Result:
    return Result(scenario["output"], scenario["stores"])
