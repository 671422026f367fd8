"""The operator pages match the docstrings, and nothing public is left out.

Tests: tools.build_docs, tools.doc_pages
"""

import dataclasses
import inspect
import re
from typing import Any

import pytest

import headrace
from headrace import serdes, testing
from tests.docs.pages import PAGES
from tools.build_docs import FOLDER, documented, pages, resolve
from tools.doc_pages import INTERNAL

# Whose calls add up to a topology: each has an example.
DSL = [
    headrace.StreamsBuilder,
    headrace.KStream,
    headrace.KTable,
    headrace.GlobalKTable,
    headrace.GroupedStream,
    headrace.GroupedTable,
    headrace.CogroupedStream,
    headrace.TimeWindowedStream,
    headrace.SessionWindowedStream,
    headrace.Materialized,
    headrace.Suppressed,
    headrace.EmitStrategy,
    headrace.Stores,
]


def calls_of(kind: type) -> list[str]:
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    return [
        f"{kind.__name__}.{name}"
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and name not in fields
        and (inspect.isfunction(member) or isinstance(member, staticmethod | classmethod | property))
        and f"{kind.__name__}.{name}" not in INTERNAL
    ]


def test_pages_are_those_of_the_docstrings() -> None:
    committed = {page.name: page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")}

    stale = [name for name, text in pages().items() if committed.get(name) != text]

    assert stale == [], "docs/operators does not match the docstrings: run make docs"
    assert set(committed) == set(pages()), "docs/operators has a page too many: run make docs"


@pytest.mark.parametrize("kind", DSL, ids=lambda kind: kind.__name__)
def test_every_call_of_the_dsl_is_on_a_page_with_an_example(kind: type) -> None:
    names = [kind.__name__, *calls_of(kind)]

    assert [name for name in names if name not in documented()] == [], "add it to tools/doc_pages.py"
    assert [name for name in names if ">>>" not in (inspect.getdoc(resolve(name)) or "")] == []


def test_every_public_name_is_documented() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    words = set(re.findall(r"\w+", text))

    exported = {*headrace.__all__, *testing.__all__, *_without_classes(serdes)}

    assert sorted(exported - words) == []


def test_what_is_documented_is_exported() -> None:
    first = {name.partition(".")[0] for name in documented()}

    stores = {"KeyValueStore", "WindowStore", "SessionStore", "VersionedStore"}  # seen, but never made, by users
    assert sorted(first - set(headrace.__all__) - stores) == []


def _without_classes(module: Any) -> list[str]:
    """Return what users of the serdes write: `Long`, not the class `LongSerde` behind it."""
    inside = {"as_serde"}
    return [name for name in module.__all__ if (not name.endswith("Serde") or name == "Serde") and name not in inside]
