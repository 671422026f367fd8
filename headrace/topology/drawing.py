"""Pictures of a topology: Mermaid, SVG made by Graphviz, HTML for notebooks; and its JSON.

Mermaid and Graphviz draw the same `Drawing`: a box for every sub-topology with its steps and stores, topics outside.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from headrace.errors import HeadraceError
from headrace.topology.node_descriptions import NodeDescription, SubTopologyDescription

JSON_VERSION = 1
"""Increased when a field of `to_json` changes its meaning or goes away."""

Kind = Literal["topic", "source", "processor", "sink", "store"]

_MERMAID_SHAPES: dict[Kind, tuple[str, str]] = {
    "topic": ("[/", "/]"),
    "source": ("([", "])"),
    "processor": ("[", "]"),
    "sink": ("([", "])"),
    "store": ("[(", ")]"),
}
_MERMAID_ENTITIES = str.maketrans({char: f"#{ord(char)};" for char in "#\"&<>`'\\"})

_DOT_SHAPES: dict[Kind, str] = {
    "topic": 'shape=cds style=filled fillcolor="#fff3d6"',
    "source": 'shape=box style="rounded,filled" fillcolor="#e3f1e5"',
    "processor": 'shape=box style=filled fillcolor="#ffffff"',
    "sink": 'shape=box style="rounded,filled" fillcolor="#fbe5e1"',
    "store": 'shape=cylinder style=filled fillcolor="#e2ecf8"',
}
_DOT_ENTITIES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})


@dataclass(frozen=True)
class Shape:
    """A topic, a step or a store, with its label."""

    id: str
    kind: Kind
    label: str


@dataclass(frozen=True)
class Box:
    """A sub-topology."""

    id: str
    title: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Line:
    """A connection of two shapes: records that flow from one to the other, or a step that uses a store."""

    start: str
    end: str
    flows: bool


@dataclass(frozen=True)
class Drawing:
    """A picture of a topology."""

    topics: tuple[Shape, ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def draw(subs: Sequence[SubTopologyDescription]) -> Drawing:
    """Turn a description into shapes and lines."""
    topics: dict[str, Shape] = {}
    boxes: list[Box] = []
    lines: list[Line] = []
    for sub in subs:
        ids = {node.name: f"n{sub.id}_{number}" for number, node in enumerate(sub.nodes)}
        stores: dict[str, Shape] = {}
        for node in sub.nodes:
            step = ids[node.name]
            for label in _read(node):
                topic = topics.setdefault(label, Shape(f"t{len(topics)}", "topic", label))
                lines.append(Line(topic.id, step, True))
            for label in _kept(node):
                store = stores.setdefault(label, Shape(f"s{sub.id}_{len(stores)}", "store", label))
                lines.append(Line(step, store.id, False))
            for name in _successors(node):
                lines.append(Line(step, ids[name], True))
            for label in _written(node):
                topic = topics.setdefault(label, Shape(f"t{len(topics)}", "topic", label))
                lines.append(Line(step, topic.id, True))
        shapes = [Shape(ids[node.name], node.kind, node.name) for node in sub.nodes]
        boxes.append(Box(f"sub{sub.id}", _title(sub), (*shapes, *stores.values())))
    return Drawing(tuple(topics.values()), tuple(boxes), tuple(lines))


def mermaid(subs: Sequence[SubTopologyDescription]) -> str:
    """Write a Mermaid flowchart."""

    def shape(shape: Shape, indent: str) -> str:
        start, end = _MERMAID_SHAPES[shape.kind]
        return f'{indent}{shape.id}{start}"{shape.label.translate(_MERMAID_ENTITIES)}"{end}\n'

    drawing = draw(subs)
    text = "flowchart TD\n" + "".join(shape(topic, "    ") for topic in drawing.topics)
    for box in drawing.boxes:
        shapes = "".join(shape(inner, "        ") for inner in box.shapes)
        text += f'    subgraph {box.id}["{box.title}"]\n{shapes}    end\n'
    return text + "".join(f"    {line.start} {'-->' if line.flows else '-.-'} {line.end}\n" for line in drawing.lines)


def dot(subs: Sequence[SubTopologyDescription]) -> str:
    """Write the drawing in Graphviz's language."""

    def shape(shape: Shape, indent: str) -> str:
        return f'{indent}{shape.id} [label="{shape.label.translate(_DOT_ENTITIES)}" {_DOT_SHAPES[shape.kind]}]\n'

    drawing = draw(subs)
    font = 'fontname="Helvetica,Arial,sans-serif" fontsize=11'
    text = f'digraph topology {{\n  bgcolor="white"\n  graph [{font}]\n  node [{font}]\n'
    text += "".join(shape(topic, "  ") for topic in drawing.topics)
    for number, box in enumerate(drawing.boxes):
        shapes = "".join(shape(inner, "    ") for inner in box.shapes)
        text += f'  subgraph cluster_{number} {{\n    label="{box.title}" labeljust=l color="#999999"\n{shapes}  }}\n'
    for line in drawing.lines:
        text += f"  {line.start} -> {line.end}{'' if line.flows else ' [dir=none style=dashed]'}\n"
    return text + "}\n"


