"""Lecture figures: panels in a row, fitted to a slide, and panels of code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from irviz.errors import DrawError
from irviz.view import svg_primitives as svg
from irviz.view.figure import Figure
from irviz.view.mix_colours import mix_colours
from irviz.view.module_diff import ARROW, draw_fat_arrow
from irviz.view.svg_primitives import Point, Rect, Size
from irviz.view.theme import Theme

_MAX_TEXT = 26.0
_PX_PER_POINT = 4 / 3
_MARGIN = 6.0
_TITLE_SIZE, _CAPTION_SIZE, _ARROW_SIZE = 15.0, 12.0, 11.0
_TITLE_HEIGHT, _CAPTION_HEIGHT = 26.0, 22.0
_GAP, _BESIDE = 8.0, 7.5
"""The space between panels, and at both sides of an arrow between them."""
_ARROW_SCALE = 0.4
"""The size of an arrow between panels above each other, of which a slide has little height for."""
_FONTS = svg.MONOSPACE.replace("monospace", ", ".join([*map(repr, svg.WIDE_FONTS), "monospace"]))


Arrangement = Literal["row", "column"]
"""Whether panels are beside or above each other."""

REPEATED = "↻"
"""The line of an arrow's words that is drawn as a loop, for a step that is done several times."""


class TooSmallError(DrawError):
    """A text in the picture would be smaller than allowed: it has this many points."""

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
    """The words of a figure: `label` and `description` are for screen readers.

    The title is written above the picture, and the text of the programs is kept in the file.
    """

    title: str
    label: str
    description: str
    programs: Sequence[str] = ()


def slide_figure(
    panels: Sequence[Panel],
    arrows: Sequence[str | None],
    text: SlideText,
    theme: Theme,
    size: Size,
    min_text: float,
    arrangement: Arrangement = "row",
) -> Figure:
    """Return the figure with its panels in a row or a column, as large as fits on the slide.

    Args:
        arrows: The words above the fat arrow before each panel but the first; None for space. In a
            row, there may be one more, before the first panel.
        size: The space for the figure on the slide, in points.
        min_text: The smallest text size allowed, in points.

    Raises:
        TooSmallError: A text would be smaller.
    """
    root = svg.svg_document(Size(0, 0), "figure", "", theme)
    del root.attrib["aria-label"]
    root.set("font-family", _FONTS)
    _add_words(root, text)
    top = _MARGIN + (_TITLE_HEIGHT if text.title else 0.0)
    placed = _PlacedPanels(svg.add(root, "g", "panels"), panels, arrows, theme)
    right, bottom = placed.in_row(top) if arrangement == "row" else placed.in_column(top)
    width = max(right, _MARGIN + svg.text_width(text.title, _TITLE_SIZE)) + _MARGIN
    if text.title:
        at, style = (width / 2, _MARGIN + 14), {"font_weight": "600"}
        svg.add_text(root, text.title, at, _TITLE_SIZE, theme.text, **style)
    return _fitted(root, Size(width, bottom + _MARGIN), size, min_text)


