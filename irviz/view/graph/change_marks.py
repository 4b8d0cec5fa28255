"""Marks for what became of nodes, as signs and words that do not rely on colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.model.diff.aligned_stage_graphs import SideGraph
from irviz.model.diff.diff_result import Aspect, ChangeKind, Difference, NodeDiff
from irviz.model.graph.graph import NodeId
from irviz.view import svg_primitives as svg
from irviz.view.graph.nodes_and_edges import SceneGeometry, add_shape, bar_width, texts_span
from irviz.view.svg_primitives import Point, Rect, Size
from irviz.view.theme import Theme, node_style

_SIGNS = {"added": "+", "removed": "−", "changed": "≠", "fused": "⊃", "moved": "→"}
_SPLIT_SIGN = "⊂"
LEGEND = {
    "+": ("added", "added"),
    "−": ("removed", "removed"),
    "≠": ("changed", "changed"),
    "⊃": ("fused", "several became one"),
    "⊂": ("fused", "one became several"),
    "→": ("moved", "moved to another block or place"),
    "↕": ("moved", "reordered or moved"),
}
"""The kind and the meaning of each sign."""
_SIZE = 11.0
_HEIGHT = 15.0
_PADDING = 5.0
_GAP = 5.0
_SPARE = 2.0

_WORDS = {
    Aspect.LOWERED: "lowered",
    Aspect.CALLEE: "callee",
    Aspect.OPERATION: "operation",
    Aspect.BOUND: "bound",
    Aspect.BODY: "body",
    Aspect.DTYPE: "dtype",
    Aspect.SHAPE: "shape",
    Aspect.TYPE: "type",
    Aspect.OPERAND: "operands",
    Aspect.ATTRIBUTE: "attributes",
    Aspect.DEVICE: "device",
    Aspect.PURITY: "purity",
    Aspect.VALUE: "value",
    Aspect.BLOCK: "block",
    Aspect.ORDER: "order",
}


class ChangeMark(NamedTuple):
    """What became of a node: a key of `Theme.changes`, a sign with words, and all differences."""

    kind: str
    text: str
    tooltip: str = ""


class SideChanges(NamedTuple):
    """What a picture of one side of a diff shows besides the graph.

    Attributes:
        marks: The marks of drawn nodes.
        unchanged: The nodes without any difference.
        edges: What became of edges by their index, with those to the output behind the others: a
            key of `Theme.changes`, or "" for an edge that is drawn pale.
        contents: What the nodes that fill a frame were made of, or became.
    """

    marks: Mapping[NodeId, ChangeMark]
    unchanged: frozenset[NodeId]
    edges: Mapping[int, str] = MappingProxyType({})
    contents: Mapping[NodeId, str] = MappingProxyType({})


def draw_marks(
    parent: ElementTree.Element, scene: SceneGeometry, changes: SideChanges, theme: Theme
) -> None:
    """Draw the marks: inside of nodes at their left sides, or below parameters and constants."""
    for one, mark in changes.marks.items():
        node, rect, colour = scene.graph[one], scene.shapes[one], theme.changes[mark.kind]
        group = svg.add(parent, "g", f"change {mark.kind}", data_node=one)
        svg.add_tooltip(group, mark.tooltip or mark.text)
        lines: dict[str, str | float] = {"fill": "none", "stroke": colour, "stroke_width": 2.4}
        if mark.kind == "removed":
            lines["stroke_dasharray"] = "6 3"
        add_shape(group, node_style(node).shape, rect, **lines)
        size = _pill_size(mark.text)
        x, y = rect.left + bar_width(node) + _GAP + size.width / 2, rect.centre[1]
        if node.is_input:
            below = size.height / 2 - 6
            x, y = rect.centre[0], rect.side(-scene.outward) - scene.outward * below
        elif one in changes.contents:  # it fills a frame
            first, last = texts_span(node, rect)
            if rect.top + 2 * _GAP + size.height <= first:
                y = rect.top + _GAP + size.height / 2
                _add_lines(group, changes.contents[one], rect, last, theme)
            else:
                y = rect.side(-scene.outward) - 5 * scene.outward
        _draw_pill(group, (x, y), mark.text, colour, theme)


def node_change_mark(diff: NodeDiff) -> ChangeMark | None:
    """Return the mark for the change of nodes, None if they are unchanged."""
    kind = _kind(diff)
    return _mark(diff, kind) if kind else None


def side_marks(side: SideGraph, diffs: Sequence[NodeDiff], *, is_before: bool) -> SideChanges:
    """Return the marks of the drawn nodes of the earlier or the later stage."""
    found: dict[NodeId, ChangeMark] = {}
    counts: dict[NodeId, Counter[str]] = {}  # of the changed nodes by their sign
    for diff in diffs:
        mine, kind = diff.before if is_before else diff.after, _kind(diff)
        for one in mine:
            shown = side.shown.get(one)
            if shown is None:  # a weight that nothing uses
                continue
            counts.setdefault(shown, Counter()).update([_sign(diff, kind)] if kind else [])
            is_whole = len(mine) == 1 if kind != "fused" else shown in side.frames or len(mine) == 1
            if kind and shown == one and is_whole:
                found[shown] = _mark(diff, kind)
    for shown, changed in counts.items():
        if shown not in side.graph.index or shown in found or not changed:
            continue
        if side.shown.get(shown) != shown:  # a group
            signs = [f"{sign}{changed[sign]}" for sign in LEGEND if sign in changed]
            words = [f"{changed[sign]:,} {LEGEND[sign][1]}" for sign in LEGEND if sign in changed]
            kinds = {LEGEND[sign][0] for sign in changed}
            kind = kinds.pop() if len(kinds) == 1 else "changed"
            word = "split" if _SPLIT_SIGN in changed else kind
            text = " ".join(signs if len(signs) > 1 else [*signs, word])
            found[shown] = ChangeMark(kind, text, "Inside: " + ", ".join(words))
    unchanged = frozenset(one for one, changed in counts.items() if not changed)
    return SideChanges(found, unchanged)


def _kind(diff: NodeDiff) -> str:
    """Return the key of `Theme.changes` for what became of nodes, "" if unchanged."""
    if diff.change is ChangeKind.SAME:
        return ""
    kind: str = diff.change.value
    if kind not in _SIGNS or kind == "fused":
        return "changed" if len(diff.before) == len(diff.after) == 1 else "fused"
    return kind


def _sign(diff: NodeDiff, kind: str) -> str:
    is_split = kind == "fused" and len(diff.before) < len(diff.after)
    return _SPLIT_SIGN if is_split else _SIGNS[kind]


def _mark(diff: NodeDiff, kind: str) -> ChangeMark:
    is_plain = diff.change in (ChangeKind.CHANGED, ChangeKind.MOVED)
    change = _word(diff.differences) if is_plain else diff.change.value.split()[0]
    words = {"changed": change, "moved": "moved"}
    words["fused"] = f"{len(diff.before)} → {len(diff.after)}"
    tooltip = "\n".join([diff.change.value, *map(str, diff.differences), diff.callee])
    return ChangeMark(kind, f"{_sign(diff, kind)} {words.get(kind, '')}".rstrip(), tooltip.rstrip())


def _word(differences: Sequence[Difference]) -> str:
    """Return the word for the most important difference."""
    aspects = {one.aspect: one for one in differences}
    found = next((aspect for aspect in _WORDS if aspect in aspects), None)
    if found is None:
        return ""
    names = aspects[found].before, aspects[found].after
    is_operator = found is Aspect.CALLEE and all(name.startswith("relax.") for name in names)
    return "operator" if is_operator else _WORDS[found]


def signs_of(mark: ChangeMark) -> list[str]:
    """Return the signs of a mark: a group of nodes has several."""
    first, *rest = mark.text.split(" ")
    return [first[0], *(word[0] for word in rest if word[0] in LEGEND and len(word) > 1)]


def reserved_width(mark: ChangeMark) -> float:
    """Return the width that a mark takes at the side of a node's texts."""
    return _pill_size(mark.text).width + _SPARE


