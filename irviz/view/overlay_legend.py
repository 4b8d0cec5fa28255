"""The legend of an overlay: what it tells, and what the ends of its ramp stand for."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.view import label
from irviz.view.dot import Size
from irviz.view.element import number, text
from irviz.view.layout import Point
from irviz.view.nodes import tint
from irviz.view.overlay import Mark, Overlay
from irviz.view.sign import draw_flag
from irviz.view.style import Theme

_RAMP = Size(160.0, 12.0)
_CELLS = 32
_ROW = 22.0
_GAP = 8.0
_FLAG = 30.0
"""The room before the words of the warning, in which its sign stands."""


def legend_size(overlay: Overlay) -> Size:
    """Return the room that a legend takes."""
    title = label.width(overlay.title, label.VALUE_SIZE)
    rows = 3 if _flag_width(overlay) else 2
    return Size(max(title, _ramp_width(overlay), _flag_width(overlay)), rows * _ROW - 6)


def draw_legend(parent: ElementTree.Element, overlay: Overlay, corner: Point, theme: Theme) -> None:
    """Draw a legend with its upper left corner there."""
    group = ElementTree.SubElement(parent, "g", {"class": "legend"})
    left, top = corner
    _line(group, overlay.title, (left, top + 11), label.VALUE_SIZE, theme)
    row = top + _ROW
    _line(group, overlay.low, (left, row + 10), label.NOTE_SIZE, theme)
    start = left + label.width(overlay.low, label.NOTE_SIZE) + _GAP
    _draw_ramp(group, (start, row), theme)
    _line(group, overlay.high, (start + _RAMP.width + _GAP, row + 10), label.NOTE_SIZE, theme)
    if _flag_width(overlay):
        draw_flag(group, (left + 10, row + _ROW + 6), theme, is_first=False)
        _line(group, overlay.flag, (left + _FLAG, row + _ROW + 10), label.NOTE_SIZE, theme)


def _draw_ramp(group: ElementTree.Element, corner: Point, theme: Theme) -> None:
    """Draw the tints side by side: a gradient would need an id, which a page has once."""
    left, top = corner
    width = _RAMP.width / _CELLS
    for index in range(_CELLS):
        cell = ElementTree.SubElement(group, "rect", {"class": "cell"})
        overlap = 0.5 if index < _CELLS - 1 else 0.0  # no paper is seen between two
        _place(cell, (left + index * width, top), Size(width + overlap, _RAMP.height))
        cell.set("fill", tint(cell, Mark(index / (_CELLS - 1), ""), theme))
    outline = {"class": "ramp", "fill": "none", "stroke": theme.line}
    _place(ElementTree.SubElement(group, "rect", outline), corner, _RAMP)


def _place(rectangle: ElementTree.Element, corner: Point, size: Size) -> None:
    sides = {"x": corner[0], "y": corner[1], "width": size.width, "height": size.height}
    rectangle.attrib.update({name: number(value) for name, value in sides.items()})


def _ramp_width(overlay: Overlay) -> float:
    words = label.width(overlay.low + overlay.high, label.NOTE_SIZE)
    return words + _RAMP.width + 2 * _GAP


def _flag_width(overlay: Overlay) -> float:
    """Return the width of what is said about warnings, 0 where there is none."""
    is_there = any(mark.is_flagged for mark in overlay.marks.values())
    return _FLAG + label.width(overlay.flag, label.NOTE_SIZE) if is_there and overlay.flag else 0


def _line(parent: ElementTree.Element, words: str, place: Point, size: float, theme: Theme) -> None:
    text(parent, label.printable(words), place, size, theme.text).set("text-anchor", "start")
