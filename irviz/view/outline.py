"""The outlines of nodes, as SVG elements without colours."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from irviz.view.dot import Size
from irviz.view.layout import Point
from irviz.view.style import Shape

_BAR = 7.0
_STEP = 2.5
_CUT = 8.0
_LID = 3.0


def outline(shape: Shape, centre: Point, size: Size) -> list[Element]:
    """Return the elements that draw a shape of this size around its centre, back to front."""
    x, y = centre[0] - size.width / 2, centre[1] - size.height / 2
    match shape:
        case Shape.CIRCLE if size.width == size.height:
            return [_element("circle", cx=centre[0], cy=centre[1], r=size.width / 2)]
        case Shape.CIRCLE:
            return [_box(x, y, size, size.height / 2)]
        case Shape.BOX:
            return [_box(x, y, size, 0)]
        case Shape.ROUND_BOX:
            return [_box(x, y, size, 9)]
        case Shape.BARRED_BOX:
            bars = (x + _BAR, x + size.width - _BAR)
            path = "".join(f"M{bar:.2f},{y:.2f}v{size.height:.2f}" for bar in bars)
            return [_box(x, y, size, 0), Element("path", {"class": "bars", "d": path})]
        case Shape.STACK:
            lines = "".join(
                f"M{x + size.width + step:.2f},{y + step:.2f}v{size.height - 2 * step:.2f}"
                for step in (_STEP, 2 * _STEP)
            )
            return [_box(x, y, size, 2), Element("path", {"class": "bars", "d": lines})]
        case Shape.DRUM:
            half = size.width / 2
            body = _box(x, y, size, half)
            body.set("ry", f"{_LID:.2f}")
            lid = f"M{x:.2f},{y + _LID:.2f}a{half:.2f},{_LID} 0 0 0 {size.width:.2f},0"
            return [body, Element("path", {"class": "bars", "d": lid})]
        case Shape.SLANTED_BOX:
            path = (
                f"M{x:.2f},{centre[1]:.2f}L{x + _CUT:.2f},{y:.2f}h{size.width - 2 * _CUT:.2f}"
                f"l{_CUT},{size.height / 2:.2f}l-{_CUT},{size.height / 2:.2f}"
                f"h{2 * _CUT - size.width:.2f}Z"
            )
            return [Element("path", {"class": "shape", "d": path})]
        case Shape.CUT_BOX:
            path = (
                f"M{x:.2f},{y:.2f}h{size.width - _CUT:.2f}l{_CUT},{_CUT}"
                f"v{size.height - _CUT:.2f}h{-size.width:.2f}Z"
            )
            return [Element("path", {"class": "shape", "d": path})]


def _box(x: float, y: float, size: Size, radius: float) -> Element:
    return _element("rect", x=x, y=y, width=size.width, height=size.height, rx=radius)


def _element(tag: str, **numbers: float) -> Element:
    return Element(tag, {"class": "shape", **{k: f"{v:.2f}" for k, v in numbers.items()}})
