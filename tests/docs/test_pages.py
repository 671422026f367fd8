"""The examples of every page run, its links lead somewhere, and the files it names exist.

Sessions with `>>>` are run by pytest's doctest plugin, which collects `docs/` itself.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT, headings, links, name_of, scripts
from tools.build_docs import anchor

STARTS = (ROOT, ROOT / "headrace")
"""Where the path of a file that a page names may start."""


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, fragment = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not fragment or fragment in map(anchor, headings(target.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_print_what_the_page_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": page.stem}
    for script in scripts(page.read_text(encoding="utf-8")):
        exec(compile(script.code, name_of(page), "exec"), namespace)

        printed = capsys.readouterr().out
        if script.output is not None:
            assert printed == script.output

    for name, test in list(namespace.items()):
        if name.startswith("test_"):
            test()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert [link for link in links(page.read_text(encoding="utf-8")) if not leads_somewhere(page, link)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_named_files_exist(page: Path) -> None:
    named = set(re.findall(r"`(?:headrace/)?([\w.]+/[\w./]+\.py)`", page.read_text(encoding="utf-8")))
    ours = {path for path in named if any((start / path.partition("/")[0]).is_dir() for start in STARTS)}

    assert {path for path in ours if not any((start / path).exists() for start in STARTS)} == set()


def test_every_page_is_in_the_table_of_contents() -> None:
    index = ROOT / "docs" / "index.md"

    linked = {(index.parent / link).resolve() for link in links(index.read_text(encoding="utf-8"))}

    assert [name_of(page) for page in PAGES if page not in {*linked, index, ROOT / "README.md"}] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_session_ends_with_an_empty_line(page: Path) -> None:
    """Without it doctest takes the closing fence for output."""
    lines = page.read_text(encoding="utf-8").splitlines()
    sessions = [number for number, line in enumerate(lines) if line.startswith(">>>")]

    for number in sessions:
        fence = lines.index("```", number)
        assert lines[fence - 1] == "", f"{name_of(page)}, line {fence}"
