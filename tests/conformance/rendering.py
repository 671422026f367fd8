"""Shows scenarios and the difference between two results in a readable form."""

import difflib
import json
from typing import Any

from tests.conformance.running import Entry, Result


def render_topology(scenario: dict[str, Any]) -> list[str]:
    return [json.dumps(node, ensure_ascii=False) for node in scenario["topology"]]


def render_run(scenario: dict[str, Any], result: Result) -> list[str]:
    """List each input entry with what came out of it, then the stores."""
    lines = []
    for step, entry in enumerate(scenario["input"]):
        lines.append(f"{step:3} {_input_text(entry)}")
        for topic, records in result.output.items():
            lines += [f"      -> {topic}: {_record_text(r)}" for r in records if r["step"] == step]
    for name, entries in result.stores.items():
        lines.append(f"store {name}:")
        lines += [f"      {_record_text(entry)}" for entry in entries]
    return lines


def render_difference(scenario: dict[str, Any], expected: Result, actual: Result) -> str:
    """Mark with - what only Kafka Streams gives, with + what only Headrace gives."""
    lines = difflib.unified_diff(
        render_run(scenario, expected),
        render_run(scenario, actual),
        fromfile="Kafka Streams",
        tofile="Headrace",
        n=6,
        lineterm="",
    )
    return "\n".join([scenario["id"], *render_topology(scenario), *lines])


def _input_text(entry: Entry) -> str:
    if "advance_wall_clock" in entry:
        return f"advance the wall clock by {entry['advance_wall_clock']}"
    return f"{entry['topic']}: {_record_text(entry)}"


def _record_text(record: Entry) -> str:
    key, value = ("null" if text is None else repr(text) for text in (record["key"], record["value"]))
    timestamp = f" @{record['ts']}" if "ts" in record else ""
    headers = "".join(f" #{name}={text}" for name, text in record.get("headers", []))
    return f"{key}={value}{timestamp}{headers}"
