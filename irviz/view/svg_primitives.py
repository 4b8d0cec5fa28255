"""The SVG document, lines of text, and numbers in the form that every picture writes them."""

from __future__ import annotations

import unicodedata
from xml.etree import ElementTree

from irviz.view.geometry import Point, Rect, Size
from irviz.view.theme import Theme

_MONOSPACE = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_ADVANCE = 0.602  # the width of a character of the usual monospaced fonts, in ems
_ASCENT, _DESCENT = 0.75, 0.22  # of these fonts, in ems
_MAX_CHARACTERS = 44


def svg_document(size: Size, css_class: str, label: str, theme: Theme) -> ElementTree.Element:
    """Return the root of a picture in the theme's background colour.

    Args:
        css_class: The root's classes beside `irviz`.
        label: The picture's description for screen readers.
    """
    width, height = px(size.width), px(size.height)
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": f"irviz {css_class}".rstrip(),
            "width": width,
            "height": height,
            "viewBox": f"0 0 {width} {height}",
            "role": "img",
            "aria-label": printable(label),
            "font-family": _MONOSPACE,
        },
    )
    background = {"class": "paper", "width": "100%", "height": "100%", "fill": theme.background}
    ElementTree.SubElement(root, "rect", background)
    return root


def svg_text(root: ElementTree.Element) -> str:
    """Return a document as text; the same document gives the same bytes."""
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def add_text(
    parent: ElementTree.Element,
    text: str,
    position: Point,
    size: float,
    fill: str,
    anchor: str = "middle",
) -> ElementTree.Element:
    """Add one line of text; the position is that of its anchor on the baseline."""
    attributes = {
        "x": px(position[0]),
        "y": px(position[1]),
        "font-size": px(size),
        "text-anchor": anchor,
        "fill": fill,
    }
    element = ElementTree.SubElement(parent, "text", attributes)
    element.text = printable(text)
    return element


def add_tooltip(parent: ElementTree.Element, text: str) -> None:
    """Add the text that a browser shows where the pointer rests."""
    ElementTree.SubElement(parent, "title").text = printable(text)


def text_width(text: str, size: float) -> float:
    """Return the width of monospaced text in a font of this size."""
    cells = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
    return cells * size * _ADVANCE


def text_rect(text: str, position: Point, size: float, anchor: str = "middle") -> Rect:
    """Return the rectangle that `add_text` covers."""
    width = text_width(text, size)
    left = position[0] - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    y = position[1]
    return Rect(left, y - _ASCENT * size, left + width, y + _DESCENT * size)


def shorten(text: str) -> str:
    """Return one printable line of at most 44 characters."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _MAX_CHARACTERS else line[: _MAX_CHARACTERS - 1] + "…"


def printable(text: str) -> str:
    """Replace every character that XML forbids by U+FFFD."""
    return "".join(char if _is_xml(ord(char)) else "\ufffd" for char in text)


def _is_xml(code: int) -> bool:
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def path_point(position: Point) -> str:
    """Return a point in the form of a path's `d` attribute."""
    return f"{px(position[0])},{px(position[1])}"


def px(value: float) -> str:
    """Return a number with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
