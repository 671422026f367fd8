"""The README's word count does what the README says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_word_count_prints_what_the_readme_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    printed = re.search(r"It prints `(.*)`\.", text)
    assert code is not None
    assert printed is not None

    exec(code[1], {})

    assert capsys.readouterr().out.strip() == printed[1]


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text(encoding="utf-8"))

    assert [link for link in links if not (README.parent / link).exists()] == []
