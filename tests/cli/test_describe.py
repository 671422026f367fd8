"""`headrace describe`.

Tests: headrace.cli.describe, headrace.cli.loading
"""

import itertools
import json
import shutil
from pathlib import Path

import pytest

from headrace import StreamsBuilder
from tests.cli.running import COMMAND, Outcome, headrace, run

names = (f"app_{number}" for number in itertools.count())

BUILDER = """
from headrace import StreamsBuilder
builder = StreamsBuilder()
builder.stream("in", name="read").to("out", name="write")
topology = builder.build()
def build():
    return topology
def start():
    return builder
class Apps:
    orders = topology
"""


def module(code: str) -> str:
    """Write a module that was never imported before; return its name."""
    name = next(names)
    Path(f"{name}.py").write_text(code)
    return name


def expected() -> str:
    builder = StreamsBuilder()
    builder.stream("in", name="read").to("out", name="write")
    return str(builder.build().describe())


@pytest.mark.parametrize("app", ["builder", "topology", "build", "start", "Apps.orders"])
def test_describe_accepts_everything_that_gives_a_topology(app: str) -> None:
    assert headrace("describe", f"{module(BUILDER)}:{app}") == Outcome(0, expected().rstrip() + "\n", "")


def test_the_real_command_finds_a_module_of_the_working_directory() -> None:
    assert run("describe", f"{module(BUILDER)}:build").output == expected().rstrip() + "\n"


def test_json_is_json() -> None:
    printed = headrace("describe", f"{module(BUILDER)}:build", "--format", "json").output

    assert [node["name"] for node in json.loads(printed)["sub_topologies"][0]["nodes"]] == ["read", "write"]


def test_mermaid_is_a_flowchart() -> None:
    assert headrace("describe", f"{module(BUILDER)}:build", "-f", "mermaid").output.startswith("flowchart TD\n")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_svg_is_a_drawing() -> None:
    printed = headrace("describe", f"{module(BUILDER)}:build", "--format", "svg").output

    assert "<svg" in printed
    assert "read" in printed


def test_svg_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    outcome = headrace("describe", f"{module(BUILDER)}:build", "--format", "svg")

    assert outcome.status == 1
    assert "Install Graphviz" in outcome.errors


def error_of(app: str) -> str:
    outcome = headrace("describe", app)
    assert outcome.status == 1
    assert outcome.output == ""
    assert outcome.errors.startswith("error: ")
    assert outcome.errors.count("\n") == 1
    return outcome.errors.removeprefix("error: ").rstrip()


@pytest.mark.parametrize("app", ["", "word_count", ":topology", "word_count:"])
def test_a_name_is_a_module_and_an_app(app: str) -> None:
    assert error_of(app) == f"expected MODULE:APP, such as word_count:topology, got '{app}'"


def test_a_file_is_not_a_module() -> None:
    assert error_of("./apps/word_count.py:build") == (
        "'./apps/word_count.py:build' names a file, not a module. Did you mean 'apps.word_count:build'?"
    )


def test_a_missing_module_is_an_error(folder: Path) -> None:
    assert error_of("nowhere:app") == (f"there is no module 'nowhere' in '{folder}' or among the installed packages")
    assert "there is no module 'nowhere'" in error_of("nowhere.deep:app")


def test_a_missing_import_of_a_module_is_an_error(folder: Path) -> None:
    name = module("import nowhere_to_be_found")

    assert error_of(f"{name}:app") == (
        f"module '{name}' cannot be imported: ModuleNotFoundError: No module named 'nowhere_to_be_found' "
        f"({folder / name}.py, line 1)"
    )


def test_a_module_that_fails(folder: Path) -> None:
    name = module("a = 1\nb = a / 0\n")

    assert error_of(f"{name}:app") == (
        f"module '{name}' cannot be imported: ZeroDivisionError: division by zero ({folder / name}.py, line 2)"
    )


def test_a_module_with_a_mistake_in_it(folder: Path) -> None:
    name = module("a = 1\nb = (\n")

    assert f"module '{name}' cannot be imported: SyntaxError: '(' was never closed ({folder / name}.py, line 2)" in (
        error_of(f"{name}:app")
    )


def test_a_module_whose_topology_is_wrong() -> None:
    name = module("from headrace import Topology\nTopology().add_sink('out', 'topic', 'nobody')\n")

    assert "nobody" in error_of(f"{name}:app")


def test_a_misspelt_name_gets_a_suggestion() -> None:
    name = module(BUILDER)

    assert error_of(f"{name}:toplogy") == f"module '{name}' has no 'toplogy'. Did you mean 'topology'?"
    assert error_of(f"{name}:Apps.order") == f"the type in '{name}:Apps.order' has no 'order'. Did you mean 'orders'?"


def test_an_unknown_name_lists_the_topologies() -> None:
    name = module(BUILDER)
    empty = module("")

    assert error_of(f"{name}:xyz") == f"module '{name}' has no 'xyz'. Topologies in it: builder, topology"
    assert error_of(f"{empty}:xyz") == f"module '{empty}' has no 'xyz'. Topologies in it: none"


def test_an_object_that_is_no_topology_is_an_error() -> None:
    name = module("port = 8080\ndef make():\n    return 'text'\n")
    wanted = "expected a Topology, a StreamsBuilder, a Streams, or a function that returns one"

    assert error_of(f"{name}:port") == f"'{name}:port': {wanted}, got int"
    assert error_of(f"{name}:make") == f"'{name}:make': {wanted}, got a function that returned str"


def test_a_function_with_arguments_is_an_error() -> None:
    name = module("def make(topic, size=1):\n    pass\n")

    assert (
        error_of(f"{name}:make")
        == f"'{name}:make': expected a function without arguments, got one with (topic, size=1)"
    )


def test_a_function_that_fails(folder: Path) -> None:
    name = module("def make():\n    return {}['missing']\n")

    assert error_of(f"{name}:make") == f"'{name}:make' failed: KeyError: 'missing' ({folder / name}.py, line 2)"


def test_an_unknown_format_is_a_usage_error() -> None:
    outcome = run("describe", f"{module(BUILDER)}:build", "--format", "png", command=COMMAND)

    assert outcome.status == 2
    assert "png" in outcome.errors
