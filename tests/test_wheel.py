"""The wheel has everything that a user needs: it runs in an empty environment and folder, without the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("processes")]

WATCH = """
import os, sys

def watch(event, arguments, checkout={checkout!r}, log={log!r}):
    if event == "open" and isinstance(arguments[0], str) and arguments[0] != log:
        if os.path.realpath(arguments[0]).startswith(checkout):
            with open(log, "a") as file:
                file.write(arguments[0] + "\\n")

sys.addaudithook(watch)
"""
"""Runs at the start of every Python in the environment, Spark's workers too, and logs the checkout's files it opens."""

TOPOLOGY = """
import headrace
from headrace import StreamsBuilder
from headrace.testing import TopologyTestDriver

builder = StreamsBuilder()
builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2), ("a", 3)])
    print(headrace.__version__, driver.create_output_topic("out").read_key_values_to_dict())
"""


@dataclass(frozen=True)
class Installation:
    """The wheel in an environment of its own."""

    environment: Path
    folder: Path
    log: Path

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment in an empty folder and return what it prints."""
        foreign = ("PYTHON", "HEADRACE_", "SPARK_", "PYSPARK_", "COV", "VIRTUAL_ENV")
        done = subprocess.run(
            [self.environment / "bin" / program, *arguments],
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if not name.startswith(foreign)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files_of_the_checkout(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module", params=PYTHONS)
def installation(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    python = find_python(request.param)
    if python is None:
        pytest.skip(f"there is no Python {request.param}")
    place = tmp_path_factory.mktemp(f"python-{request.param}")
    installed = Installation(place / "environment", place / "empty", place / "opened.log")
    installed.folder.mkdir()
    try:
        install(wheel, python, installed.environment)
        [packages] = installed.environment.glob("lib/python3*/site-packages")
        watch = WATCH.format(checkout=f"{ROOT.resolve()}{os.sep}", log=str(installed.log))
        (packages / "sitecustomize.py").write_text(watch, encoding="utf-8")
        yield installed
    finally:
        shutil.rmtree(place, ignore_errors=True)  # an environment is 600 MB, and pytest would keep three


def find_python(version: str) -> str | None:
    """Return an interpreter of that version: this one, one on the PATH, or one that pyenv keeps."""
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, pyenv.glob(f"{version}.*/bin/python"))]
    return next((python for python in found if python and runs(python)), None)


def runs(python: str) -> bool:
    """Tell whether an interpreter starts: a shim of a version manager may only print that it does not."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def install(wheel: Path, python: str, environment: Path) -> None:
    """Make an environment and install the wheel with the locked versions of its dependencies."""
    locked = re.findall(r"^[^\s#].*?(?= \\$)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    constraints = wheel.with_name("constraints.txt")
    constraints.write_text("\n".join(locked), encoding="utf-8")
    inside = environment / "bin" / "python"
    if UV is not None:
        subprocess.run([UV, "venv", "--quiet", "--python", python, environment], check=True)
        command: list[str | Path] = [UV, "pip", "install", "--quiet", "--python", inside]
    else:
        subprocess.run([python, "-m", "venv", environment], check=True)
        command = [inside, "-m", "pip", "install", "--quiet"]
    subprocess.run([*command, "--constraint", constraints, wheel], check=True)


def test_wheel_holds_the_package_alone(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()

    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "headrace").rglob("*.py")}
    assert sources | {"headrace/py.typed"} <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"headrace"}


def test_wheel_runs_without_the_checkout(installation: Installation) -> None:
    version = installation.run("headrace", "--version").strip()

    assert "Usage: headrace" in installation.run("headrace", "--help")
    assert installation.run("python", "-c", TOPOLOGY).strip() == f"{version} {{'a': 2, 'b': 1}}"
    assert "words, " in installation.run("headrace", "demo", "word_count", "--records", "100", "--master", "local[1]")
    assert installation.files_of_the_checkout() == []
