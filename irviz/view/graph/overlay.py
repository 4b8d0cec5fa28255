"""Overlays: a tint, a label and a warning on each node, and the legend that explains them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from irviz.model.graph.graph import NodeId
from irviz.view import svg_primitives as svg
from irviz.view.graph import node_labels
from irviz.view.mix_colours import mix_colours
from irviz.view.svg_primitives import Point, Rect, Size
from irviz.view.theme import Theme

_DECADES = 2
"""Values that span more decades get a log scale."""
_SCALE = Size(160.0, 12.0)
_CELLS = 32
_ROW = 22.0
_GAP = 8.0
_FLAG_WIDTH = 30.0
"""The space for the warning before its explanation."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How an overlay marks a node: its tint, from 0 to 1, a short label, and a warning.

    `is_first` tells whether the warning is the larger one, for the node where a problem begins.
    """

    share: float
    text: str
    is_flagged: bool = False
    is_first: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a share that is not between 0 and 1."""
        if not 0 <= self.share <= 1:
            raise ValueError(
                f"the share of {self.text!r} is {self.share!r}: give a number between 0 and 1"
            )


@dataclass(frozen=True)
class Overlay:
    """The marks of nodes, and the texts of their legend.

    A node without a mark keeps its shape and loses its colour, because colour now means a share.
    `low` and `high` are the values of the shares 0 and 1, `flag` is the meaning of a warning.
    """

    title: str
    low: str
    high: str
    marks: Mapping[NodeId, Mark]
    flag: str = ""


def scaled_shares(
    values: Mapping[NodeId, float], words: Callable[[float], str]
) -> tuple[dict[NodeId, float], str, str, str]:
    """Scale values to 0–1; return them, the labels of 0 and 1, and the label of the scale.

    The scale is linear from 0, or logarithmic from the smallest positive value if the values span
    more than two decades.
    """
    positive = [value for value in values.values() if value > 0]
    if not positive:
        return dict.fromkeys(values, 0.0), words(0.0), words(0.0), ""
    low, high = min(positive), max(positive)
    span = math.log10(high) - math.log10(low)
    if span <= _DECADES:
        return {one: value / high for one, value in values.items()}, words(0.0), words(high), ""
    shares = {
        one: min(max((math.log10(value) - math.log10(low)) / span, 0.0), 1.0) if value > 0 else 0.0
        for one, value in values.items()
    }
    least = words(low) if len(positive) == len(values) else f"0 … {words(low)}"
    return shares, least, words(high), ", log scale"


def tint(group: ElementTree.Element, mark: Mark, theme: Theme) -> str:
    """Return the colour of a mark; a page can mix its own from the group's `--share`."""
    first = " first" * mark.is_first
    group.set("class", f"{group.get('class')} tinted{first}")
    group.set("style", f"--share:{svg.px(100 * mark.share)}%")
    return mix_colours(*theme.tints, mark.share)


def legend_size(overlay: Overlay) -> Size:
    """Return the size of the legend."""
    title = svg.text_width(overlay.title, node_labels.VALUE_SIZE)
    rows = 3 if _flag_row_width(overlay) else 2
    scale = (
        svg.text_width(overlay.low + overlay.high, node_labels.NOTE_SIZE) + _SCALE.width + 2 * _GAP
    )
    return Size(max(title, scale, _flag_row_width(overlay)), rows * _ROW - 6)


def draw_overlay_legend(
    parent: ElementTree.Element, overlay: Overlay, corner: Point, theme: Theme
) -> None:
    """Draw the legend with its upper left corner at a point."""
    group = svg.add(parent, "g", "legend")
    left, top = corner

    def write(text: str, x: float, y: float, size: float = node_labels.NOTE_SIZE) -> None:
        svg.add_text(group, text, (x, y), size, theme.text, "start")

    write(overlay.title, left, top + 11, node_labels.VALUE_SIZE)
    row = top + _ROW
    write(overlay.low, left, row + 10)
    start = left + svg.text_width(overlay.low, node_labels.NOTE_SIZE) + _GAP
    draw_scale(group, Rect.at((start, row), *_SCALE), theme)
    write(overlay.high, start + _SCALE.width + _GAP, row + 10)
    if _flag_row_width(overlay):
        draw_flag(group, (left + 10, row + _ROW + 6), theme, is_first=False)
        write(overlay.flag, left + _FLAG_WIDTH, row + _ROW + 10)


