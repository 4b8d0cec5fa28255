"""Markers on nodes and clusters: the buttons that expand and collapse them, and warnings."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.view.geometry import Point, Rect
from irviz.view.svg_primitives import add_tooltip, path_point, printable, px
from irviz.view.theme import Theme

TOGGLE_RADIUS = 8.0
_FLAG, _FIRST_FLAG = 8.0, 11.0
"""Half the width of a warning, and of the one on the first node."""


def toggle_position(x: float, y: float, width: float) -> Point:
    """Return the centre of the button of a node or cluster: its upper right corner."""
    return (x + width, y)


def draw_toggle(
    parent: ElementTree.Element, toggled: str, centre: Point, theme: Theme, *, is_open: bool
) -> None:
    """Draw the button that expands or collapses something: a plus or a minus in a circle."""
    attributes = {"class": "toggle", "data-toggle": printable(toggled)}
    group = ElementTree.SubElement(parent, "g", attributes)
    add_tooltip(group, "close" if is_open else "open")
    x, y = centre
    position = {"cx": px(x), "cy": px(y)}
    target = {"class": "reach", "r": "16", "fill": "none", "pointer-events": "all"}
    ElementTree.SubElement(group, "circle", {**position, **target})
    circle = {
        "class": "sign",
        "r": px(TOGGLE_RADIUS),
        "fill": theme.background,
        "stroke": theme.line,
    }
    ElementTree.SubElement(group, "circle", {**position, **circle})
    lines = f"M{px(x - 4)},{px(y)}h8" + ("" if is_open else f"M{px(x)},{px(y - 4)}v8")
    ElementTree.SubElement(group, "path", {"d": lines, "stroke": theme.line, "stroke-width": "1.4"})


def flag_rect(centre: Point, *, is_first: bool) -> Rect:
    """Return the rectangle that a warning covers."""
    half = _FIRST_FLAG if is_first else _FLAG
    x, y = centre
    return Rect(x - half, y - half, x + half, y + 0.8 * half)


def draw_flag(parent: ElementTree.Element, centre: Point, theme: Theme, *, is_first: bool) -> None:
    """Draw a warning: an exclamation mark in a triangle, larger and filled on the first node."""
    rect = flag_rect(centre, is_first=is_first)
    fill, stroke = (theme.flag, theme.background) if is_first else (theme.background, theme.flag)
    top, left, right = (centre[0], rect.top), (rect.left, rect.bottom), (rect.right, rect.bottom)
    triangle = f"M{path_point(top)}L{path_point(right)}L{path_point(left)}Z"
    group = ElementTree.SubElement(parent, "g", {"class": "flag" + " first" * is_first})
    outline = {"d": triangle, "fill": fill, "stroke": theme.flag, "stroke-width": "1.6"}
    ElementTree.SubElement(group, "path", {"class": "sign", "stroke-linejoin": "round", **outline})
    height = rect.bottom - rect.top
    bar = f"M{path_point((centre[0], rect.top + 0.34 * height))}v{px(0.3 * height)}"
    dot = f"M{path_point((centre[0], rect.bottom - 0.17 * height))}v{px(0.07 * height)}"
    line = {"d": bar + dot, "stroke": stroke, "stroke-width": px(0.11 * height + 0.2)}
    ElementTree.SubElement(group, "path", {"class": "bang", **line})
