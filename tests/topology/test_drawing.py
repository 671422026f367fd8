"""Mermaid, JSON, SVG and HTML of a description."""

import json
import re
import shutil
import stat
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headrace import HeadraceError, StreamsBuilder, Topology, TopologyDescription
from headrace.topology.drawing import dot, draw
from tests.topology.cases.processors import joins_of_all_kinds
from tests.topology.cases.steps import Forward, store, topic_of_record

NASTY = r'a "b" <i>c</i> & #d; `e` \f'


@pytest.fixture
def counted() -> TopologyDescription:
    topology = Topology().add_source("lines", "in", "more").add_processor("count", Forward, "lines")
    topology.add_state_store(store("counts"), "count").add_sink("write", "out", "count")
    topology.add_source("again", "out").add_sink("by-record", topic_of_record, "again")
    return topology.describe()


@pytest.fixture
def joined() -> TopologyDescription:
    builder = StreamsBuilder()
    joins_of_all_kinds(builder)
    return builder.build().describe()


@pytest.fixture
def nasty() -> TopologyDescription:
    topology = Topology().add_source(NASTY, re.compile(NASTY)).add_processor("p", Forward, NASTY)
    return topology.describe()


@pytest.fixture
def no_dot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def fake_dot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A `dot` that answers with an SVG whose text is what it was given."""
    program = tmp_path / "dot"
    program.write_text(
        "#!/bin/sh\n"
        "echo '<?xml version=\"1.0\"?>'\n"
        "echo '<svg xmlns=\"http://www.w3.org/2000/svg\"><desc><![CDATA['\n"
        "while IFS= read -r line; do printf '%s\\n' \"$line\"; done\n"
        "echo ']]></desc></svg>'\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    return program


needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not there")


# -- the drawing -------------------------------------------------------------------------------------------------------


def test_every_line_ends_at_a_shape(joined: TopologyDescription) -> None:
    drawing = draw(joined.sub_topologies)
    ids = [shape.id for shape in drawing.topics] + [shape.id for box in drawing.boxes for shape in box.shapes]
    assert len(ids) == len(set(ids))
    assert {line.start for line in drawing.lines} | {line.end for line in drawing.lines} == set(ids)


def test_topic_between_sub_topologies_is_drawn_once(counted: TopologyDescription) -> None:
    labels = [topic.label for topic in draw(counted.sub_topologies).topics]
    assert sorted(labels) == ["in", "more", "named by tests.topology.cases.steps.topic_of_record", "out"]


# -- Mermaid -----------------------------------------------------------------------------------------------------------


def test_mermaid(counted: TopologyDescription) -> None:
    assert counted.to_mermaid().splitlines() == [
        "flowchart TD",
        '    t0[/"in"/]',
        '    t1[/"more"/]',
        '    t2[/"out"/]',
        '    t3[/"named by tests.topology.cases.steps.topic_of_record"/]',
        '    subgraph sub0["Sub-topology 0"]',
        '        n0_0(["lines"])',
        '        n0_1["count"]',
        '        n0_2(["write"])',
        '        s0_0[("counts")]',
        "    end",
        '    subgraph sub1["Sub-topology 1"]',
        '        n1_0(["again"])',
        '        n1_1(["by-record"])',
        "    end",
        "    t0 --> n0_0",
        "    t1 --> n0_0",
        "    n0_0 --> n0_1",
        "    n0_1 -.- s0_0",
        "    n0_1 --> n0_2",
        "    n0_2 --> t2",
        "    t2 --> n1_0",
        "    n1_0 --> n1_1",
        "    n1_1 --> t3",
    ]


def test_mermaid_of_names_with_signs_of_its_own(nasty: TopologyDescription) -> None:
    (label,) = re.findall(r'n0_0\(\["(.*)"\]\)', nasty.to_mermaid())
    assert not set(label) & set('"<>&`\\')
    assert re.sub(r"#(\d+);", lambda entity: chr(int(entity[1])), label) == NASTY


def test_mermaid_says_which_store_is_global(joined: TopologyDescription) -> None:
    assert 'subgraph sub2["Sub-topology 2, global store"]' in joined.to_mermaid()


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_json(counted: TopologyDescription) -> None:
    assert json.loads(counted.to_json()) == {
        "version": 1,
        "sub_topologies": [
            {
                "id": 0,
                "global": False,
                "nodes": [
                    {
                        "type": "source",
                        "name": "lines",
                        "topics": ["in", "more"],
                        "pattern": None,
                        "successors": ["count"],
                    },
                    {
                        "type": "processor",
                        "name": "count",
                        "stores": ["counts"],
                        "successors": ["write"],
                        "predecessors": ["lines"],
                    },
                    {
                        "type": "sink",
                        "name": "write",
                        "topic": "out",
                        "extractor": None,
                        "predecessors": ["count"],
                    },
                ],
            },
            {
                "id": 1,
                "global": False,
                "nodes": [
                    {
                        "type": "source",
                        "name": "again",
                        "topics": ["out"],
                        "pattern": None,
                        "successors": ["by-record"],
                    },
                    {
                        "type": "sink",
                        "name": "by-record",
                        "topic": None,
                        "extractor": "tests.topology.cases.steps.topic_of_record",
                        "predecessors": ["again"],
                    },
                ],
            },
        ],
    }


def test_json_of_a_pattern(nasty: TopologyDescription) -> None:
    source = json.loads(nasty.to_json())["sub_topologies"][0]["nodes"][0]
    assert (source["topics"], source["pattern"]) == ([], NASTY)


def test_json_says_which_store_is_global(joined: TopologyDescription) -> None:
    subs = json.loads(joined.to_json())["sub_topologies"]
    assert [sub["global"] for sub in subs] == [False, False, True, False, False]


# -- SVG ---------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_dot")
def test_svg_without_graphviz_says_what_to_do(counted: TopologyDescription) -> None:
    with pytest.raises(HeadraceError, match=r"'dot' is not on the PATH. Install Graphviz .* or use to_mermaid\(\)"):
        counted.to_svg()


@pytest.mark.usefixtures("fake_dot")
def test_svg_is_what_graphviz_makes_of_the_drawing(joined: TopologyDescription) -> None:
    root = ElementTree.fromstring(joined.to_svg())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root[0].text or "").strip() == dot(joined.sub_topologies).strip()


def test_svg_when_graphviz_fails(counted: TopologyDescription, fake_dot: Path) -> None:
    fake_dot.write_text("#!/bin/sh\necho 'no fonts' >&2\nexit 3\n")
    with pytest.raises(HeadraceError, match=r"to_svg: '.*dot' failed: no fonts"):
        counted.to_svg()


@needs_dot
def test_svg_by_graphviz(joined: TopologyDescription, nasty: TopologyDescription) -> None:
    for description in (joined, nasty, TopologyDescription(())):
        texts = {element.text for element in ElementTree.fromstring(description.to_svg()).iter() if element.text}
        names = {node.name for sub in description.sub_topologies for node in sub.nodes}
        assert names <= {text.replace("\N{NO-BREAK SPACE}", " ") for text in texts}


def test_dot_of_names_with_signs_of_its_own(nasty: TopologyDescription) -> None:
    assert r'n0_0 [label="a \"b\" <i>c</i> &amp; #d; `e` \\f" shape=' in dot(nasty.sub_topologies)


# -- HTML --------------------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Collects the text and checks that what is opened is closed, and that nothing comes from elsewhere."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href"} & {name for name, _ in attrs}
        assert tag not in ("script", "link", "iframe")
        self._open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.usefixtures("no_dot")
def test_html_without_graphviz_is_a_table_for_each_sub_topology(counted: TopologyDescription) -> None:
    page = Reader(counted._repr_html_())
    assert page.tags.count("table") == 2
    assert {"Sub-topology 0", "count", "stores: counts", "topics: in, more", "write"} <= set(page.texts)


@pytest.mark.usefixtures("no_dot")
def test_html_escapes_names(nasty: TopologyDescription) -> None:
    html = nasty._repr_html_()
    assert "<i>" not in html
    assert NASTY in Reader(html).texts


@pytest.mark.usefixtures("no_dot")
def test_html_of_nothing() -> None:
    assert Reader(Topology().describe()._repr_html_()).texts == ["An empty topology."]


@pytest.mark.usefixtures("fake_dot")
def test_html_with_graphviz_has_the_drawing_and_the_text(counted: TopologyDescription) -> None:
    html = counted._repr_html_()
    assert html.startswith("<div><svg ")
    assert "<?xml" not in html
    assert "Processor: count (stores: [counts])" in html


@needs_dot
def test_html_by_graphviz(nasty: TopologyDescription) -> None:
    html = nasty._repr_html_()
    assert "<i>" not in html
    assert "svg" in Reader(html).tags
    assert str(nasty) in "".join(Reader(html).texts)
