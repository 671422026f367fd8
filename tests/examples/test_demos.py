"""The rules that all demos follow, so that one command can run each of them."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from headrace.demos import DEMOS, START, Demo
from headrace.testing import TopologyTestDriver
from headrace.topology.nodes import SinkNode, SourceNode
from tests.examples.running import NO_CACHE, outputs_of, pipe, read

ROOT = Path(__file__).parents[2]
MINUTE = 60_000


@pytest.fixture(params=DEMOS)
def demo(request: pytest.FixtureRequest) -> Demo:
    return DEMOS[request.param]


def last_values(demo: Demo, outputs: dict[str, list[tuple[object, object]]]) -> dict[str, object]:
    return {topic: dict(outputs[topic]) for topic in demo.outputs}


# -- the list ---------------------------------------------------------------------------------------------------------


def test_there_are_five_demos() -> None:
    assert list(DEMOS) == ["word_count", "stock_statistics", "click_enrichment", "sensor_filter", "top_ten"]
    assert len(DEMOS) == 5
    assert "word_count" in DEMOS
    assert "no_such" not in DEMOS


def test_every_module_is_in_the_list() -> None:
    modules = {path.stem for path in (ROOT / "headrace" / "demos").glob("*.py")} - {"__init__"}

    assert modules == set(DEMOS)


def test_a_name_that_is_no_demo_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="__init__"):
        DEMOS["__init__"]


def test_a_demo_is_imported_when_it_is_asked_for() -> None:
    program = (
        "import sys; from headrace.demos import DEMOS; print(*DEMOS); DEMOS['top_ten'];"
        "print(*sorted(name for name in sys.modules if name.startswith('headrace.demos.')))"
    )

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.splitlines()[1:] == ["headrace.demos.top_ten"]


def test_the_readme_has_every_demo_and_links_that_lead_somewhere() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")

    linked = {part.partition(")")[0] for part in text.split("](")[1:]}

    assert linked >= {f"../headrace/demos/{name}.py" for name in DEMOS}
    assert [link for link in sorted(linked) if not (ROOT / "examples" / link).exists()] == []


# -- each of them -----------------------------------------------------------------------------------------------------


def test_a_demo_offers_what_its_module_has(demo: Demo) -> None:
    module = import_module(f"headrace.demos.{demo.name}")

    assert demo is module.DEMO
    assert demo.build_topology is module.build_topology
    assert demo.make_records is module.make_records
    assert demo.summarize is module.summarize
    assert tuple(demo.outputs) == module.OUTPUT_TOPICS


def test_a_module_ends_its_docstring_with_how_to_run_it(demo: Demo) -> None:
    text = import_module(f"headrace.demos.{demo.name}").__doc__ or ""

    assert f"    headrace demo {demo.name}\n" in text
    assert text.rstrip().endswith(f"headrace run headrace.demos.{demo.name}:build_topology")


def test_records_are_for_the_topics_that_are_read_and_results_in_those_that_are_written(demo: Demo) -> None:
    nodes = demo.build_topology().nodes.values()
    internal = {"counts-repartition", "volumes-repartition", "top-ten-repartition"}
    read_topics = {topic for node in nodes if isinstance(node, SourceNode) for topic in node.topics}
    written = {node.topic for node in nodes if isinstance(node, SinkNode)}

    assert {topic for topic, _, _, _ in demo.make_records(500)} == read_topics - internal
    assert set(demo.outputs) == written - internal


@pytest.mark.parametrize("count", [0, 1, 2, 37, 1000])
def test_as_many_records_are_made_as_asked_for(demo: Demo, count: int) -> None:
    assert len(list(demo.make_records(count))) == count


def test_records_are_made_one_by_one(demo: Demo) -> None:
    assert isinstance(demo.make_records(3), Iterator)


def test_the_same_seed_makes_the_same_records(demo: Demo) -> None:
    assert list(demo.make_records(300)) == list(demo.make_records(300, seed=7))
    assert list(demo.make_records(300, seed=8)) == list(demo.make_records(300, seed=8))


def test_another_seed_makes_other_records(demo: Demo) -> None:
    assert list(demo.make_records(300, seed=7)) != list(demo.make_records(300, seed=8))


def test_records_come_roughly_in_the_order_of_time(demo: Demo) -> None:
    timestamps = [timestamp for _, _, _, timestamp in demo.make_records(1000)]

    assert all(later - earlier > -2500 for earlier, later in pairwise(timestamps))
    assert START - 2500 < min(timestamps) <= START
    assert START + MINUTE / 10 < max(timestamps) < START + 10 * MINUTE


def test_caches_change_the_updates_but_not_the_result(demo: Demo) -> None:
    records = list(demo.make_records(400))

    cached, uncached = outputs_of(demo, records), outputs_of(demo, records, NO_CACHE)

    assert last_values(demo, cached) == last_values(demo, uncached)


def test_a_restart_in_the_middle_changes_nothing(demo: Demo) -> None:
    records = list(demo.make_records(400))
    topology = demo.build_topology()

    with TopologyTestDriver(topology) as driver:
        pipe(driver, records[:200])
        first = read(demo, driver)
        snapshot = driver.snapshot()
    with TopologyTestDriver(topology, restore_from=snapshot) as driver:
        pipe(driver, records[200:])
        second = read(demo, driver)

    assert {topic: first[topic] + second[topic] for topic in demo.outputs} == outputs_of(demo, records)


def test_the_summary_fits_a_terminal(demo: Demo) -> None:
    lines = demo.summarize(outputs_of(demo, demo.make_records(1000)))

    assert 3 <= len(lines) <= 12
    assert all(0 < len(line) <= 100 and "\n" not in line for line in lines)


def test_nothing_can_be_summarized_too(demo: Demo) -> None:
    assert len(demo.summarize({topic: [] for topic in demo.outputs})) <= 2
