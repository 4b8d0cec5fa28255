"""The house style: how each kind of node looks, and the colours of each theme."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from irviz.model.graph import Node, NodeKind, Resolution


class Shape(Enum):
    """An outline that tells a kind of node without its colour."""

    CIRCLE = "circle"
    BOX = "box"
    BARRED_BOX = "barred_box"
    ROUND_BOX = "round_box"
    CUT_BOX = "cut_box"
    SLANTED_BOX = "slanted_box"
    STACK = "stack"
    DRUM = "drum"


@dataclass(frozen=True, slots=True)
class Style:
    """A shape, and the name of its colours in the theme."""

    shape: Shape
    colour: str


STYLES: dict[NodeKind, Style] = {
    NodeKind.PARAM: Style(Shape.CIRCLE, "param"),
    NodeKind.CONSTANT: Style(Shape.CUT_BOX, "constant"),
    NodeKind.CALL_TIR: Style(Shape.BOX, "call"),
    NodeKind.CALL_DPS_PACKED: Style(Shape.BOX, "call"),
    NodeKind.CALL_PACKED: Style(Shape.BOX, "call"),
    NodeKind.OPERATOR: Style(Shape.ROUND_BOX, "operator"),
    NodeKind.CALL_FUNCTION: Style(Shape.BOX, "call"),
    NodeKind.TUPLE: Style(Shape.ROUND_BOX, "quiet"),
    NodeKind.TUPLE_GET_ITEM: Style(Shape.ROUND_BOX, "quiet"),
    NodeKind.MATCH_CAST: Style(Shape.ROUND_BOX, "quiet"),
    NodeKind.IF: Style(Shape.SLANTED_BOX, "control"),
    NodeKind.FUNCTION: Style(Shape.SLANTED_BOX, "control"),
    NodeKind.VALUE: Style(Shape.ROUND_BOX, "quiet"),
    NodeKind.OTHER: Style(Shape.ROUND_BOX, "quiet"),
    NodeKind.BLOCK: Style(Shape.BOX, "call"),
    NodeKind.ALLOC: Style(Shape.DRUM, "memory"),
    NodeKind.GROUP: Style(Shape.STACK, "group"),
}
assert STYLES.keys() == set(NodeKind), "every kind of node has a style"

_LIBRARY = Style(Shape.BARRED_BOX, "library")
_UNKNOWN = Style(Shape.BARRED_BOX, "unknown")


def style_of(node: Node) -> Style:
    """Return how a node looks; a call of a library function has bars at its sides."""
    if node.resolution is Resolution.LIBRARY:
        return _LIBRARY
    if node.resolution is Resolution.UNKNOWN:
        return _UNKNOWN
    return STYLES[node.kind]


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture: (fill, outline) by style, and those of lines and text.

    `ramp` has the ends of the tints of an overlay, `flag` is the colour of its warnings.
    """

    background: str
    line: str
    text: str
    quiet_text: str
    block_fill: str
    block_line: str
    colours: dict[str, tuple[str, str]]
    ramp: tuple[str, str]
    flag: str


THEMES: dict[str, Theme] = {
    "course": Theme(
        background="#ffffff",
        line="#444444",
        text="#111111",
        quiet_text="#5c5c5c",
        block_fill="#f7f8fa",
        block_line="#9aa3ad",
        colours={
            "param": ("#cfe8c9", "#3f7d3a"),
            "constant": ("#e4e4ea", "#5d5d78"),
            "call": ("#ffffff", "#222222"),
            "library": ("#fdebd0", "#a35400"),
            "unknown": ("#ffffff", "#b3261e"),
            "operator": ("#e8f1fb", "#2f6299"),
            "quiet": ("#ffffff", "#8a8a8a"),
            "control": ("#f3e8f7", "#7a4a8c"),
            "group": ("#f1f3f5", "#444444"),
            "memory": ("#d9f2ef", "#1b7268"),
        },
        ramp=("#fff5cc", "#dd6a2a"),
        flag="#b3261e",
    ),
    "dark": Theme(
        background="#14171a",
        line="#a9b1b9",
        text="#f0f2f4",
        quiet_text="#aab2ba",
        block_fill="#1c2126",
        block_line="#5b6670",
        colours={
            "param": ("#1f4a2a", "#7fc98a"),
            "constant": ("#33334a", "#a5a5cf"),
            "call": ("#22272d", "#d8dde2"),
            "library": ("#4b3210", "#f0a95a"),
            "unknown": ("#22272d", "#ff8a80"),
            "operator": ("#1b344f", "#7fb3e8"),
            "quiet": ("#1a1e22", "#8b949d"),
            "control": ("#38233f", "#cf9ae0"),
            "group": ("#2a3036", "#d8dde2"),
            "memory": ("#123f3b", "#6fcabd"),
        },
        ramp=("#332a1f", "#b5491a"),
        flag="#ff8a80",
    ),
}


def theme_of(name: str) -> Theme:
    """Return the theme of this name; raise ValueError with the names there are."""
    if name not in THEMES:
        raise ValueError(f"there is no theme {name!r}; choose one of {', '.join(THEMES)}")
    return THEMES[name]
