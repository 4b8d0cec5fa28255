"""A picture read back from its SVG text, as a reader of the file would see it."""

import os
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree

import pytest

EM = 0.602
"""The width of a monospaced character, in the usual faces, over the size of the font."""

_NUMBER = r"(-?[\d.]+)"


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, other: "Box") -> bool:
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


@dataclass(frozen=True)
class Drawn:
    """A node as drawn: its id ("return" for the outputs), classes, outline and words."""

    id: str
    classes: tuple[str, ...]
    box: Box
    texts: tuple[tuple[str, Box], ...]
    tooltip: str


@dataclass(frozen=True)
class Line:
    """An edge as drawn: its ends, where its curve begins and where its arrow points."""

    source: str
    target: str
    start: tuple[float, float]
    tip: tuple[float, float]


@dataclass(frozen=True)
class Picture:
    """What is drawn; `paper` is the sheet, in the same coordinates."""

    root: ElementTree.Element
    paper: Box
    nodes: tuple[Drawn, ...]
    values: dict[str, tuple[str, Box]]
    lines: tuple[Line, ...]
    frames: tuple[Box, ...]

    def box(self, node_id: str) -> Box:
        (found,) = (node.box for node in self.nodes if node.id == node_id)
        return found


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put other lines in the place of pygraphviz, for engines that start from now on."""

    def write(lines):
        (tmp_path / "fake").mkdir()
        (tmp_path / "fake" / "pygraphviz.py").write_text(lines)
        paths = [str(tmp_path / "fake"), os.environ.get("PYTHONPATH")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        monkeypatch.syspath_prepend(tmp_path / "fake")

    return write


@pytest.fixture(scope="session")
def read_picture() -> Callable[[str], Picture]:
    """Return the reader of SVG text; it fails on text that is not well-formed."""
    return _read


def _read(text: str) -> Picture:
    root = ElementTree.fromstring(text)
    groups = [(e.get("class", "").split(), e) for e in root.iter() if _tag(e) == "g"]
    nodes = [_node(classes, group) for classes, group in groups if classes[:1] == ["node"]]
    values = [
        (group.get("data-node"), *_texts(group))
        for classes, group in groups
        if classes == ["value"]
    ]
    assert len({node_id for node_id, _ in values}) == len(values)
    (moved,) = (e.get("transform") for e in root if _tag(e) == "g")
    right, down = map(float, re.fullmatch(rf"translate\({_NUMBER} {_NUMBER}\)", moved).groups())
    width, height = float(root.get("width")), float(root.get("height"))
    return Picture(
        root,
        Box(-right, -down, width - right, height - down),
        tuple(nodes),
        dict(values),
        tuple(_line(group) for classes, group in groups if classes[:1] == ["edge"]),
        tuple(_rect(group[0]) for classes, group in groups if classes[:1] == ["block"]),
    )


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _node(classes: list[str], group: ElementTree.Element) -> Drawn:
    shape = next(e for e in group if e.get("class") == "shape")
    title = next((e.text or "" for e in group if _tag(e) == "title"), "")
    box = {"rect": _rect, "circle": _circle, "path": _path}[_tag(shape)](shape)
    return Drawn(
        group.get("data-node", "return"), tuple(classes[1:]), box, tuple(_texts(group)), title
    )


def _line(group: ElementTree.Element) -> Line:
    curve, arrow = (e.get("d") for e in group if _tag(e) == "path")
    start = re.match(rf"M{_NUMBER},{_NUMBER}C", curve)
    tip = re.search(rf"L{_NUMBER},{_NUMBER}L", arrow)
    return Line(
        group.get("data-source"),
        group.get("data-target"),
        tuple(map(float, start.groups())),
        tuple(map(float, tip.groups())),
    )


def _rect(element: ElementTree.Element) -> Box:
    x, y, width, height = (float(element.get(k)) for k in ("x", "y", "width", "height"))
    return Box(x, y, x + width, y + height)


def _circle(element: ElementTree.Element) -> Box:
    x, y, r = (float(element.get(k)) for k in ("cx", "cy", "r"))
    return Box(x - r, y - r, x + r, y + r)


def _path(element: ElementTree.Element) -> Box:
    slanted = rf"M{_NUMBER},{_NUMBER}L{_NUMBER},{_NUMBER}h{_NUMBER}l{_NUMBER},{_NUMBER}.*Z"
    found = re.fullmatch(slanted, element.get("d"))
    if found is None:
        return _cut_box(element)
    x, middle, after, y, length, _, _ = map(float, found.groups())
    return Box(x, y, 2 * after - x + length, 2 * middle - y)


def _cut_box(element: ElementTree.Element) -> Box:
    pattern = rf"M{_NUMBER},{_NUMBER}h{_NUMBER}l{_NUMBER},{_NUMBER}v{_NUMBER}h{_NUMBER}Z"
    x, y, _, _, cut, down, back = map(float, re.fullmatch(pattern, element.get("d")).groups())
    return Box(x, y, x - back, y + cut + down)


def _texts(group: ElementTree.Element) -> list[tuple[str, Box]]:
    return [(e.text or "", _text_box(e)) for e in group if _tag(e) == "text"]


def _text_box(element: ElementTree.Element) -> Box:
    assert element.get("text-anchor") == "middle"
    x, baseline, size = (float(element.get(k)) for k in ("x", "y", "font-size"))
    cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in element.text or "")
    half = cells * size * EM / 2
    return Box(x - half, baseline - 0.75 * size, x + half, baseline + 0.22 * size)
