"""Lecture figures: panels in a row, fitted to a slide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.errors import DrawError
from irviz.view.diff_figure import ARROW, draw_fat_arrow
from irviz.view.figure import Figure
from irviz.view.geometry import Size
from irviz.view.svg_primitives import (
    MONOSPACE,
    WIDE_FONTS,
    add,
    add_text,
    px,
    svg_document,
    svg_text,
    text_width,
)
from irviz.view.theme import Theme

SLIDE = Size(960.0, 540.0)
"""A slide of 16:9, in points."""
MIN_TEXT = 14.0
"""The smallest text that is readable from the last row, in points on such a slide."""
_MAX_TEXT = 26.0
_PX_PER_POINT = 4 / 3
_MARGIN = 6.0
_TITLE_SIZE, _CAPTION_SIZE, _ARROW_SIZE = 15.0, 12.0, 11.0
_TITLE_HEIGHT, _CAPTION_HEIGHT = 26.0, 22.0
_GAP = 8.0
_FONTS = MONOSPACE.replace("monospace", ", ".join([*map(repr, WIDE_FONTS), "monospace"]))


class TooSmallError(DrawError):
    """A text in the picture would be smaller than allowed.

    Attributes:
        points: The size of its smallest text.
    """

    def __init__(self, message: str, points: float) -> None:
        super().__init__(message)
        self.points = points


class Panel(NamedTuple):
    """A part of a figure: a group that is drawn at (0, 0), its size, and a line above it."""

    group: ElementTree.Element
    size: Size
    caption: str = ""


@dataclass(frozen=True)
class SlideText:
    """The words of a figure.

    Attributes:
        title: The line above the picture, "" for none.
        label: The name for screen readers.
        description: The description for screen readers.
        programs: The text of the programs that it shows, which is kept in the file.
    """

    title: str
    label: str
    description: str
    programs: Sequence[str] = ()


def slide_figure(
    panels: Sequence[Panel],
    arrows: Sequence[str],
    text: SlideText,
    theme: Theme,
    size: Size = SLIDE,
    min_text: float = MIN_TEXT,
) -> Figure:
    """Return the figure with its panels in a row, as large as fits on the slide.

    Args:
        arrows: The words above the fat arrow before each panel but the first; "" is drawn as space.
        size: The space for the figure on the slide, in points.
        min_text: The smallest text size allowed, in points.

    Raises:
        TooSmallError: A text would be smaller.
    """
    root = svg_document(Size(0, 0), "figure", "", theme)
    del root.attrib["aria-label"]
    root.set("font-family", _FONTS)
    _add_words(root, text)
    top = _MARGIN + (_TITLE_HEIGHT if text.title else 0.0)
    picture = add(root, "g", "panels")
    has_captions = any(panel.caption for panel in panels)
    y = top + (_CAPTION_HEIGHT if has_captions else 0.0)
    height = max(panel.size.height for panel in panels)
    x = _MARGIN
    for at, panel in enumerate(panels):
        if at:
            x = _draw_arrow(picture, arrows[at - 1], (x, y + height / 2), theme)
        width = max(panel.size.width, text_width(panel.caption, _CAPTION_SIZE))
        if panel.caption:
            place = (x + width / 2, y - 8)
            style = {"font_weight": "600"}
            add_text(picture, panel.caption, place, _CAPTION_SIZE, theme.text, **style)
        left = x + (width - panel.size.width) / 2
        panel.group.set(
            "transform", f"translate({px(left)} {px(y + (height - panel.size.height) / 2)})"
        )
        picture.append(panel.group)
        x += width
    width = max(x, _MARGIN + text_width(text.title, _TITLE_SIZE)) + _MARGIN
    if text.title:
        place, style = (width / 2, _MARGIN + 14), {"font_weight": "600"}
        add_text(root, text.title, place, _TITLE_SIZE, theme.text, **style)
    return _fitted(root, Size(width, y + height + _MARGIN), size, min_text)


def _fitted(root: ElementTree.Element, drawn: Size, size: Size, min_text: float) -> Figure:
    """Scale a picture to the slide; its own units stay what they are."""
    texts = [(float(one.get("font-size", "0")), "".join(one.itertext())) for one in root.iter()]
    texts = [(each, words) for each, words in texts if each and words.strip()]
    smallest, words = min(texts, default=(min_text, ""))
    largest, _ = max(texts, default=(min_text, ""))
    fits = min(size.width / drawn.width, size.height / drawn.height)
    scale = min(fits, max(_MAX_TEXT / largest, min_text / smallest))
    if smallest * scale < min_text - 0.05:
        points, needed = smallest * scale, min_text / smallest
        raise TooSmallError(
            f"the text {words!r} would be {points:.1f} pt high, and {min_text:g} pt is the least: "
            f"the figure needs {drawn.width * needed:.0f} × {drawn.height * needed:.0f} pt for "
            f"that, and has {size.width:g} × {size.height:g}. Show less of the program, give it a "
            f"larger size, or accept this by min_text = {int(points)}",
            points,
        )
    width, height = (side * scale * _PX_PER_POINT for side in drawn)
    for name, value in (("width", width), ("height", height)):
        root.set(name, px(value))
    root.set("viewBox", f"0 0 {px(drawn.width)} {px(drawn.height)}")
    return Figure(svg_text(root), width, height)


def _add_words(root: ElementTree.Element, text: SlideText) -> None:
    """Add title, description and programs, before all that is drawn."""
    words = [("title", "", text.label), ("desc", "", text.description)]
    words += [("metadata", "program", program) for program in text.programs]
    for at, (tag, css_class, content) in enumerate(words):
        element = add(root, tag, css_class)
        element.text = content
        root.remove(element)
        root.insert(at, element)


def _draw_arrow(
    parent: ElementTree.Element, words: str, start: tuple[float, float], theme: Theme
) -> float:
    """Draw a fat arrow at the right of a panel; return where the next one begins."""
    x, y = start
    if not words:
        return x + 2 * _GAP
    lines = words.split("\n")
    width = max(ARROW.width, *(text_width(line, _ARROW_SIZE) for line in lines))
    group = add(parent, "g", "transform")
    draw_fat_arrow(group, (x + _GAP + width / 2, y), theme.line, "right")
    for at, line in enumerate(reversed(lines)):
        place = (x + _GAP + width / 2, y - ARROW.height / 2 - 8 - at * 15)
        style = {"font_weight": "600"}
        add_text(group, line, place, _ARROW_SIZE, theme.text, **style)
    return x + width + 2 * _GAP
