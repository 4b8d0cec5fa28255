"""Points and rectangles, SVG documents and elements, and the text and numbers of all pictures."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.units import beginning
from irviz.view.theme import Theme

Point = tuple[float, float]
"""A position: x to the right, y downwards."""


class Size(NamedTuple):
    """A width and a height."""

    width: float
    height: float


class Rect(NamedTuple):
    """A rectangle by its sides."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, centre: Point, size: Size) -> Rect:
        """Return the rectangle of a size around its centre."""
        x, y, half, high = *centre, size.width / 2, size.height / 2
        return cls(x - half, y - high, x + half, y + high)

    @classmethod
    def at(cls, corner: Point, width: float, height: float) -> Rect:
        """Return the rectangle of a size with its upper left corner at a point."""
        return cls(*corner, corner[0] + width, corner[1] + height)

    @property
    def width(self) -> float:
        """The width."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """The height."""
        return self.bottom - self.top

    @property
    def centre(self) -> Point:
        """The point in the middle."""
        return ((self.left + self.right) / 2, (self.top + self.bottom) / 2)

    def side(self, direction: float) -> float:
        """Return y of the lower side for a direction of 1, of the upper one for -1."""
        return self.bottom if direction > 0 else self.top

    def overlaps(self, other: Rect) -> bool:
        """Return whether two rectangles overlap in more than a border."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def contains(self, other: Rect) -> bool:
        """Return whether another rectangle is inside this one."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.top <= other.top
            and other.bottom <= self.bottom
        )


# --- Documents and elements -----------------------------------------------------------------------


MONOSPACE = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
WIDE_FONTS = (
    "Noto Sans Mono CJK SC",
    "Noto Sans CJK SC",
    "Noto Sans CJK KR",
    "PingFang SC",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Malgun Gothic",
)
"""Fonts with Chinese and Korean letters, those of Debian, macOS and Windows."""
_ADVANCE = 0.602  # the width of a character of the usual monospaced fonts, in ems
_ASCENT, _DESCENT = 0.75, 0.22  # of these fonts, in ems
MAX_CHARACTERS = 44
"""The most characters of a title or a note."""
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def svg_document(size: Size, css_class: str, label: str, theme: Theme) -> ElementTree.Element:
    """Return the root of a picture in the theme's colour; `label` is for screen readers."""
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
            "font-family": MONOSPACE,
        },
    )
    add(root, "rect", "paper", width="100%", height="100%", fill=theme.background)
    return root


def svg_text(root: ElementTree.Element) -> str:
    """Return a document as text; the same document gives the same bytes."""
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def add(
    parent: ElementTree.Element, tag: str, css_class: str = "", /, **attributes: str | float
) -> ElementTree.Element:
    """Add an element; `_` in the name of an attribute stands for a hyphen, numbers are in px."""
    element = ElementTree.SubElement(parent, tag, {"class": css_class} if css_class else {})
    for name, value in attributes.items():
        text = printable(value) if isinstance(value, str) else px(value)
        element.set(name.replace("_", "-"), text)
    return element


def add_rect(
    parent: ElementTree.Element, rect: Rect, css_class: str = "", /, **attributes: str | float
) -> ElementTree.Element:
    """Add a rectangle, with attributes as in `add`."""
    size = {"width": rect.width, "height": rect.height}
    return add(parent, "rect", css_class, x=rect.left, y=rect.top, **size, **attributes)


def add_text(
    parent: ElementTree.Element,
    text: str,
    position: Point,
    size: float,
    fill: str,
    anchor: str = "middle",
    css_class: str = "",
    **attributes: str,
) -> ElementTree.Element:
    """Add one line of text; the position is that of its anchor on the baseline."""
    x, y = position
    style = {"text_anchor": anchor, "fill": fill, **attributes}
    element = add(parent, "text", css_class, x=x, y=y, font_size=size, **style)
    element.text = printable(text)
    return element


def keep_spaces(element: ElementTree.Element) -> None:
    """Keep all spaces of a text: SVG joins them, and librsvg drops those at the ends of spans."""
    element.set("xml:space", "preserve")


def add_tooltip(parent: ElementTree.Element, text: str) -> None:
    """Add the text that a browser shows where the pointer rests."""
    add(parent, "title").text = printable(text)


@lru_cache(maxsize=4096)
def text_width(text: str, size: float) -> float:
    """Return the width of monospaced text in a font of this size."""
    return sum(2 if is_wide(char) else 1 for char in text) * size * _ADVANCE


def is_wide(char: str) -> bool:
    """Return whether a character takes two cells, as Chinese and Korean ones do."""
    return unicodedata.east_asian_width(char) in "WF"


def text_rect(text: str, position: Point, size: float, anchor: str = "middle") -> Rect:
    """Return the rectangle that `add_text` covers."""
    width = text_width(text, size)
    left = position[0] - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    y = position[1]
    return Rect(left, y - _ASCENT * size, left + width, y + _DESCENT * size)


def shorten(text: str) -> str:
    """Return one printable line of at most 44 characters."""
    return beginning(printable(" ".join(text.split())), MAX_CHARACTERS)


def shorten_name(text: str, most: int = MAX_CHARACTERS) -> str:
    """Shorten a name to one printable line that keeps both its ends."""
    line = printable(" ".join(text.split()))
    kept = most // 2
    return line if len(line) <= most else f"{line[: most - kept - 1]}…{line[-kept:]}"


def printable(text: str) -> str:
    """Replace characters that XML forbids by U+FFFD, and bidirectional controls by escapes."""
    return visible(_NOT_XML.sub("\ufffd", text))


def path(*steps: str | float) -> str:
    """Return the `d` attribute of a path: commands and their numbers in px."""
    joined = ",".join(step if isinstance(step, str) else px(step) for step in steps)
    return re.sub(r",?([A-Za-z]+),?", r"\1", joined)


def px(value: float) -> str:
    """Return a number with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


# --- Escape bidirectional control characters: text is shown in the order of its characters --------


_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Replace bidirectional control characters by escapes with their code points.

    Unescaped, they could display names in a file in a misleading order (Unicode Technical Report
    36, section 2.5).
    """
    return _BIDIRECTIONAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
