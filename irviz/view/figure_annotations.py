"""Annotate a finished picture with a title, or with outlines around nodes."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from xml.etree import ElementTree

from irviz.view.figure import Figure
from irviz.view.svg_primitives import add, add_text, px, shorten, svg_text
from irviz.view.theme import ThemeName, get_theme

_SVG = "http://www.w3.org/2000/svg"
_TITLE_HEIGHT, _TITLE_SIZE, _MARGIN = 34.0, 16.0, 16.0
_FRAME_WIDTH = 4.0


def with_title(figure: Figure, title: str, theme: ThemeName = "course") -> Figure:
    """Return the picture with a line of text above it."""
    root = _parsed(figure)
    picture = ElementTree.Element("g", {"transform": f"translate(0 {px(_TITLE_HEIGHT)})"})
    for part in list(root)[1:]:  # all but its ground
        root.remove(part)
        picture.append(part)
    at = (_MARGIN, _MARGIN + 8)
    colour = get_theme(theme).text
    add_text(root, shorten(title), at, _TITLE_SIZE, colour, "start", font_weight="600")
    root.append(picture)
    height = figure.height + _TITLE_HEIGHT
    root.set("height", px(height))
    root.set("viewBox", f"0 0 {px(figure.width)} {px(height)}")
    return Figure(svg_text(root), figure.width, height)


def with_highlight(figure: Figure, nodes: Collection[str], theme: ThemeName = "course") -> Figure:
    """Return the picture with thick outlines around those of the nodes that are drawn."""
    root = _parsed(figure)
    colour = get_theme(theme).changes["changed"]
    for group in list(root.iter("g")):
        classes = group.get("class", "").split()
        if group.get("data-node") in nodes and "node" in classes:
            shape = next((one for one in group if one.get("class") == "shape"), None)
            if shape is not None:
                outline = deepcopy(shape)
                outline.attrib.update(
                    {"fill": "none", "stroke": colour, "stroke-width": px(_FRAME_WIDTH)}
                )
                add(group, "g", "highlight").append(outline)
    return Figure(svg_text(root), figure.width, figure.height)


def _parsed(figure: Figure) -> ElementTree.Element:
    """Return the root element, keeping names as they are written."""
    root = ElementTree.fromstring(figure.svg)  # noqa: S314 - irviz wrote it
    for one in root.iter():
        one.tag = one.tag.removeprefix(f"{{{_SVG}}}")
    root.set("xmlns", _SVG)
    return root