@dataclass(frozen=True)
class _PlacedPanels:
    """The panels of a figure, and the words of the arrows between them, in a group."""

    picture: ElementTree.Element
    panels: Sequence[Panel]
    arrows: Sequence[str | None]
    theme: Theme

    def in_row(self, top: float) -> Point:
        """Place the panels from left to right; return the lower right corner."""
        y = top + (_CAPTION_HEIGHT if any(panel.caption for panel in self.panels) else 0.0)
        height = max(panel.size.height for panel in self.panels)
        first = len(self.panels) - len(self.arrows)  # the first panel with an arrow before it
        x = _MARGIN - _BESIDE * (not first)
        for at, panel in enumerate(self.panels):
            if at >= first:
                x = self._draw_arrow(self.arrows[at - first], (x, y + height / 2))
            width = max(panel.size.width, svg.text_width(panel.caption, _CAPTION_SIZE))
            corner = x + (width - panel.size.width) / 2, y + (height - panel.size.height) / 2
            self._place(panel, corner, (x + width / 2, y))
            x += width
        return x, y + height

    def in_column(self, top: float) -> Point:
        """Place the panels from top to bottom, at the left; return the lower right corner."""
        width = max(panel.size.width for panel in self.panels)
        middle, y = _MARGIN + width / 2, top
        for at, panel in enumerate(self.panels):
            if at and (words := self.arrows[at - 1]) is not None:
                group, high = svg.add(self.picture, "g", "transform"), ARROW.width * _ARROW_SCALE
                place = f"translate({svg.px(middle)} {svg.px(y + (high + _GAP) / 2)})"
                arrow = svg.add(group, "g", transform=f"{place} scale({svg.px(_ARROW_SCALE)})")
                draw_fat_arrow(arrow, (0.0, 0.0), self.theme.line, "below")
                beside, style = (middle + high, y + high / 2 + _GAP), {"font_weight": "600"}
                line = words.replace("\n", ", ")
                svg.add_text(group, line, beside, _ARROW_SIZE, self.theme.text, "start", **style)
                y += high
            y += _GAP * bool(at) + _CAPTION_HEIGHT * bool(panel.caption)
            self._place(panel, (_MARGIN, y), (middle, y))
            y += panel.size.height
        return _MARGIN + width, y

    def _place(self, panel: Panel, corner: Point, middle: Point) -> None:
        """Place a panel, with its caption above the middle of its upper side."""
        if panel.caption:
            at, style = (middle[0], middle[1] - 8), {"font_weight": "600"}
            svg.add_text(self.picture, panel.caption, at, _CAPTION_SIZE, self.theme.text, **style)
        panel.group.set("transform", f"translate({svg.px(corner[0])} {svg.px(corner[1])})")
        self.picture.append(panel.group)

    def _draw_arrow(self, words: str | None, start: Point) -> float:
        """Draw a fat arrow at the right of a panel; return where the next one begins."""
        x, y = start
        if words is None:
            return x + 2 * _GAP
        lines = words.split("\n")
        width = max(ARROW.width, *(svg.text_width(line, _ARROW_SIZE) for line in lines))
        group = svg.add(self.picture, "g", "transform")
        draw_fat_arrow(group, (x + _BESIDE + width / 2, y), self.theme.line, "right")
        for at, line in enumerate(reversed(lines)):
            place = (x + _BESIDE + width / 2, y - ARROW.height / 2 - 8 - at * 15)
            if line == REPEATED:
                _draw_loop(group, (place[0], place[1] - 12), self.theme)
                continue
            style = {"font_weight": "600"}
            svg.add_text(group, line, place, _ARROW_SIZE, self.theme.text, **style)
        return x + width + 2 * _BESIDE


def _fitted(root: ElementTree.Element, drawn: Size, size: Size, min_text: float) -> Figure:
    """Scale a picture to the slide; its own units stay what they are."""
    texts = [one for one in root.iter("text") if "".join(one.itertext()).strip()]
    smallest = min(map(_least, texts), default=min_text)
    largest = max((float(one.get("font-size", "0")) for one in texts), default=min_text)
    fits = min(size.width / drawn.width, size.height / drawn.height)
    scale = min(fits, max(_MAX_TEXT / largest, min_text / smallest))
    if smallest * scale < min_text - 0.05:
        points, needed = smallest * scale, min_text / smallest
        words = next("".join(one.itertext()) for one in texts if _least(one) == smallest)
        raise TooSmallError(
            f"texts such as {words!r} would be {points:.1f} pt high, and {min_text:g} pt is the "
            f"least: the figure needs {drawn.width * needed:.0f} × {drawn.height * needed:.0f} pt "
            f"for that, and has {size.width:g} × {size.height:g}. Show less of the program, give "
            f"it a larger size, or accept this by min_text = {int(points)}",
            points,
        )
    width, height = (side * scale * _PX_PER_POINT for side in drawn)
    for name, value in (("width", width), ("height", height)):
        root.set(name, svg.px(value))
    root.set("viewBox", f"0 0 {svg.px(drawn.width)} {svg.px(drawn.height)}")
    return Figure(svg.svg_text(root), width, height)


def _least(text: ElementTree.Element) -> float:
    """Return the size of the smallest part of a text."""
    return min(float(one.get("font-size", "inf")) for one in text.iter())


def _add_words(root: ElementTree.Element, text: SlideText) -> None:
    """Add title, description and programs, before all that is drawn."""
    words = [("title", "", text.label), ("desc", "", text.description)]
    words += [("metadata", "program", program) for program in text.programs]
    for at, (tag, css_class, content) in enumerate(words):
        element = ElementTree.Element(tag, {"class": css_class} if css_class else {})
        element.text = content
        root.insert(at, element)


def _draw_loop(parent: ElementTree.Element, centre: Point, theme: Theme) -> None:
    """Draw an arrow that leads back to where it begins."""
    x, y = centre
    line = svg.path("M", x - 6, y + 8, "a", 10, 10, 0, 1, 1, 12, 0)
    tip = svg.path("M", x - 1, y + 13, "l", 4, -10, "l", 7, 9, "Z")
    svg.add(parent, "path", d=line, fill="none", stroke=theme.line, stroke_width=2.5)
    svg.add(parent, "path", d=tip, fill=theme.line)