def svg(subs: Sequence[SubTopologyDescription]) -> str:
    """Draw SVG with Graphviz."""
    program = shutil.which("dot")
    if program is None:
        raise HeadraceError(
            "to_svg: Graphviz's program 'dot' is not on the PATH. Install Graphviz "
            "(apt-get install graphviz, brew install graphviz), or use to_mermaid(), which does not need it"
        )
    done = subprocess.run([program, "-Tsvg"], input=dot(subs).encode(), capture_output=True, check=False)
    if done.returncode != 0:
        raise HeadraceError(f"to_svg: '{program}' failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


def json_text(subs: Sequence[SubTopologyDescription]) -> str:
    """Write the description as JSON."""
    written = [
        {"id": sub.id, "global": sub.is_global, "nodes": [_json_node(node) for node in sub.nodes]} for sub in subs
    ]
    return json.dumps({"version": JSON_VERSION, "sub_topologies": written}, indent=2, ensure_ascii=False)


def html(subs: Sequence[SubTopologyDescription], text: str) -> str:
    """Write HTML for a notebook: with Graphviz the drawing and the description as text, else tables."""
    try:
        picture = svg(subs)
    except HeadraceError:
        return f"<div>{''.join(_html_table(sub) for sub in subs) or 'An empty topology.'}</div>"
    details = f"<details><summary>As text</summary><pre>{escape(text)}</pre></details>"
    return f"<div>{picture[picture.index('<svg') :]}{details}</div>"


def _json_node(node: NodeDescription) -> dict[str, Any]:
    common: dict[str, Any] = {"type": node.kind, "name": node.name}
    if node.kind == "source":
        return {**common, "topics": node.topics, "pattern": node.pattern, "successors": node.successors}
    if node.kind == "sink":
        return {**common, "topic": node.topic, "extractor": node.extractor, "predecessors": node.predecessors}
    return {**common, "stores": node.stores, "successors": node.successors, "predecessors": node.predecessors}


def _html_table(sub: SubTopologyDescription) -> str:
    rows = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells) + "</tr>"
        for cells in map(_cells, sub.nodes)
    )
    head = "".join(f'<th style="text-align:left">{title}</th>' for title in ("", "step", "uses", "goes on to"))
    return f"<p><b>{_title(sub)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(node: NodeDescription) -> tuple[str, str, str, str]:
    topics, stores = (*_read(node), *_written(node)), _kept(node)
    uses = f"topics: {', '.join(topics)}" if topics else f"stores: {', '.join(stores)}" if stores else ""
    return node.kind, node.name, uses, ", ".join(_successors(node))


def _read(node: NodeDescription) -> tuple[str, ...]:
    if node.kind != "source":
        return ()
    return node.topics if node.pattern is None else (f"topics like {node.pattern}",)


def _written(node: NodeDescription) -> tuple[str, ...]:
    if node.kind != "sink":
        return ()
    return (f"named by {node.extractor}" if node.topic is None else node.topic,)


def _kept(node: NodeDescription) -> tuple[str, ...]:
    return node.stores if node.kind == "processor" else ()


def _successors(node: NodeDescription) -> tuple[str, ...]:
    return () if node.kind == "sink" else node.successors


def _title(sub: SubTopologyDescription) -> str:
    return f"Sub-topology {sub.id}, global store" if sub.is_global else f"Sub-topology {sub.id}"
