"""The signs that stand on nodes and frames: to open and close by, and to be warned by."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.view import label
from irviz.view.box import Box
from irviz.view.element import number, point
from irviz.view.layout import Point
from irviz.view.style import Theme

TOGGLE_RADIUS = 8.0
_FLAG, _FIRST_FLAG = 8.0, 11.0
"""Half the width of the triangle, and of that on the first node."""


def sign_place(x: float, y: float, width: float) -> Point:
    """Return where the sign of a box stands that opens or closes it: at its upper right corner."""
    return (x + width, y)


def draw_toggle(
    parent: ElementTree.Element, toggled: str, corner: Point, theme: Theme, *, is_open: bool
) -> None:
    """Draw the sign that opens or closes what it stands on: a plus or a minus in a circle."""
    group = ElementTree.SubElement(
        parent, "g", {"class": "toggle", "data-toggle": label.printable(toggled)}
    )
    ElementTree.SubElement(group, "title").text = "close" if is_open else "open"
    x, y = corner
    place = {"cx": number(x), "cy": number(y)}
    reach = {"class": "reach", "r": "16", "fill": "none", "pointer-events": "all"}
    ElementTree.SubElement(group, "circle", {**place, **reach})
    circle = {
        "class": "sign",
        "r": number(TOGGLE_RADIUS),
        "fill": theme.background,
        "stroke": theme.line,
    }
    ElementTree.SubElement(group, "circle", {**place, **circle})
    sign = f"M{number(x - 4)},{number(y)}h8" + (
        "" if is_open else f"M{number(x)},{number(y - 4)}v8"
    )
    ElementTree.SubElement(group, "path", {"d": sign, "stroke": theme.line, "stroke-width": "1.4"})


def flag_box(middle: Point, *, is_first: bool) -> Box:
    """Return the room that a warning takes."""
    half = _FIRST_FLAG if is_first else _FLAG
    x, y = middle
    return Box(x - half, y - half, x + half, y + 0.8 * half)


def draw_flag(parent: ElementTree.Element, middle: Point, theme: Theme, *, is_first: bool) -> None:
    """Draw a warning: an exclamation mark in a triangle, larger and filled on the first node."""
    box = flag_box(middle, is_first=is_first)
    inside, stroke = (theme.flag, theme.background) if is_first else (theme.background, theme.flag)
    top, left, right = (middle[0], box.top), (box.left, box.bottom), (box.right, box.bottom)
    triangle = f"M{point(top)}L{point(right)}L{point(left)}Z"
    group = ElementTree.SubElement(parent, "g", {"class": "flag" + " first" * is_first})
    outline = {"d": triangle, "fill": inside, "stroke": theme.flag, "stroke-width": "1.6"}
    ElementTree.SubElement(group, "path", {"class": "sign", "stroke-linejoin": "round", **outline})
    height = box.bottom - box.top
    bar = f"M{point((middle[0], box.top + 0.34 * height))}v{number(0.3 * height)}"
    dot = f"M{point((middle[0], box.bottom - 0.17 * height))}v{number(0.07 * height)}"
    ink = {"d": bar + dot, "stroke": stroke, "stroke-width": number(0.11 * height + 0.2)}
    ElementTree.SubElement(group, "path", {"class": "bang", **ink})