# --- Code: lines of text in syntax colours --------------------------------------------------------


CODE_SIZE = 11.0
LINE_HEIGHT = 15.0
_BASELINE = 11.2
_TINT = 0.16
_HANGING = 4
_OPENING, _CLOSING = "([{", ")]}"
_OPERATORS = (" + ", " - ", " * ", " / ")


class Mark(NamedTuple):
    """The ground of a line of code, "" for none, and the number before it."""

    colour: str
    number: str


class Span(NamedTuple):
    """A part of a line, and the name of its colour in `Theme.code`, "" for plain text."""

    text: str
    colour: str


def wrapped(line: str, width: int, depth: int = 0) -> list[str]:
    """Break a line of code into lines of at most `width` characters, as far as possible.

    It is broken after commas and before operators at the lowest bracket depth, as late as possible:
    only in brackets, as Python does, and in no index. `depth` is the number of brackets open at its
    start.
    """
    indent = " " * (len(line) - len(line.lstrip()))
    breaks = _breaks(line, depth)
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


def _breaks(line: str, depth: int) -> list[tuple[int, int]]:
    """Return where a line can be broken: the number of brackets around, where the rest begins."""
    quote, index = "", 0  # the depth of the outermost index
    opening = line.find("(") if line.lstrip().startswith("def ") else -1
    found: list[tuple[int, int]] = []
    for at, char in enumerate(line):
        if char in "\"'":
            quote = "" if quote == char else quote or char
        if quote:
            continue
        depth += (char in _OPENING) - (char in _CLOSING)
        if char == "[" and not index and line[at - 1 : at].isidentifier():
            index = depth
        index *= depth >= index
        if at == opening or line.startswith(") -> ", at):
            found.append((depth, at + depth))
        elif depth and not index and line.startswith((", ", *_OPERATORS), at):
            found.append((depth, at + 1 + (char == ",")))
    return found


def draw_code(
    parent: ElementTree.Element,
    lines: Sequence[str],
    corner: Point,
    theme: Theme,
    marked: Mapping[int, Mark] | None = None,
    tops: Sequence[float] = (),
) -> Size:
    """Draw lines of code, and return their size.

    Args:
        marked: The grounds and numbers of some lines, by their indices; neighbours that have the
            same share them.
        tops: The upper ends of the lines below the corner; by default they follow each other.
    """
    group = svg.add(parent, "g", "code")
    marked = marked or {}
    gutter = max(
        (svg.text_width(mark.number + " ", CODE_SIZE) for mark in marked.values()), default=0
    )
    x, y = corner[0] + gutter, corner[1]
    tops = tops or [at * LINE_HEIGHT for at in range(len(lines))]
    width = max((svg.text_width(line, CODE_SIZE) for line in lines), default=0.0)
    for mark, run in groupby(range(len(lines)), marked.get):
        if mark is None:
            continue
        rows = list(run)
        top, height = y + tops[rows[0]], tops[rows[-1]] - tops[rows[0]] + LINE_HEIGHT
        if mark.colour:
            ground = mix_colours(theme.background, mark.colour, _TINT)
            area = Rect.at((corner[0] - 4, top), gutter + width + 8, height)
            svg.add_rect(group, area, fill=ground)
        place, style = (corner[0], top + _BASELINE), {"font_weight": "700"}
        svg.add_text(group, mark.number, place, CODE_SIZE, theme.text, "start", "number", **style)
    for at, (text, spans) in enumerate(zip(lines, _highlighted(tuple(lines)), strict=False)):
        if not text.strip():
            continue
        indent = len(text) - len(text.lstrip())
        left = x + svg.text_width(" " * indent, CODE_SIZE)
        place = (left, y + tops[at] + _BASELINE)
        element = svg.add_text(group, "", place, CODE_SIZE, theme.text, "start")
        for span in spans:
            part = svg.add(element, "tspan", fill=theme.code.get(span.colour, theme.text))
            if span.colour in ("keyword", "decorator"):
                part.set("font-weight", "600")
            part.text = svg.printable(span.text)
        svg.keep_spaces(element)
    return Size(gutter + width, (tops[-1] + LINE_HEIGHT) if lines else 0.0)


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
                is_dotted = bool(line) and line[-1].colour == "decorator" and "(" not in part
                line.append(Span(part, "decorator" if is_dotted else _colour(token)))
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
