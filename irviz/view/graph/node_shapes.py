"""Shapes of nodes: their sizes, and their outlines as SVG elements without colours."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

from irviz.model.graph.graph import INPUT_KINDS, OUTPUT, Node
from irviz.view.geometry import Point, Size
from irviz.view.graph import label
from irviz.view.svg_primitives import text_width
from irviz.view.theme import NodeShape, node_style

VALUE_HEIGHT = 20.0
"""The height of the space at a node's outlet for the label of its value."""
_VALUE_MARGIN = 10.0
_MIN_CELL_WIDTH = 5
_BAR = 7.0
_STEP = 2.5
_CUT = 8.0
_LID = 3.0


def shape_size(node: Node, arguments: int) -> Size:
    """Return the size of a node's shape, wide enough for its edges to enter side by side."""
    title_width = text_width(label.title(node), label.NAME_SIZE)
    note = label.note(node)
    if node_style(node).shape is NodeShape.CIRCLE and title_width <= 44:
        side = max(34.0, title_width + 14)
        return Size(side, side)
    if node.kind in INPUT_KINDS:
        return Size(max(34.0, title_width + 20), 28.0)
    label_width = max(title_width, text_width(note, label.NOTE_SIZE))
    width = max(72.0, label_width + 28, _value_width(node))
    if arguments:
        width = arguments * max(_MIN_CELL_WIDTH, math.ceil(width / arguments))
    return Size(width, 42.0 if note else 30.0)


def layout_size(node: Node, arguments: int) -> Size:
    """Return the size that the layout reserves: the shape, and the label of its value."""
    size = shape_size(node, arguments)
    return Size(max(size.width, _value_width(node)), size.height + VALUE_HEIGHT)


def output_size() -> Size:
    """Return the size of the node that stands for the function's result."""
    return Size(text_width(OUTPUT, label.NOTE_SIZE) + 16, 20.0)


def _value_width(node: Node) -> float:
    return text_width(label.value_label(node), label.VALUE_SIZE) + _VALUE_MARGIN


def shape_elements(shape: NodeShape, centre: Point, size: Size) -> list[Element]:
    """Return the elements that draw a shape around its centre, back to front."""
    x, y = centre[0] - size.width / 2, centre[1] - size.height / 2
    match shape:
        case NodeShape.CIRCLE if size.width == size.height:
            return [_element("circle", cx=centre[0], cy=centre[1], r=size.width / 2)]
        case NodeShape.CIRCLE:
            return [_box(x, y, size, size.height / 2)]
        case NodeShape.BOX:
            return [_box(x, y, size, 0)]
        case NodeShape.ROUND_BOX:
            return [_box(x, y, size, 9)]
        case NodeShape.BARRED_BOX:
            bars = (x + _BAR, x + size.width - _BAR)
            path = "".join(f"M{bar:.2f},{y:.2f}v{size.height:.2f}" for bar in bars)
            return [_box(x, y, size, 0), Element("path", {"class": "bars", "d": path})]
        case NodeShape.STACK:
            lines = "".join(
                f"M{x + size.width + step:.2f},{y + step:.2f}v{size.height - 2 * step:.2f}"
                for step in (_STEP, 2 * _STEP)
            )
            return [_box(x, y, size, 2), Element("path", {"class": "bars", "d": lines})]
        case NodeShape.DRUM:
            half = size.width / 2
            body = _box(x, y, size, half)
            body.set("ry", f"{_LID:.2f}")
            lid = f"M{x:.2f},{y + _LID:.2f}a{half:.2f},{_LID} 0 0 0 {size.width:.2f},0"
            return [body, Element("path", {"class": "bars", "d": lid})]
        case NodeShape.SLANTED_BOX:
            path = (
                f"M{x:.2f},{centre[1]:.2f}L{x + _CUT:.2f},{y:.2f}h{size.width - 2 * _CUT:.2f}"
                f"l{_CUT},{size.height / 2:.2f}l-{_CUT},{size.height / 2:.2f}"
                f"h{2 * _CUT - size.width:.2f}Z"
            )
            return [Element("path", {"class": "shape", "d": path})]
        case NodeShape.CUT_BOX:
            path = (
                f"M{x:.2f},{y:.2f}h{size.width - _CUT:.2f}l{_CUT},{_CUT}"
                f"v{size.height - _CUT:.2f}h{-size.width:.2f}Z"
            )
            return [Element("path", {"class": "shape", "d": path})]


def _box(x: float, y: float, size: Size, radius: float) -> Element:
    return _element("rect", x=x, y=y, width=size.width, height=size.height, rx=radius)


def _element(tag: str, **numbers: float) -> Element:
    return Element(tag, {"class": "shape", **{k: f"{v:.2f}" for k, v in numbers.items()}})
