"""`headrace/application`: an application that seemed to be dead wakes up after another one has taken its place."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace import serdes
from headrace.dev.kafka_broker import DevBroker
from tests.kafka.naming import unique
from tests.spark.applications import Workspace, wait_for
from tools.chaos import end_with_rest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

SCRIPT = """
import sys, time
from pathlib import Path
from headrace import Streams, StreamsBuilder, StreamsConfig, serdes

address, name, folder, gate = sys.argv[1:]

def wait(word, count):
    if word == "wait":
        Path(gate, "reached").touch()
        while not Path(gate, "open").exists():
            time.sleep(0.02)

builder = StreamsBuilder()
words = builder.stream(f"{name}-words", value_serde=serdes.String)
counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="counts")
counts.to_stream().peek(wait)
by_first = counts.group_by(lambda word, count: (word[0], count), value_serde=serdes.Long)
sums = by_first.reduce(lambda total, count: total + count, lambda total, count: total - count, store="sums")
sums.to_stream().to(f"{name}-sums", value_serde=serdes.Long)
config = StreamsConfig(
    application_id=name, bootstrap_servers=address, state_dir=folder, max_records_per_batch=10,
    statestore_cache_max_bytes=0, commit_interval_ms=10,
)
Streams(builder.build(), config).run(until_caught_up=True)
"""


class Machine:
    """An application on a machine of its own, which stands still at the word "wait"."""

    def __init__(self, workspace: Workspace, gate: Path) -> None:
        gate.mkdir()
        self._gate, self._errors = gate, gate / "errors"
        name = workspace.config.application_id
        (workspace.folder / name / "lock").unlink(missing_ok=True)  # another's, of whom nobody knows here
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    SCRIPT,
                    workspace.config.bootstrap_servers,
                    name,
                    str(workspace.folder),
                    str(gate),
                ],
                env={**os.environ, "HEADRACE_BOOT_ID": gate.name},
                stderr=errors,
                start_new_session=True,
            )

    def wait_at_gate(self) -> None:
        """Wait until it stands still."""
        wait_for(lambda: (self._gate / "reached").exists() or self.process.poll() is not None, "the gate")
        assert self.process.poll() is None, self.errors()

    def end(self) -> int:
        """Let it go on; return the status with which it ends."""
        (self._gate / "open").touch()
        return self.process.wait(300)

    def errors(self) -> str:
        """Return what it has said."""
        return self._errors.read_text(encoding="utf-8")


@contextmanager
def machine(workspace: Workspace, name: str) -> Iterator[Machine]:
    started = Machine(workspace, workspace.folder / name)
    try:
        yield started
    finally:
        end_with_rest(started.process)


def test_a_zombie_does_not_touch_the_state_of_its_successor(tmp_path: Path, kafka: DevBroker) -> None:
    """Both come to the end of the same batch, with different state, and in one folder."""
    workspace = Workspace(tmp_path, {"application_id": unique("app"), "bootstrap_servers": kafka.address})
    words, sums = (f"{workspace.config.application_id}-{name}" for name in ("words", "sums"))
    workspace.create(words, sums)
    workspace.produce(words, *((None, word, 1_000) for word in ["we"] * 10 + ["wait", "all"] * 5 + ["we"] * 5))

    with machine(workspace, "zombie") as zombie:
        zombie.wait_at_gate()
        with machine(workspace, "successor") as successor:
            successor.wait_at_gate()
            assert zombie.end() == 1
            assert "was started again elsewhere: this one stops" in zombie.errors()
            assert successor.end() == 0, successor.errors()

    workspace.produce(words, (None, "we", 1_000), (None, "all", 1_000))
    with machine(workspace, "third") as third:
        assert third.end() == 0, third.errors()
    expected = {"w": 16 + 5, "a": 6}
    wait_for(
        lambda: {first: total for first, total, _ in workspace.read(sums, serdes.Long)} == expected, "the sums", 20
    )