def draw_scale(parent: ElementTree.Element, rect: Rect, theme: Theme) -> None:
    """Draw the tints side by side; a gradient would need an id that is unique in the page."""
    width = rect.width / _CELLS
    for index in range(_CELLS):
        overlap = 0.5 if index < _CELLS - 1 else 0.0  # covers the seam between two cells
        place = Rect.at((rect.left + index * width, rect.top), width + overlap, rect.height)
        cell = svg.add_rect(parent, place, "cell")
        cell.set("fill", tint(cell, Mark(index / (_CELLS - 1), ""), theme))
    svg.add_rect(parent, rect, "ramp", fill="none", stroke=theme.line)


def _flag_row_width(overlay: Overlay) -> float:
    """Return the width of the row that explains warnings, 0 if there is no such row."""
    if not overlay.flag or not any(mark.is_flagged for mark in overlay.marks.values()):
        return 0
    return _FLAG_WIDTH + svg.text_width(overlay.flag, node_labels.NOTE_SIZE)


# --- Markers on nodes and clusters: the buttons that expand and collapse them, and warnings -------


TOGGLE_RADIUS = 8.0
_FLAG, _FIRST_FLAG = 8.0, 11.0
"""Half the width of a warning, and of the one on the first node."""


def draw_toggle(
    parent: ElementTree.Element, toggled: str, centre: Point, theme: Theme, *, is_open: bool
) -> None:
    """Draw the button that expands or collapses something: a plus or a minus in a circle."""
    group = svg.add(parent, "g", "toggle", data_toggle=toggled)
    svg.add_tooltip(group, "close" if is_open else "open")
    x, y = centre
    svg.add(group, "circle", "reach", cx=x, cy=y, r=16, fill="none", pointer_events="all")
    colours = {"fill": theme.background, "stroke": theme.line}
    svg.add(group, "circle", "sign", cx=x, cy=y, r=TOGGLE_RADIUS, **colours)
    upright = () if is_open else ("M", x, y - 4, "v", 8)
    lines = svg.path("M", x - 4, y, "h", 8, *upright)
    svg.add(group, "path", d=lines, stroke=theme.line, stroke_width=1.4)


def flag_rect(centre: Point, *, is_first: bool) -> Rect:
    """Return the rectangle that a warning covers."""
    half = _FIRST_FLAG if is_first else _FLAG
    x, y = centre
    return Rect(x - half, y - half, x + half, y + 0.8 * half)


def draw_flag(parent: ElementTree.Element, centre: Point, theme: Theme, *, is_first: bool) -> None:
    """Draw a warning: an exclamation mark in a triangle, larger and filled on the first node."""
    rect = flag_rect(centre, is_first=is_first)
    (left, top, right, bottom), height, x = rect, rect.height, centre[0]
    fill, stroke = (theme.flag, theme.background) if is_first else (theme.background, theme.flag)
    group = svg.add(parent, "g", "flag" + " first" * is_first)
    triangle = svg.path("M", x, top, "L", right, bottom, "L", left, bottom, "Z")
    outline = {"d": triangle, "fill": fill, "stroke": theme.flag}
    svg.add(group, "path", "sign", stroke_linejoin="round", stroke_width=1.6, **outline)
    bar = ("M", x, top + 0.34 * height, "v", 0.3 * height)
    dot = ("M", x, bottom - 0.17 * height, "v", 0.07 * height)
    svg.add(
        group,
        "path",
        "bang",
        d=svg.path(*bar, *dot),
        stroke=stroke,
        stroke_width=0.11 * height + 0.2,
    )
