"""The jars of a Kafka broker, downloaded once from Maven Central with Maven or with the Ivy inside PySpark."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from headrace.errors import HeadraceError

VERSION = "4.3.1"
JARS = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.kafka", "kafka-tools", VERSION),
    ("org.slf4j", "slf4j-simple", "1.7.36"),
)
_TIMEOUT = 1800  # seconds; 50 MB over a slow line


def jars_folder() -> Path:
    """Return the folder for the jars, whether it exists or not."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return cache / "headrace" / f"kafka-{VERSION}"


def fetch_jars(java: Path) -> Path:
    """Return the folder of the jars; download them if it is missing."""
    folder = jars_folder()
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as draft:
        _fetch(Path(draft), java)
        try:
            (Path(draft) / "jars").rename(folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
    return folder


def _fetch(draft: Path, java: Path) -> None:
    maven = shutil.which("mvn")
    command = _maven(draft, maven) if maven else _ivy(draft, java)
    tool = "mvn" if maven else "Ivy"
    failed = f"cannot download the jars of Kafka {VERSION} from Maven Central with {tool}"
    hint = "The first start needs network access"
    try:
        done = subprocess.run(
            command,
            cwd=draft,
            env={**os.environ, "JAVA_HOME": str(java.parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HeadraceError(f"{failed} within {_TIMEOUT} s. {hint}") from None
    missing = [name for _, name, version in JARS if not (draft / "jars" / f"{name}-{version}.jar").is_file()]
    if done.returncode or missing:
        reason = _reason(done.stdout) or f"{', '.join(missing)} are missing"
        raise HeadraceError(f"{failed}: {reason}. {hint}")


def _reason(printed: str) -> str:
    """Return the first line that reports an error."""
    marks = ("[ERROR]", "ERROR:", "Server access error", "not found", "Exception")
    return next((line.strip(": \t") for line in printed.splitlines() if any(mark in line for mark in marks)), "")


def _maven(draft: Path, maven: str) -> list[str]:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        for group, name, version in JARS
    )
    (draft / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>headrace</groupId>'
        "<artifactId>dev-broker</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>",
        encoding="utf-8",
    )
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={draft / 'jars'}"]
    return [maven, "--batch-mode", "--quiet", "dependency:copy-dependencies", *options]


def _ivy(draft: Path, java: Path) -> list[str]:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise HeadraceError(
            f"cannot download the jars of Kafka {VERSION}: neither mvn nor PySpark is installed. Install one of them"
        )
    libraries = Path(spark.origin).parent / "jars"
    tools = [str(jar) for pattern in ("ivy-*.jar", "commons-cli-*.jar") for jar in libraries.glob(pattern)]
    dependencies = "".join(
        f'<dependency org="{group}" name="{name}" rev="{version}" conf="default->default"/>'
        for group, name, version in JARS
    )
    (draft / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="headrace" module="dev-broker"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    start = [str(java), "-cp", os.pathsep.join(tools), "org.apache.ivy.Main", "-warn", "-ivy", str(draft / "ivy.xml")]
    pattern = f"{draft / 'jars'}/[artifact]-[revision](-[classifier]).[ext]"
    return [*start, "-cache", str(draft / "ivy"), "-types", "jar", "bundle", "-retrieve", pattern]
