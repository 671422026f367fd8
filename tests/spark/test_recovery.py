"""An application that is killed at any named point, as a whole or in part, has the output of an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import JoinWindows, StreamsBuilder, Topology, serdes
from headrace.engine.crash import POINTS
from tests.spark.applications import Workspace, wait_for
from tools.chaos import IN_WORKERS, Round, end_with_rest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("processes")]


def test_killed_at_every_named_point_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    kills, problems = Round("two-levels", tmp_path, random.Random(5), records=900).run(POINTS)

    assert problems == []
    assert sorted(kills) == sorted(POINTS)


def test_workers_that_die_are_replaced_and_lose_and_double_nothing(tmp_path: Path) -> None:
    chaos = Round("windowed", tmp_path, random.Random(6), records=900)
    environment = dict(os.environ)
    environment["HEADRACE_CRASH"] = " ".join(f"{point}@2,5:{tmp_path / point}" for point in IN_WORKERS)

    assert chaos.run_undisturbed(environment) == []

    assert {point: (tmp_path / point).stat().st_size >= 5 for point in IN_WORKERS} == dict.fromkeys(IN_WORKERS, True)


CLUSTER = """
import sys
from headrace import StreamThreadExceptionResponse
from tests.spark.applications import Workspace
from tests.spark.test_recovery import counting_and_joining
from pathlib import Path

if __name__ == "__main__":
    workspace = Workspace(Path(sys.argv[1]), {"master": "local-cluster[2,1,1024]", "max_records_per_batch": 100})
    app = workspace.streams(counting_and_joining())
    app.set_uncaught_exception_handler(lambda error: StreamThreadExceptionResponse.REPLACE_THREAD)
    app.run(until_caught_up=True)
"""


def counting_and_joining() -> Topology:
    builder = StreamsBuilder()
    words = builder.stream("lines", value_serde=serdes.String).flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="counts")
    counts.to_stream().to("counts", value_serde=serdes.Long)
    left, right = (builder.stream(topic, value_serde=serdes.String) for topic in ("left", "right"))
    left.join(right, lambda one, other: f"{one}+{other}", window=JoinWindows(5, grace=1000)).to(
        "pairs", value_serde=serdes.String
    )
    return builder.build()


def start(folder: Path) -> subprocess.Popen[bytes]:
    script = folder / "cluster.py"
    script.write_text(CLUSTER, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen([sys.executable, str(script), str(folder)], env=environment, start_new_session=True)


def executors(group: int) -> list[int]:
    """Return the process ids of the executors of a process group."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in command and os.getpgid(int(process.name)) == group:
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return found


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the executor in /proc")
def test_counts_and_a_join_go_on_when_an_executor_is_killed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.create("lines", "counts", "left", "right", "pairs", partitions=2)
    workspace.produce("lines", *((f"k{number}", f"w{number % 7} all", number) for number in range(1000)))
    workspace.produce("left", *((f"k{number % 10}", f"l{number}", number * 10) for number in range(100)))
    workspace.produce("right", *((f"k{number % 10}", f"r{number}", number * 10 + 1) for number in range(100)))

    process = start(tmp_path)
    try:
        wait_for(lambda: bool(workspace.read("counts", serdes.Long)), "the first output")
        os.kill(executors(process.pid)[0], signal.SIGKILL)
        assert process.wait(300) == 0
    finally:
        end_with_rest(process)

    by_word: dict[str, list[int]] = {}
    for word, count, _ in workspace.read("counts", serdes.Long):
        by_word.setdefault(word, []).append(count)
    assert by_word["all"] == list(range(1, 1001))
    assert all(counts == list(range(1, len(counts) + 1)) for counts in by_word.values())
    assert sorted(value for _, value, _ in workspace.read("pairs")) == sorted(f"l{n}+r{n}" for n in range(100))
