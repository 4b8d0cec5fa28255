"""Markers on nodes and clusters: the buttons that expand and collapse them, and warnings."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.view.geometry import Point, Rect
from irviz.view.svg_primitives import add, add_tooltip, path
from irviz.view.theme import Theme

TOGGLE_RADIUS = 8.0
_FLAG, _FIRST_FLAG = 8.0, 11.0
"""Half the width of a warning, and of the one on the first node."""


def draw_toggle(
    parent: ElementTree.Element, toggled: str, centre: Point, theme: Theme, *, is_open: bool
) -> None:
    """Draw the button that expands or collapses something: a plus or a minus in a circle."""
    group = add(parent, "g", "toggle", data_toggle=toggled)
    add_tooltip(group, "close" if is_open else "open")
    x, y = centre
    add(group, "circle", "reach", cx=x, cy=y, r=16, fill="none", pointer_events="all")
    colours = {"fill": theme.background, "stroke": theme.line}
    add(group, "circle", "sign", cx=x, cy=y, r=TOGGLE_RADIUS, **colours)
    upright = () if is_open else ("M", x, y - 4, "v", 8)
    lines = path("M", x - 4, y, "h", 8, *upright)
    add(group, "path", d=lines, stroke=theme.line, stroke_width=1.4)


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
    group = add(parent, "g", "flag" + " first" * is_first)
    triangle = path("M", x, top, "L", right, bottom, "L", left, bottom, "Z")
    outline = {"d": triangle, "fill": fill, "stroke": theme.flag}
    add(group, "path", "sign", stroke_linejoin="round", stroke_width=1.6, **outline)
    bar = ("M", x, top + 0.34 * height, "v", 0.3 * height)
    dot = ("M", x, bottom - 0.17 * height, "v", 0.07 * height)
    add(group, "path", "bang", d=path(*bar, *dot), stroke=stroke, stroke_width=0.11 * height + 0.2)
