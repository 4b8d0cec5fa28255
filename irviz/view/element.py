"""The words and numbers that every part of a picture is written with."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.view.layout import Point


def text(
    parent: ElementTree.Element,
    words: str,
    place: Point,
    size: float,
    fill: str,
) -> ElementTree.Element:
    """Write one line, its middle above the place; return the element, to be restyled."""
    attributes = {
        "x": number(place[0]),
        "y": number(place[1]),
        "font-size": number(size),
        "text-anchor": "middle",
        "fill": fill,
    }
    element = ElementTree.SubElement(parent, "text", attributes)
    element.text = words
    return element


def point(place: Point) -> str:
    """Return a point as paths have it."""
    return f"{number(place[0])},{number(place[1])}"


def number(value: float) -> str:
    """Return a number of px, to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
