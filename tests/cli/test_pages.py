"""The commands on the pages of the documentation print what the pages say."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import COMMAND

DOCS = Path(__file__).parents[2] / "docs"
_FILE = re.compile(r"^`(\S+\.py)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAID = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.mark.parametrize("page", ["topics.md", "command-line.md"])
def test_commands_print_what_the_page_says(page: str, folder: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, code in _FILE.findall(text):
        (folder / name).write_text(code, encoding="utf-8")
    path = os.pathsep.join([str(Path(COMMAND[0]).parent), os.environ["PATH"]])

    said = [pair for block in BLOCK.findall(text) for pair in SAID.findall(block)]
    assert said
    for command, expected in said:
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert (command, done.stdout) == (command, expected)


def test_every_command_is_on_the_page() -> None:
    from headrace.cli import app
    from headrace.cli.topics import app as topics

    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    commands = [command.name for command in app.registered_commands]
    assert [name for name in commands if f"`headrace {name} " not in text] == []
    names = [command.name or command.callback.__name__ for command in topics.registered_commands if command.callback]
    assert [name for name in names if f"`{name}`" not in text and f"topics {name}`" not in text] == []
