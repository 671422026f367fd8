"""Write `docs/operators/`: one page per family of operators, from the docstrings of the public classes.

    python -m tools.build_docs

`doc_pages.py` says which names are on which page.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import conftest
import headrace
from headrace import serdes
from headrace.state import key_value, session, versioned, window
from tools.doc_pages import PAGES, Page

FOLDER = Path(__file__).parents[1] / "docs" / "operators"
WIDTH = 110
_MODULE = r"\b[a-z_]+\.(?=[A-Z])"
"""The module before the name of a class, which pages leave out."""
_IMPORTS = (
    "from typing import Any",
    "",
    "from headrace import *",
    "from headrace import serdes",
    "from headrace.testing import TopologyTestDriver",
)


def pages() -> dict[str, str]:
    """Return the text of every page, by file name."""
    return {"index.md": _index(), **{f"{page.name}.md": _page(page) for page in PAGES}}


def documented() -> set[str]:
    """Return every name that is on a page, such as `KStream` and `KStream.filter`."""
    return {target.removesuffix("()") for page in PAGES for names in page.sections.values() for target in names.split()}


def resolve(name: str) -> Any:
    """Return the class, method or function of a name."""
    first, *rest = name.split(".")
    found: Any = None
    for module in (headrace, serdes, key_value, window, session, versioned):
        found = getattr(module, first, None)
        if found is not None:
            break
    for part in rest:
        found = inspect.getattr_static(found, part)
    if found is None:
        raise LookupError(f"there is no '{name}'. Check tools/doc_pages.py")
    return found


def _index() -> str:
    lines = [
        "# Operators",
        "",
        "Every step, from the docstrings. The examples use these imports and this function:",
        "",
        "```python",
        *_IMPORTS,
        "",
        "",
        inspect.getsource(conftest.run).rstrip(),
        "```",
        "",
        "A record with four values begins with its topic. Results are (key, value, timestamp).",
    ]
    for page in PAGES:
        lines += ["", f"## [{page.title}]({page.name}.md)", ""]
        for names in page.sections.values():
            links = [f"[`{name}`]({page.name}.md#{anchor(name)})" for name in names.replace("()", "").split()]
            lines.append(f"- {', '.join(links)}")
    return "\n".join(lines) + "\n"


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _page(page: Page) -> str:
    parts = [f"# {page.title}", page.intro, "How to read the examples: [operators](index.md)."]
    for heading, names in page.sections.items():
        parts.append(f"## {heading}")
        for target in names.split():
            parts.extend(_entry(target))
    return "\n\n".join(parts) + "\n"


def _entry(target: str) -> Iterator[str]:
    name = target.removesuffix("()")
    found = resolve(name)
    yield f"### {name}"
    if not inspect.isclass(found) or target.endswith("()"):
        yield f"```text\n{_signature(name, found)}\n```"
    yield from _markdown(inspect.getdoc(_function(found)) or "")


def _function(found: Any) -> Any:
    if isinstance(found, staticmethod | classmethod):
        return found.__func__
    return found.fget if isinstance(found, property) else found


def _signature(name: str, found: Any) -> str:
    if isinstance(found, property):
        return f"{name}: {_function(found).__annotations__['return']}"
    signature = inspect.signature(_function(found))
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name not in ("self", "cls")]
    returns = signature.return_annotation
    if inspect.isclass(found) or returns is signature.empty:
        result = ""
    else:
        text = returns if isinstance(returns, str) else inspect.formatannotation(returns)
        result = f" -> {re.sub(_MODULE, '', text)}"
    line = f"{name}{inspect.Signature(parameters)}{result}"
    if len(line) <= WIDTH:
        return line
    inner = str(inspect.Signature(parameters))[1:-1]
    return f"{name}(\n    {_wrapped(inner)}\n){result}"


def _wrapped(parameters: str) -> str:
    """Break a list of parameters into lines."""
    lines, line = [], ""
    for parameter in parameters.split(", "):
        longer = f"{line}, {parameter}" if line else parameter
        if len(longer) > WIDTH - 4:
            lines.append(line + ",")
            longer = parameter
        line = longer
    return "\n    ".join([*lines, line])


def _markdown(docstring: str) -> Iterator[str]:
    """Turn the paragraphs of a docstring into Markdown: examples go into code blocks."""
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        if not paragraph.startswith(">>>"):
            yield paragraph.replace("``", "`")
        else:
            # The empty line ends the expected output for doctest, which reads these pages as well.
            yield f"```python\n{paragraph}\n\n```"


def main() -> None:
    """Write the pages, and remove pages that are no longer listed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"wrote {len(made)} pages to {FOLDER.relative_to(FOLDER.parents[1])}")


if __name__ == "__main__":
    main()
