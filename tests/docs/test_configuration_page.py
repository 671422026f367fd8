"""The configuration page lists every setting with its default, and the names of Kafka Streams that are accepted."""

import logging
import re
from typing import Any

import pytest

from headrace import StreamsConfig
from headrace.properties import NO_EFFECT, NO_EFFECT_PREFIXES, OLDER_NAMES
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """Return the cells of a section's first table, without the head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


def shown(default: Any) -> str:
    if isinstance(default, int):
        return f"{default:,}"
    return default.__name__ if callable(default) and hasattr(default, "__name__") else str(default)


SETTINGS = {code(row[0])[0]: row for row in rows("The settings")}


def test_the_table_has_every_setting_in_order() -> None:
    assert list(SETTINGS) == list(StreamsConfig.model_fields)


@pytest.mark.parametrize("name", [name for name in StreamsConfig.model_fields if name in SETTINGS])
def test_the_table_has_the_default(name: str) -> None:
    told = SETTINGS[name][1]

    if StreamsConfig.model_fields[name].is_required():
        assert told == "must be given"
    else:
        assert code(told)[0] == shown(getattr(StreamsConfig(application_id="app"), name))


def test_names_of_kafka_streams_are_taken() -> None:
    told = {name: SETTINGS[name][3] for name in SETTINGS}

    wrong = [name for name, cell in told.items() if cell and "…" not in cell and code(cell) != [name.replace("_", ".")]]

    assert wrong == []


def test_older_names_are_told() -> None:
    assert sorted(set(OLDER_NAMES) - set(code(section("Kafka Streams' names")))) == []


def test_what_has_no_effect_is_told(caplog: pytest.LogCaptureFixture) -> None:
    told = {name for row in rows("Settings of Kafka Streams without effect") for name in code(row[0])}

    assert told == {*NO_EFFECT, *(f"{prefix}…" for prefix in NO_EFFECT_PREFIXES)}
    with caplog.at_level(logging.WARNING, logger="headrace"):
        given: dict[str, Any] = {"application.id": "app"} | {name.replace("…", "x"): "x" for name in told}
        assert StreamsConfig.from_properties(given).model_fields_set == {"application_id"}


def test_every_setting_that_does_something_is_explained() -> None:
    explained = set(code(" ".join(re.findall(r"^\*\*(.*?)\*\*", section("What each one does"), re.MULTILINE))))

    without_effect = {name for name, row in SETTINGS.items() if re.search("no effect|changes nothing", row[4])}

    assert explained == set(SETTINGS) - without_effect
