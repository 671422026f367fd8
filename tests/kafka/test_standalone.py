"""An application on a standalone cluster: a master, two workers, and executors that are sent its module."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from headrace.dev.kafka_broker import DevBroker, free_port
from headrace.spark.runtime.java import find_java
from tests.cli.running import COMMAND
from tests.kafka.workspaces import OnKafka

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("processes"),
    pytest.mark.skipif("HEADRACE_STANDALONE" not in os.environ, reason="takes minutes: set HEADRACE_STANDALONE=1"),
]

SECONDS = 600  # a busy machine takes a minute for what an idle one does in ten seconds
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what is short-lived need not be compiled well
APPLICATION = """
from headrace import StreamsBuilder, serdes


def words_of(line):
    return line.split()


def build_topology():
    builder = StreamsBuilder()
    words = builder.stream("{lines}", value_serde=serdes.String).flat_map_values(words_of)
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="words")
    counts.to_stream().to("{counts}", value_serde=serdes.Long)
    return builder.build()
"""


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[None]:
    """Run a part of a standalone cluster, and end it with what it has started."""
    home = Path(pyspark.__path__[0])
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(find_java()),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
    }
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Run a cluster with two workers; give its address."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        started = daemon(tmp_path, "master", "org.apache.spark.deploy.master.Master", *here, "--port", str(port))
        stack.enter_context(started)
        for name in ("worker-1", "worker-2"):
            work = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / name), address)
            stack.enter_context(daemon(tmp_path, name, "org.apache.spark.deploy.worker.Worker", *here, *work))
        yield address


def test_the_word_count_goes_on_from_start_to_start(tmp_path: Path, kafka: DevBroker, master: str) -> None:
    workspace = OnKafka(tmp_path, kafka)
    workspace.create(workspace.lines, partitions=2)
    module = tmp_path / "cluster_words.py"
    module.write_text(APPLICATION.format(lines=workspace.lines, counts=workspace.counts), encoding="utf-8")
    state = tmp_path / "state at 100%"  # which must not be taken for an escape
    spark = {
        "spark.submit.pyFiles": str(module),
        "spark.hadoop.fs.defaultFS": "hdfs://127.0.0.1:1",  # as on a cluster whose own file system is another one
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
    }
    settings = [f"spark={json.dumps(spark)}", "statestore_cache_max_bytes=0"]
    command = [*COMMAND, "run", "cluster_words:build_topology", "--application-id", workspace.name, "--until-caught-up"]
    command += ["--bootstrap-servers", kafka.address, "--master", master, "--state-dir", str(state)]
    command += [part for setting in settings for part in ("--set", setting)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    for number in range(2):
        words = ((f"k{at}", f"w{at % 5} all", 1000 + at) for at in range(number * 50, number * 50 + 50))
        workspace.produce(workspace.lines, *words)
        subprocess.run(command, cwd=tmp_path, env=environment, timeout=SECONDS, check=True)

    workspace.wait_for_counts({"all": 100} | {f"w{number}": 20 for number in range(5)})
    assert sorted(path.name for path in (state / workspace.name).iterdir()) == ["checkpoint", "identity.json", "lock"]
