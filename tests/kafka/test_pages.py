"""`docs/kafka.md`: its commands and scripts do what it says."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from headrace.dev.kafka_broker import DevBroker, free_port
from tests.cli.running import COMMAND
from tests.cli.test_pages import BLOCK, DOCS, SAID

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]

SCRIPT = re.compile(r"^```py\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADRACE_BOOTSTRAP_SERVERS", raising=False)
    path = os.pathsep.join([str(Path(COMMAND[0]).parent), os.environ["PATH"]])
    with DevBroker(tmp_path / "kafka", free_port()) as kafka:
        page = (DOCS / "kafka.md").read_text(encoding="utf-8").replace("localhost:9092", kafka.address)
        said = [pair for block in BLOCK.findall(page) for pair in SAID.findall(block)]
        assert said
        script = "\n".join(f"echo '$' {index}\n{command}" for index, (command, _) in enumerate(said))
        done = subprocess.run(
            ["bash", "-c", script],
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.stdout == "".join(f"$ {index}\n{expected}" for index, (_, expected) in enumerate(said))

        names: dict[str, object] = {}
        for code in SCRIPT.findall(page):
            if ").run()" in code:
                continue  # it would run on and on
            exec(compile(code, "kafka.md", "exec"), names)
    assert names["found"] == {b"tea": b"3", b"cake": b"5"}
