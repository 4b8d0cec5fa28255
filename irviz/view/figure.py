"""A finished picture: an SVG that displays itself in a notebook and can be saved."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from irviz.errors import SaveError
from irviz.safe_files import atomic_write, target_path
from irviz.view.svg_primitives import WIDE_FONTS, add, add_text, is_wide, px, shorten, svg_text
from irviz.view.theme import ThemeName, dark_where_the_page_is, get_theme


@dataclass(frozen=True)
class Figure:
    """A picture as an SVG document; `width` and `height` are in px."""

    svg: str
    width: float
    height: float

    def __repr__(self) -> str:
        """Return a short description: the text of the picture is in `svg`."""
        return f"<Figure of {len(self.svg)} bytes of SVG; save it with .save('name.svg')>"

    def _repr_svg_(self) -> str:
        return dark_where_the_page_is(self.svg)

    @property
    def formats(self) -> Sequence[str]:
        """The file suffixes that it can be saved with."""
        return (".svg", ".pdf", ".png")

    def content(self, suffix: str) -> bytes:
        """Return the picture as a file's content; raise SaveError for a suffix not in `formats`."""
        match suffix.lower():
            case ".svg":
                return self.svg.encode()
            case ".pdf":
                return _typeset(self, "pdf")
            case ".png":
                return _typeset(self, "png")
        raise SaveError(f"there is no format {suffix!r}: choose one of {', '.join(self.formats)}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file atomically; the suffix chooses the format.

        Raises:
            SaveError: The suffix is not one of `formats`, or the file cannot be written.
        """
        target = target_path(path, self.formats)
        content = self.content(target.suffix)
        with atomic_write(target) as partial:
            partial.write_bytes(content)
        return target


# --- Convert SVG to PDF and PNG with Typst, which keeps lines and text as vectors -----------------


_PAGE = b"""#set document(date: none)
#set page(width: auto, height: auto, margin: 0pt)
#image(
  bytes(sys.inputs.svg), format: "svg", fit: "stretch",
  width: float(sys.inputs.width) * 1pt, height: float(sys.inputs.height) * 1pt,
)
"""
_POINTS_PER_PIXEL = 0.75
_PIXELS_PER_INCH = 192.0
"""This gives two pixels for each unit of the SVG."""


def _typeset(figure: Figure, kind: Literal["pdf", "png"]) -> bytes:
    """Return a picture as a PDF of one page with embedded fonts, or as a PNG of twice its size.

    The size of a PNG is rounded, because for a fractional size Typst drops a row of pixels in the
    middle.
    """
    import typst  # which is large, and seldom needed

    _warn_of_missing_letters(figure.svg)
    size = {"width": figure.width, "height": figure.height}
    if kind == "png":
        size = {side: round(px) for side, px in size.items()}
    inputs = {side: str(px * _POINTS_PER_PIXEL) for side, px in size.items()}
    inputs["svg"] = figure.svg
    return typst.compile(_PAGE, sys_inputs=inputs, format=kind, ppi=_PIXELS_PER_INCH)


def _warn_of_missing_letters(svg: str) -> None:
    """Warn if a picture has Chinese or Korean letters that no font on this machine has."""
    import typst

    if any(is_wide(char) for char in svg if not char.isascii()):
        families = typst.Fonts().families()
        if not any(name in families for name in WIDE_FONTS):
            warnings.warn(
                "the picture has Chinese or Korean letters, and this machine has none of the fonts "
                f"{', '.join(WIDE_FONTS)}: install one, such as Debian's fonts-noto-cjk, or use "
                "the SVG, whose letters the reader's machine draws",
                stacklevel=3,
            )


# --- Annotate a finished picture with a title, or with outlines around nodes ----------------------


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
        if group.get("data-node") in nodes and not {"node", "weight"}.isdisjoint(classes):
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
