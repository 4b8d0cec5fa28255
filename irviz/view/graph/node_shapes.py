"""Shapes of nodes: their sizes and their outlines."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from irviz.model.graph.graph import INPUT_KINDS, OUTPUT, Node
from irviz.view.geometry import Rect, Size
from irviz.view.graph import labels
from irviz.view.svg_primitives import add, add_rect, path, text_width
from irviz.view.theme import NodeShape, node_style

VALUE_HEIGHT = 20.0
"""The height of the space at a node's outlet for the label of its value."""
_VALUE_MARGIN = 10.0
_MIN_CELL_WIDTH = 5
_BAR = 7.0
_STEP = 2.5
_CUT = 8.0
_LID = 3.0
_RADII = {NodeShape.ROUND_BOX: 9.0, NodeShape.STACK: 2.0}


def shape_size(node: Node, arguments: int) -> Size:
    """Return the size of a node's shape, wide enough for its edges to enter side by side."""
    title_width = text_width(labels.title(node), labels.NAME_SIZE)
    if node_style(node).shape is NodeShape.CIRCLE and title_width <= 44:
        side = max(34.0, title_width + 14)
        return Size(side, side)
    if node.kind in INPUT_KINDS:
        return Size(max(34.0, title_width + 20), 28.0)
    lines = labels.lines(node)
    label_width = max([title_width, *(text_width(line, labels.NOTE_SIZE) for line in lines)])
    beside = 28 if node.is_pure else 48  # with the number of an effect
    width = max(72.0, label_width + beside, value_width(node))
    if arguments:
        width = arguments * max(_MIN_CELL_WIDTH, math.ceil(width / arguments))
    return Size(width, 30.0 + 12.0 * len(lines))


def layout_size(node: Node, arguments: int) -> Size:
    """Return the size that the layout reserves: the shape, and the label of its value."""
    size = shape_size(node, arguments)
    return Size(max(size.width, value_width(node)), size.height + VALUE_HEIGHT)


def bar_width(node: Node) -> float:
    """Return how much of a node's left side a bar takes."""
    return _BAR if node_style(node).shape is NodeShape.BARRED_BOX else 0.0


def output_size() -> Size:
    """Return the size of the node that stands for the function's result."""
    return Size(text_width(OUTPUT, labels.NOTE_SIZE) + 16, 20.0)


def value_width(node: Node) -> float:
    """Return the width that the label of a node's value takes."""
    return text_width(labels.value_label(node), labels.VALUE_SIZE) + _VALUE_MARGIN


def add_shape(
    parent: ElementTree.Element, shape: NodeShape, rect: Rect, **style: str | float
) -> None:
    """Draw a shape; `style` are attributes of all its elements."""
    width, height = rect.width, rect.height
    if shape is NodeShape.CIRCLE and math.isclose(width, height):
        cx, cy = rect.centre
        add(parent, "circle", "shape", cx=cx, cy=cy, r=width / 2, **style)
    elif outline := _outline(shape, rect):
        add(parent, "path", "shape", d=outline, **style)
    else:
        radii = {"rx": {NodeShape.CIRCLE: height / 2, **_RADII}.get(shape, 0.0)}
        if shape is NodeShape.DRUM:
            radii = {"rx": width / 2, "ry": _LID}
        add_rect(parent, rect, "shape", **radii, **style)
    if lines := _lines(shape, rect):
        add(parent, "path", "bars", d=lines, **style)


def _outline(shape: NodeShape, rect: Rect) -> str:
    """Return the outline of a shape, "" for boxes and circles."""
    x, y, width, height = rect.left, rect.top, rect.width, rect.height
    if shape is NodeShape.SLANTED_BOX:
        top = width - 2 * _CUT
        sides = ("l", _CUT, height / 2, "l", -_CUT, height / 2, "h", -top, "Z")
        return path("M", x, y + height / 2, "L", x + _CUT, y, "h", top, *sides)
    if shape is NodeShape.CUT_BOX:
        corner = ("l", _CUT, _CUT)
        return path("M", x, y, "h", width - _CUT, *corner, "v", height - _CUT, "h", -width, "Z")
    return ""


def _lines(shape: NodeShape, rect: Rect) -> str:
    """Return the lines that a shape has in addition to its outline, "" for none."""
    (x, y, right, _), height = rect, rect.height
    if shape is NodeShape.BARRED_BOX:
        return path("M", x + _BAR, y, "v", height, "M", right - _BAR, y, "v", height)
    if shape is NodeShape.STACK:
        steps = (_STEP, 2 * _STEP)
        return "".join(path("M", right + n, y + n, "v", height - 2 * n) for n in steps)
    if shape is NodeShape.DRUM:
        return path("M", x, y + _LID, "a", rect.width / 2, _LID, 0, 0, 0, rect.width, 0)
    return ""
