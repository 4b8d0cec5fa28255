"""Lecture figures: panels in a row, fitted to a slide, and panels of code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.errors import DrawError
from irviz.view.figure import Figure
from irviz.view.module_diff import ARROW, draw_fat_arrow
from irviz.view.svg_primitives import (
    MONOSPACE,
    WIDE_FONTS,
    Point,
    Rect,
    Size,
    add,
    add_rect,
    add_text,
    printable,
    px,
    svg_document,
    svg_text,
    text_width,
)
from irviz.view.theme import Theme, mix_colours

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


# --- Code: lines of text in syntax colours --------------------------------------------------------


CODE_SIZE = 11.0
LINE_HEIGHT = 15.0
_BASELINE = 11.2
_TINT = 0.16
_HANGING = 4
_OPENING, _CLOSING = "([{", ")]}"
_OPERATORS = (" + ", " - ", " * ", " / ", " -> ")


class Span(NamedTuple):
    """A part of a line, and the name of its colour in `Theme.code`, "" for plain text."""

    text: str
    colour: str


def wrapped(line: str, width: int, depth: int = 0) -> list[str]:
    """Break a line of code into lines of at most `width` characters, as far as possible.

    It is broken after commas and before operators at the lowest bracket depth, as late as possible.
    `depth` is the number of brackets open at its start.
    """
    indent = " " * (len(line) - len(line.lstrip()))
    quote = ""
    breaks: list[tuple[int, int]] = []  # the number of brackets around, and where the rest begins
    for at, char in enumerate(line):
        if char in "\"'":
            quote = "" if quote == char else quote or char
        if quote:
            continue
        depth += (char in _OPENING) - (char in _CLOSING)
        if depth and line.startswith(", ", at):  # others are between the names of a tuple
            breaks.append((depth, at + 2))
        elif at > len(indent) and line.startswith(_OPERATORS, at):
            breaks.append((depth, at + 1))
    found = []
    start, lead = 0, ""
    while len(lead) + len(line) - start > width:
        left = [one for one in breaks if one[1] > start]
        if not left:
            break
        fitting = [one for one in left if one[1] <= start + width - len(lead) + 1]
        _, end = min(fitting, key=lambda one: (one[0], -one[1])) if fitting else left[0]
        found.append(lead + line[start:end].rstrip())
        start, lead = end, indent + " " * _HANGING
    return [*found, lead + line[start:]]


def draw_code(
    parent: ElementTree.Element,
    lines: Sequence[str],
    corner: Point,
    theme: Theme,
    marked: Mapping[int, str] | None = None,
    line_height: float = LINE_HEIGHT,
) -> Size:
    """Draw lines of code, and return their size.

    Args:
        corner: The upper left corner.
        marked: The colours of the ground behind some lines, by their indices.
        line_height: The distance of two lines.
    """
    group = add(parent, "g", "code")
    x, y = corner
    baseline = _BASELINE + (line_height - LINE_HEIGHT) / 2
    width = max((text_width(line, CODE_SIZE) for line in lines), default=0.0)
    for colour, run in groupby(range(len(lines)), (marked or {}).get):
        rows = list(run)
        if colour:
            top, height = y + rows[0] * line_height, len(rows) * line_height
            ground = mix_colours(theme.background, colour, _TINT)
            add_rect(group, Rect.at((x - 4, top), width + 8, height), fill=ground)
    for at, (text, spans) in enumerate(zip(lines, _highlighted(tuple(lines)), strict=False)):
        if not text.strip():
            continue
        indent = len(text) - len(text.lstrip())
        left = x + text_width(" " * indent, CODE_SIZE)
        element = add_text(
            group, "", (left, y + at * line_height + baseline), CODE_SIZE, theme.text, "start"
        )
        for span in spans:
            part = add(element, "tspan", fill=theme.code.get(span.colour, theme.text))
            if span.colour in ("keyword", "decorator"):
                part.set("font-weight", "600")
            part.text = printable(span.text).replace("  ", "\u00a0 ")  # SVG would join the spaces
    return Size(width, len(lines) * line_height)


@lru_cache(maxsize=256)
def _highlighted(lines: tuple[str, ...]) -> Sequence[Sequence[Span]]:
    """Return the spans of each line, without its indentation; the same lines are drawn often."""
    from pygments import lex
    from pygments.lexers import PythonLexer

    found: list[Sequence[Span]] = []
    line: list[Span] = []
    for token, text in lex("\n".join(lines), PythonLexer(stripnl=False, ensurenl=True)):
        for number, part in enumerate(text.split("\n")):
            if number:
                found.append(_merged(line))
                line = []
            if part:
                line.append(Span(part, _colour(token)))
    return found


@lru_cache
def _colour(token: object) -> str:
    """Return the name of the colour of a kind of token of Pygments."""
    from pygments.token import Token

    kinds = (
        (Token.Comment, "comment"),
        (Token.Literal.String, "string"),
        (Token.Literal.Number, "number"),
        (Token.Name.Decorator, "decorator"),
        (Token.Name.Function, "definition"),
        (Token.Name.Class, "definition"),
        (Token.Operator.Word, "keyword"),
        (Token.Keyword, "keyword"),
    )
    return next((name for kind, name in kinds if token in kind), "")


def _merged(spans: list[Span]) -> list[Span]:
    """Join neighbours of one colour, and leave out the indentation."""
    found: list[Span] = []
    for span in spans:
        if not found and not span.text.strip():
            continue
        if found and (found[-1].colour == span.colour or not span.text.strip()):
            found[-1] = Span(found[-1].text + span.text, found[-1].colour)
        else:
            found.append(span if found else Span(span.text.lstrip(), span.colour))
    return found
