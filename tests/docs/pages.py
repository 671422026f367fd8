"""The pages of the documentation, taken apart: code with the output shown for it, headings, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """A block of Python that is not a session with `>>>`, and the text block right after it, if there is one."""

    code: str
    output: str | None


def name_of(page: Path) -> str:
    """Return a page's path as tests show it."""
    return page.relative_to(ROOT).as_posix()


def scripts(text: str) -> Iterator[Script]:
    """Walk a page's scripts. Sessions are left to doctest, which pytest runs on every page."""
    blocks = list(_BLOCK.finditer(text))
    for block, following in zip_longest(blocks, blocks[1:]):
        language, code = block.groups()
        if language != "python" or code.startswith(">>>"):
            continue
        output = None
        if following is not None and following[1] == "text" and not text[block.end() : following.start()].strip():
            output = following[2]
        yield Script(code, output)


def links(text: str) -> list[str]:
    """Return where a page's links to other pages and headings lead."""
    return _LINK.findall(_BLOCK.sub("", text))


def headings(text: str) -> list[str]:
    """Return a page's headings, without marks and links."""
    return [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading) for heading in _HEADING.findall(_BLOCK.sub("", text))]
