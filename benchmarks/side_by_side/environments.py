"""Everything that peers need: virtual environments, the Java program, the jars of Spark's own Kafka source."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.side_by_side.processes import PeerError

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".headrace" / "peers"
JAVA_PROJECT = ROOT / "benchmarks" / "java" / "streams"
JAVA_PEER = ROOT / "build" / "peer"

SPARK_JARS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),  # for logins: required, but not used here
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><exclusions><exclusion>"
    "<groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
)
_POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>headrace</groupId>'
    "<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>{}</dependencies></project>"
)


def virtual_environment(name: str, packages: Sequence[str]) -> Path:
    """Return the Python of a peer's environment. Make the environment if it is missing or the versions have changed."""
    folder = ENVIRONMENTS / name
    python, made = folder / "bin" / "python", folder / "made-with.txt"
    wanted = "\n".join(packages)
    if made.exists() and made.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    uv = shutil.which("uv")
    if uv:
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
        _run(uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python), *packages)
    else:
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", *packages)
    made.write_text(wanted)
    return python


def build_java() -> None:
    """Compile the program for Kafka Streams unless its classes are newer than its sources."""
    compiled = JAVA_PEER / "classes" / "Peer.class"
    sources = [JAVA_PROJECT / "pom.xml", *JAVA_PROJECT.glob("src/main/java/*.java")]
    if compiled.exists() and all(source.stat().st_mtime <= compiled.stat().st_mtime for source in sources):
        return
    _run(_maven(), "--batch-mode", "--quiet", "process-classes", cwd=JAVA_PROJECT)
    compiled.touch()  # Maven does not touch files that have not changed


def fetch_spark_jars() -> str:
    """Return the jars with which plain PySpark reads Kafka, separated by commas. Fetch them if they are missing."""
    folder = ENVIRONMENTS / "spark-jars"
    jars = [folder / f"{name}-{version}.jar" for _, name, version in SPARK_JARS]
    if not all(jar.exists() for jar in jars):
        folder.mkdir(parents=True, exist_ok=True)
        # Without their dependencies, because Spark has all of them.
        dependencies = "".join(_DEPENDENCY.format(*jar) for jar in SPARK_JARS)
        (folder / "pom.xml").write_text(_POM.format(dependencies), encoding="utf-8")
        _run(_maven(), "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=.", cwd=folder)
    return ",".join(map(str, jars))


def _maven() -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise PeerError("there is no mvn on the PATH")
    return maven


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        told = [line.strip() for line in done.stdout.splitlines() if "error" in line.lower()] or [done.stdout.strip()]
        raise PeerError(f"'{Path(command[0]).name}' could not set up the peer: {told[0][:300]}")