def draw_sign(parent: ElementTree.Element, sign: str, corner: Point, theme: Theme) -> Size:
    """Draw a sign alone, for a legend; return its size."""
    kind, _ = LEGEND[sign]
    size = _pill_size(sign)
    centre = (corner[0] + size.width / 2, corner[1] + size.height / 2)
    _draw_pill(parent, centre, sign, theme.changes[kind], theme)
    return size


def _add_lines(
    parent: ElementTree.Element, text: str, rect: Rect, texts_end: float, theme: Theme
) -> None:
    """Write words below the texts of a node that fills a frame, as far as there is space."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and svg.text_width(longer, _SIZE) <= rect.width - 2 * _PADDING:
            lines[-1] = longer
        else:
            lines.append(word)
    x, first = rect.centre[0], texts_end + _SIZE + 8
    room = max(0, int((rect.bottom - first + _SIZE - 1) // (_SIZE + 3)))
    for number, line in enumerate(lines[:room]):
        end = " …" if number == room - 1 and len(lines) > room else ""
        at = (x, first + number * (_SIZE + 3))
        svg.add_text(parent, line + end, at, _SIZE, theme.quiet_text, css_class="contents")


def _pill_size(text: str) -> Size:
    return Size(svg.text_width(text, _SIZE) + 2 * _PADDING, _HEIGHT)


def _draw_pill(
    parent: ElementTree.Element, centre: Point, text: str, colour: str, theme: Theme
) -> None:
    svg.add_rect(parent, Rect.around(centre, _pill_size(text)), rx=_HEIGHT / 2, fill=colour)
    x, y = centre
    svg.add_text(parent, text, (x, y + 3.5), _SIZE, theme.background, font_weight="600")
